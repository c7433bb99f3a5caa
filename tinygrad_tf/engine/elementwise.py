"""Public functions, entry by entry: arithmetic, functions of one number, choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import fused, rules
from tinygrad_tf.engine.arguments import as_real, as_tensor
from tinygrad_tf.engine.tensor import Tensor

_record = Tensor.record


# --- arithmetic ---
def add(a: Any, b: Any) -> Tensor:
    """a + b."""
    return _record(rules.add, a, b)


def subtract(a: Any, b: Any) -> Tensor:
    """a - b."""
    return _record(rules.subtract, a, b)


def multiply(a: Any, b: Any) -> Tensor:
    """a · b, entry by entry."""
    return _record(rules.multiply, a, b)


def divide(a: Any, b: Any) -> Tensor:
    """a / b."""
    return _record(rules.divide, a, b)


def power(a: Any, b: Any) -> Tensor:
    """a to the power b; the gradient at 0**b is 0 for b >= 0, as in PyTorch."""
    if isinstance(b, int | float | np.number) and isinstance(a, Tensor):
        # NumPy's float32 power is some twenty times as slow as a product.
        if b == 2 and (a.dtype.kind in "fc" or isinstance(b, int | np.integer)):
            return _record(rules.square, a)
        if b == 0.5:
            return _record(rules.sqrt, a)
    return _record(rules.power, a, b)


def negative(x: Any) -> Tensor:
    """-x."""
    return _record(rules.negative, x)


def reciprocal(x: Any) -> Tensor:
    """1 / x."""
    return _record(rules.divide, 1.0, x)


def maximum(a: Any, b: Any) -> Tensor:
    """The larger, entry by entry; at a tie each side receives half of the gradient."""
    return _record(rules.maximum, a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller, entry by entry; at a tie each side receives half of the gradient."""
    return _record(rules.minimum, a, b)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition holds, else b; the branch not taken receives gradient 0."""
    return _record(rules.where, condition, a, b)


# --- functions of one number ---
def exp(x: Any) -> Tensor:
    """e to the power x."""
    return _record(rules.exp, x)


def log(x: Any) -> Tensor:
    """The natural logarithm."""
    return _record(rules.log, x)


def sqrt(x: Any) -> Tensor:
    """The square root; its derivative at 0 is infinite."""
    return _record(rules.sqrt, x)


def expm1(x: Any) -> Tensor:
    """e to the power x, less 1, exact where x is small."""
    return _record(rules.expm1, x)


def log1p(x: Any) -> Tensor:
    """The natural logarithm of 1 + x, exact where x is small."""
    return _record(rules.log1p, x)


def square(x: Any) -> Tensor:
    """x · x."""
    return _record(rules.square, x)


def sin(x: Any) -> Tensor:
    """The sine of x in radians."""
    return _record(rules.sin, x)


def cos(x: Any) -> Tensor:
    """The cosine of x in radians."""
    return _record(rules.cos, x)


def tan(x: Any) -> Tensor:
    """The tangent of x in radians."""
    return _record(rules.tan, x)


def arcsin(x: Any) -> Tensor:
    """The angle in radians, from -π/2 to π/2, whose sine is x; its slope at ±1 is infinite."""
    return _record(rules.arcsin, x)


def arccos(x: Any) -> Tensor:
    """The angle in radians, from 0 to π, whose cosine is x; its slope at ±1 is infinite."""
    return _record(rules.arccos, x)


def arctan(x: Any) -> Tensor:
    """The angle in radians, from -π/2 to π/2, whose tangent is x."""
    return _record(rules.arctan, x)


def arctan2(a: Any, b: Any) -> Tensor:
    """The angle in radians, from -π to π, of the point at height a and distance b."""
    return _record(rules.arctan2, a, b)


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    return _record(rules.sinh, x)


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    return _record(rules.cosh, x)


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return _record(rules.tanh, x)


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""
    return _record(rules.sigmoid, x)


def logsigmoid(x: Any) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    return _record(rules.logsigmoid, x)


def softplus(x: Any, beta: float = 1.0) -> Tensor:
    """log(1 + exp(βx)) / β, without overflow."""
    if beta == 1.0:
        return _record(rules.softplus, x)
    return _record(rules.softplus, multiply(x, beta)) * (1.0 / beta)


def erf(x: Any) -> Tensor:
    """The error function."""
    return _record(rules.erf, x)


def relu(x: Any) -> Tensor:
    """max(x, 0); the derivative at 0 is 0."""
    return _record(rules.relu, x)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else x times the slope, which is the derivative at 0, too."""
    return _record(rules.leaky_relu, as_tensor(x), negative_slope=float(negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else α(exp(x) - 1) (Clevert et al. 2015); the slope at 0 is α."""
    return _record(rules.elu, as_tensor(x), alpha=float(alpha))


def silu(x: Any) -> Tensor:
    """x · sigmoid(x) (Hendrycks & Gimpel 2016)."""
    return _record(rules.silu, x)


def gelu(x: Any, approximate: str = "none") -> Tensor:
    """x Φ(x) (Hendrycks & Gimpel 2016), exact, or with `approximate="tanh"` their tanh form."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {approximate!r}; give 'none' or 'tanh'")
    return _record(fused.gelu, as_real(x), approximate=approximate == "tanh")


def absolute(x: Any) -> Tensor:
    """|x|; the derivative at 0 is 0."""
    return _record(rules.absolute, x)


abs = absolute


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0."""
    return _record(rules.sign, x)


def floor(x: Any) -> Tensor:
    """The largest whole number not above x; its derivative is 0."""
    return _record(rules.floor, x)


def ceil(x: Any) -> Tensor:
    """The smallest whole number not below x; its derivative is 0."""
    return _record(rules.ceil, x)


def trunc(x: Any) -> Tensor:
    """x without what is behind the point; its derivative is 0."""
    return _record(rules.trunc, x)


def round(x: Any, decimals: int = 0) -> Tensor:
    """x rounded to so many decimals, halves to the even side; its derivative is 0."""
    return _record(rules.round, as_tensor(x), decimals=decimals)


def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x, but no less than `min` and no more than `max`; None is no bound.

    The derivative on a bound is 1, beyond it 0, where bounds that carry a gradient receive it.
    Raises ValueError where both bounds are None.
    """
    if min is None and max is None:
        raise ValueError("clip needs a bound: give min, max or both")
    return _record(rules.clip, as_tensor(x), min, max)


def astype(x: Any, dtype: Any) -> Tensor:
    """The same numbers in another dtype; the gradient comes back in the old one."""
    return _record(rules.astype, x, dtype=np.dtype(dtype))
