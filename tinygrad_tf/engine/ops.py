"""The public functions on Tensors, with the names and signatures of NumPy and PyTorch.

Every function takes Tensors, arrays or numbers and returns a Tensor. `np.exp(t)` and the like
call them too, through NumPy's protocols. NumPy's `where=`, `out=` and `initial=` raise TypeError:
write `where(mask, x, 0.0).sum()`.

Where mathematics leaves a choice, these are the conventions: PyTorch's, except in the rows
marked *, where PyTorch gives nan.

    derivative of |x| and sign(x) at 0       0
    relu at 0; leaky_relu, elu at 0          0; the slope of the negative side
    relu, maximum, clip where they cut off   0, also of an infinite upstream gradient
    floor, ceil, trunc, round                0 everywhere
    maximum, minimum at a tie                half to each side; all to both beside a nan
    max, min (amax, amin) at ties            shared equally; an extreme that is nan: to the nans
    sort, topk, argmax among equals          the earlier comes first
    clip on a bound; beyond it               1; 0, and 1 to a bound that carries a gradient
    where                                    0 to the branch not taken, be it nan or infinite
    sqrt at 0                                infinite; nan where the upstream gradient is 0
    norm at 0, std of equal entries          0
    x ** 0 at x = 0                          0 for x
    0 ** y                                   0 for y >= 0, -infinity for y < 0, each for y
    arctan2 at (0, 0)                        nan
    arcsin, arccos at ±1                     infinite
    x / y                                    -g·(x/y)/y for y: does not underflow before it must
    prod, cumprod with zeros                 the product of the other entries, at every order
    prod of nothing, sum of nothing          1, 0; mean and var of nothing are nan
    axis=()                                  no axis: sum and prod change nothing, var is 0
    axis=None of cumsum, cumprod, take, ...  all axes joined into one first
    softmax of a row of -inf *               zeros, with gradient 0
    log_softmax of a row of -inf *           -inf, where the gradient passes unchanged
    logsumexp of a row of -inf               -inf, with gradient 0
    attention of a query without keys *      0, with gradient 0
    cross_entropy with nothing counted *     0, with gradient 0 (also 0 in PyTorch for a sum)
    x[index] with repeated indices           every use adds to the entry's gradient
    x[index] = ...                           there is none: Tensors are not assigned to
    t.data[...] = ... of a recorded Tensor   refused by backward() where the old numbers are needed
    einsum, an axis of length 1              goes with any length, and receives the sum
    relu, |x| at nan                         gradient 0, gradient nan
    elu at 0, second order                   that of the negative side
    x ** p at (0, 1), second order           1 for (p, x) and 0 for (x, p): it jumps there
    whole numbers in softmax and the like    become float64, as in NumPy
    complex numbers                          d/dz of holomorphic functions, not conjugated
    float32 beside numbers and 0-d arrays    stays float32
"""

from __future__ import annotations

from tinygrad_tf.engine.activations import *  # noqa: F403
from tinygrad_tf.engine.attention import *  # noqa: F403
from tinygrad_tf.engine.elementwise import *  # noqa: F403
from tinygrad_tf.engine.functional import *  # noqa: F403
from tinygrad_tf.engine.linalg import *  # noqa: F403
from tinygrad_tf.engine.manipulation import *  # noqa: F403
from tinygrad_tf.engine.reductions import *  # noqa: F403
from tinygrad_tf.engine.table import FUNCTIONS

__all__ = sorted(FUNCTIONS)
