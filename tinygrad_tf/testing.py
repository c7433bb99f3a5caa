"""Property tests of gradients: inputs drawn by hypothesis, and a whole test in one line.

Add an operation of your own and test it, first and second order, over drawn shapes and numbers:

>>> import numpy as np
>>> from tinygrad_tf import Tensor
>>> from tinygrad_tf.engine.graph import Op
>>> from tinygrad_tf.testing import away_from, op_test
>>>
>>> softsign = Op(
...     "softsign",
...     lambda x: x / (1.0 + np.abs(x)),  # forward: NumPy
...     (lambda g, _y, x: g / (1.0 + np.abs(x)) ** 2,),  # one rule per input
... )
>>> test_softsign = op_test(softsign, domain=away_from(0.0))

`softsign(Tensor(...))` is now recorded and differentiated like any other operation, and pytest
finds `test_softsign`. A rule takes (g, y, *inputs): the upstream gradient, the output, the inputs;
an underscore before a name marks an array that is not used, and so is not kept. The engine sums
over broadcast axes, casts dtypes and accumulates. A rule written with operators and NumPy functions
that Tensors support can itself be differentiated.

>>> x = Tensor(1.0, requires_grad=True)
>>> softsign(x).backward()
>>> print(x.grad)
0.25
>>> test_softsign()

To draw other inputs, write a test that calls `check_op`:

    @given(st.data())
    def test_logsumexp(data):
        check_op(ops.logsumexp, scipy.special.logsumexp, anything, data,
                 shapes=shapes(min_dims=1, min_side=1),
                 params=lambda x: st.fixed_dictionaries({"axis": axes(x.ndim, tuples=False)}))

Numbers are multiples of 1/8 (or odd multiples of 1/16): exact in every precision, and readable when
hypothesis shrinks them. A domain excludes numbers where an op is not differentiable, so that no
example is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygrad_tf.checking import Report, gradcheck
from tinygrad_tf.checking.functions import Call, arity, name_of
from tinygrad_tf.checking.report import literal
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array

try:
    from hypothesis import assume, given, note, settings
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ImportError as missing:
    raise ImportError(
        "tinygrad_tf.testing draws its inputs with hypothesis, which is not installed; "
        'type: pip install "hypothesis>=6.100"'
    ) from missing

__all__ = [
    "Domain",
    "anything",
    "arrays",
    "away_from",
    "axes",
    "between",
    "broadcastable",
    "check_op",
    "distinct",
    "halfway",
    "indices",
    "matmul_shapes",
    "op_test",
    "open_unit",
    "positive",
    "shapes",
    "use_ci_profile",
]

Shape = tuple[int, ...]
LARGEST = 16  # numbers are drawn from -16/8 to 16/8; `scale` makes them larger


# --- numbers --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Domain:
    """The numbers that entries are drawn from: numerators, the simplest first, over a denominator.

    unique: whether the entries of an array are all different.
    """

    numerators: tuple[int, ...]
    denominator: int = 8
    unique: bool = False


def _simple(numerators: Sequence[int]) -> tuple[int, ...]:
    """Sort into the order of shrinking: small before large, positive before negative."""
    return tuple(sorted(numerators, key=lambda i: (abs(i), i < 0)))


anything = Domain(_simple(range(-LARGEST, LARGEST + 1)))
"""Eighths from -2 to 2, 0 and ties included."""

positive = Domain((8, 16, *range(2, 8), *range(9, 16), *range(17, 33)))
"""Eighths from 1/4 to 4."""

halfway = Domain(_simple(range(-2 * LARGEST + 1, 2 * LARGEST, 2)), 16)
"""Odd sixteenths: never 0, and never equal to a number of the other domains."""


def between(low: float, high: float) -> Domain:
    """Eighths strictly between two numbers; sixty-fourths where eighths are too few."""
    for denominator in (8, 64):
        first, last = int(np.floor(low * denominator)), int(np.ceil(high * denominator))
        inside = [i for i in range(first, last + 1) if low < i / denominator < high]
        if len(inside) >= 4:
            return Domain(_simple(inside), denominator)
    raise ValueError(f"between({low}, {high}) is too narrow; draw with `scale` instead")


open_unit = between(0.0, 1.0)
"""Eighths from 1/8 to 7/8."""


def away_from(*points: float, gap: float = 0.125) -> Domain:
    """Multiples of 1/8 from -2 to 2 whose distance to each of the points is at least `gap`."""
    kept = [i for i in anything.numerators if all(abs(i / 8 - p) >= gap for p in points)]
    if not kept:
        raise ValueError(f"no eighth from -2 to 2 is {gap} away from {points}")
    return Domain(tuple(kept))


def distinct(gap: float = 0.125) -> Domain:
    """Numbers, 129 in all, at least `gap` apart within one array."""
    step = max(1, round(gap * 8))
    return Domain(_simple([step * i for i in range(-64, 65)]), unique=True)


def arrays(
    shape: int | Shape | st.SearchStrategy[Shape],
    domain: Domain = anything,
    *,
    scale: float = 1.0,
    dtype: Any = np.float64,
) -> st.SearchStrategy[Array]:
    """Arrays of a shape (or of drawn shapes) with entries from a domain, times `scale`."""
    numbers = np.array(domain.numerators) / domain.denominator
    places = hnp.arrays(
        np.int64, shape, elements=st.integers(0, len(numbers) - 1), unique=domain.unique
    )
    return places.map(lambda i: np.asarray(numbers[i] * scale, dtype))


# --- shapes, axes, indices ------------------------------------------------------------------------
def shapes(
    *, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 3
) -> st.SearchStrategy[Shape]:
    """Shapes, () and empty ones included; they shrink to () and to sides of min_side."""
    return hnp.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )


def broadcastable(
    n: int, *, max_dims: int = 3, min_side: int = 0, max_side: int = 3
) -> st.SearchStrategy[tuple[Shape, ...]]:
    """n shapes that broadcast with one another."""
    return hnp.mutually_broadcastable_shapes(
        num_shapes=n, max_dims=max_dims, min_side=min_side, max_side=max_side
    ).map(lambda drawn: drawn.input_shapes)


def matmul_shapes(
    *, max_dims: int = 2, min_side: int = 0, max_side: int = 3
) -> st.SearchStrategy[tuple[Shape, ...]]:
    """Two shapes that matmul takes: vectors, matrices, and up to max_dims leading axes."""
    return hnp.mutually_broadcastable_shapes(
        signature=np.matmul.signature, max_dims=max_dims, min_side=min_side, max_side=max_side
    ).map(lambda drawn: drawn.input_shapes)


def axes(ndim: int, *, none: bool = True, tuples: bool = True) -> st.SearchStrategy[Any]:
    """Values of `axis=` for an array of ndim axes: None, ints of either sign, tuples, ()."""
    options: list[st.SearchStrategy[Any]] = [st.none()] if none or not (ndim or tuples) else []
    if ndim:
        options.append(st.integers(0, ndim - 1) | st.integers(-ndim, -1))
    if tuples:
        options.append(hnp.valid_tuple_axes(ndim, min_size=0))
    return st.one_of(options)


def indices(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of i in x[i]: ints, slices, None, Ellipsis, integer arrays with repeats, masks."""
    options: list[st.SearchStrategy[Any]] = [
        hnp.basic_indices(shape, allow_newaxis=True, max_dims=len(shape) + 1),
        hnp.arrays(np.bool_, shape),
    ]
    if shape and all(shape):
        options.append(
            hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3))
        )
    return st.one_of(options)


# --- tests ----------------------------------------------------------------------------------------
Params = Callable[..., st.SearchStrategy[dict[str, Any]]]


def check_op(
    op: Any,
    reference: Callable[..., Any] | None,
    domain: Domain | Sequence[Domain],
    data: st.DataObject,
    *,
    shapes: st.SearchStrategy[Any] | None = None,
    params: Params | None = None,
    order: int = 2,
    **options: Any,
) -> Report:
    """Draw inputs for an op, compare its values with the reference, and check its gradients.

    op: a function of Tensors or an op of the table. reference: the same function in NumPy, or None.
    domain: of every input, or one for each. shapes: draws a tuple of shapes, one for each input (or
    a single shape for a single input); by default they broadcast. params: takes the arrays, draws
    keyword arguments. options: those of `gradcheck`; kinks are skipped.
    Raises `GradcheckError`, and AssertionError where the values differ.
    """
    domains = _domains(op, domain)
    drawn = zip(_draw_shapes(data, shapes, len(domains)), domains, strict=True)
    inputs = [data.draw(arrays(shape, d), label="input") for shape, d in drawn]
    named = data.draw(params(*inputs), label="parameters") if params is not None else {}
    call = Call(op, named)
    note(f"{call.name}({', '.join(literal(x) for x in inputs)})")
    with no_grad():
        value = call(*(Tensor(x) for x in inputs)).data
    if reference is not None:
        expected = np.asarray(reference(*inputs, **named))
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12, strict=True)
    up = data.draw(arrays(value.shape), label="upstream")
    options = {"order": order, "on_kink": "skip", **options}
    report = gradcheck(call, *inputs, up=up, **options)
    assume(report.entries > 0 or not report.kinks)
    return report


def op_test(
    op: Any,
    reference: Callable[..., Any] | None = None,
    domain: Domain | Sequence[Domain] = anything,
    *,
    shapes: st.SearchStrategy[Any] | None = None,
    params: Params | None = None,
    examples: Sequence[Sequence[Any]] = (),
    max_examples: int = 25,
    **options: Any,
) -> Callable[[], None]:
    """Make a whole test of an op, for a name that begins with test_; arguments as for `check_op`.

    examples: inputs that are always checked, before the drawn ones; each is a sequence, which may
    end in a dict of parameters.
    """

    @settings(max_examples=max_examples, deadline=None)
    @given(st.data())
    def drawn(data: st.DataObject) -> None:
        check_op(op, reference, domain, data, shapes=shapes, params=params, **options)

    def test() -> None:
        for example in examples:
            *inputs, last = example
            named = last if isinstance(last, dict) else {}
            arguments = inputs if isinstance(last, dict) else [*inputs, last]
            chosen = {"order": 2, "on_kink": "skip", **options}
            gradcheck(Call(op, named), *arguments, **chosen)
        drawn()

    test.__name__ = test.__qualname__ = f"test_{name_of(op)}"
    test.__doc__ = f"Values and gradients of {name_of(op)}."
    return test


def use_ci_profile() -> None:
    """Make hypothesis draw the same inputs in every run, without deadlines: for shared machines."""
    settings.register_profile("tinygrad_tf", deadline=None, derandomize=True)
    settings.load_profile("tinygrad_tf")


def _domains(op: Any, domain: Domain | Sequence[Domain]) -> list[Domain]:
    if not isinstance(domain, Domain):
        return list(domain)
    least, greatest = arity(op)
    if not least or greatest == np.inf:
        raise TypeError(f"how many inputs has {name_of(op)}? give a sequence of domains")
    return [domain] * least


def _draw_shapes(
    data: st.DataObject, strategy: st.SearchStrategy[Any] | None, count: int
) -> tuple[Shape, ...]:
    """Draw a shape for each input."""
    if strategy is None:
        strategy = shapes() if count == 1 else broadcastable(count)
    drawn: tuple[Any, ...] = data.draw(strategy, label="shapes")
    single = count == 1 and all(isinstance(n, int) for n in drawn)
    return (drawn,) if single else drawn
