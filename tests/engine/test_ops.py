"""The table of conventions in `tinygrad_tf.ops`, row by row."""

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.gradients import first_order, gradients
from tinygrad_tf import Tensor, grad, ops
from tinygrad_tf.types import Array

nan, inf = math.nan, math.inf


def check(f: Any, inputs: Any, expected: Any, up: Any = None, dtype: Any = np.float64) -> None:
    """The gradients of Σ up·f are these, nan and infinities included."""
    for ours, known in zip(gradients(f, *inputs, up=up, dtype=dtype), expected, strict=True):
        assert ours.shape == np.shape(known) and ours.dtype == dtype
        np.testing.assert_array_equal(ours, known)


def one(f: Any, x: Any, slope: Any) -> tuple[Any, list[Any], list[Any]]:
    """A row about a function of one array."""
    return f, [x], [slope]


QUIET = {
    "absolute at 0": one(ops.absolute, [0.0, -2.0], [0, -1]),
    "sign at 0": one(ops.sign, [0.0, 2.0], [0, 0]),
    "relu at 0": one(ops.relu, [0.0], [0]),
    "leaky_relu at 0": one(ops.leaky_relu, [0.0], [0.01]),
    "elu at 0": one(lambda x: ops.elu(x, 2.0), [0.0], [2]),
    **{
        f"{name} of a whole number": one(getattr(ops, name), [1.0, 1.5], [0, 0])
        for name in ("floor", "ceil", "trunc", "round")
    },
    "maximum at a tie": (ops.maximum, [1.0, 1.0], [0.5, 0.5]),
    "minimum at a tie": (ops.minimum, [1.0, 1.0], [0.5, 0.5]),
    "maximum beside nan": (ops.maximum, [[nan, 1.0], [1.0, nan]], [[1, 1], [1, 1]]),
    "minimum beside nan": (ops.minimum, [[nan, 1.0], [1.0, nan]], [[1, 1], [1, 1]]),
    "max at a tie": one(ops.max, [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
    "amax at a tie": one(lambda x: ops.amax(x, axis=0), [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
    "min at a tie": one(ops.min, [2.0, 1.0, 1.0], [0, 0.5, 0.5]),
    "amin at a tie": one(lambda x: ops.amin(x, axis=-1), [2.0, 1.0, 1.0], [0, 0.5, 0.5]),
    "max with nan": one(ops.max, [1.0, nan, 2.0], [0, 1, 0]),
    "min with nans": one(ops.min, [nan, nan, 2.0], [0.5, 0.5, 0]),
    "sort of equals": (
        lambda x: ops.sort(x) * np.array([1.0, 2.0, 3.0]),
        [[1.0, 0.0, 1.0]],
        [[2, 1, 3]],
    ),
    "topk of equals": one(lambda x: ops.topk(x, 1)[0], [1.0, 2.0, 2.0], [0, 1, 0]),
    "clip on and beyond the bounds": one(
        lambda x: ops.clip(x, -1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 1, 1, 0]
    ),
    "clip, bounds that carry a gradient": (
        ops.clip,
        [[-2.0, -1.0, 2.0], -1.0, 1.0],
        [[0, 1, 0], 1, 1],
    ),
    "where with nan not taken": (
        lambda a, b: ops.where([True, False], a, b),
        [[1.0, nan], [inf, 2.0]],
        [[1, 0], [0, 1]],
    ),
    "norm at 0": one(ops.norm, [0.0, 0.0], [0, 0]),
    "norm of order 3 at 0": one(lambda x: ops.norm(x, 3), [0.0, 0.0], [0, 0]),
    "norm of order inf at a tie": one(lambda x: ops.norm(x, inf), [-2.0, 2.0], [-0.5, 0.5]),
    "std of equals": one(ops.std, [1.0, 1.0], [0, 0]),
    "x**0 at 0": one(lambda x: x**0.0, [0.0, 2.0], [0, 0]),
    "0**y": one(lambda y: 0.0**y, [2.0, 0.0], [0, 0]),
    "prod with zeros": one(ops.prod, [0.0, 0.0, 3.0], [0, 0, 0]),
    "prod with one zero": one(ops.prod, [2.0, 0.0, 3.0], [0, 6, 0]),
    "cumprod with zeros": one(ops.cumprod, [2.0, 0.0, 3.0, 0.0], [1, 8, 0, 0]),
    "prod of nothing": one(ops.prod, np.ones(0), np.ones(0)),
    "sum over no axis": one(lambda x: ops.sum(x, axis=()), [1.0, 2.0], [1, 1]),
    "prod over no axis": one(lambda x: ops.prod(x, axis=()), [1.0, 0.0], [1, 1]),
    "mean over no axis": one(lambda x: ops.mean(x, axis=()), [1.0, 2.0], [1, 1]),
    "max over no axis": one(lambda x: ops.max(x, axis=()), [1.0, 2.0], [1, 1]),
    "var over no axis": one(lambda x: ops.var(x, axis=()), [1.0, 2.0], [0, 0]),
    "norm over no axis": one(lambda x: ops.norm(x, axis=()), [-1.0, 2.0], [-1, 1]),
    "softmax of -inf": one(ops.softmax, [-inf, -inf], [0, 0]),
    "softmax beside -inf": one(ops.softmax, [[-inf, -inf], [0.0, -inf]], [[0, 0], [0, 0]]),
    "log_softmax of -inf": one(ops.log_softmax, [-inf, -inf], [1, 1]),
    "logsumexp of -inf": one(ops.logsumexp, [-inf, -inf], [0, 0]),
    "logsumexp beside -inf": one(ops.logsumexp, [-inf, 0.0], [0, 1]),
    "nothing counted, mean": one(lambda x: ops.cross_entropy(x, [-100]), np.ones((1, 2)), [[0, 0]]),
    "nothing counted, sum": one(
        lambda x: ops.cross_entropy(x, [-100], reduction="sum"), np.ones((1, 2)), [[0, 0]]
    ),
    "nothing counted, none": one(
        lambda x: ops.cross_entropy(x, [-100], reduction="none"), np.ones((1, 2)), [[0, 0]]
    ),
    "repeated indices": one(lambda x: x[[0, 0, -2]], [1.0, 2.0], [3, 0]),
    "einsum with an axis of length 1": (
        lambda x, y: ops.einsum("i,i", x, y),
        [[2.0, 2.0], [2.0]],
        [[2, 2], [4]],
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", QUIET)
def test_gradients_without_a_warning(row: str, dtype: Any) -> None:
    f, inputs, expected = QUIET[row]
    check(f, inputs, [np.asarray(e, dtype) for e in expected], dtype=dtype)


def test_infinite_slopes_are_infinite_and_numpy_warns_of_them() -> None:
    with np.errstate(all="ignore"):
        check(ops.sqrt, [[0.0, 0.0]], [[inf, nan]], up=[1.0, 0.0])
        check(lambda y: 0.0**y, [-1.0], [-inf])
        check(ops.arcsin, [[1.0, -1.0]], [[inf, inf]])
        check(ops.arccos, [[1.0, -1.0]], [[-inf, -inf]])
        check(ops.arctan2, [0.0, 0.0], [nan, nan])


@pytest.mark.parametrize("size", [2, 2000])
@pytest.mark.parametrize(
    "f",
    [
        ops.relu,
        lambda x: ops.maximum(x, 0.0),
        lambda x: ops.clip(x, 0.0),
        lambda x: ops.where(x > 0, x, 0.0),
    ],
)
def test_what_is_cut_off_gets_0_of_an_infinite_slope(f: Any, size: int) -> None:
    with np.errstate(divide="ignore"):
        check(lambda x: ops.sqrt(f(x)), [np.full(size, -1.0)], [np.zeros(size)])
        check(lambda x: ops.sqrt(f(x)), [np.full(size, 4.0)], [np.full(size, 0.25)])


def test_values_at_the_edges() -> None:
    bare = np.array([-inf, -inf])
    for f, x, value in (
        (ops.softmax, bare, [0, 0]),
        (ops.softmax, np.array([[-inf, -inf], [0.0, -inf]]), [[0, 0], [1, 0]]),
        (lambda x: ops.cross_entropy(x, [-100, -100]), np.ones((2, 3)), 0),
        (ops.log_softmax, bare, [-inf, -inf]),
        (ops.logsumexp, bare, -inf),
        (ops.prod, np.ones(0), 1),
        (ops.sum, np.ones(0), 0),
        (ops.mean, np.ones(0), nan),
        (ops.var, np.ones(0), nan),
        (ops.round, np.array([0.5, 1.5, -0.5]), [0, 2, 0]),
    ):
        np.testing.assert_array_equal(f(x).data, value)
    assert ops.argmax([1.0, 2.0, 2.0]).item() == 1 and ops.argmin([1.0, 0.0, 0.0]).item() == 1


@pytest.mark.parametrize("f", [ops.cumsum, ops.cumprod, lambda x: ops.take(x, [3, 0]), ops.repeat])
def test_no_axis_joins_all_axes(f: Any) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    y = f(x) if f is not ops.repeat else f(x, 2)
    flat = f(x.reshape(-1)) if f is not ops.repeat else f(x.reshape(-1), 2)
    np.testing.assert_array_equal(y.data, flat.data)


def test_division_does_not_underflow_before_it_must() -> None:
    x = np.float32(1e-25)
    _, (dx, dy) = first_order(lambda a, b: a / b, [x, x], np.ones((), np.float32))
    np.testing.assert_allclose([dx, dy], [1e25, -1e25], rtol=1e-6)


UNARY = [
    *("exp", "expm1", "log", "log1p", "sqrt", "square", "negative", "absolute", "reciprocal"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "erf"),
    *("sigmoid", "logsigmoid", "softplus", "silu", "relu", "leaky_relu", "elu", "gelu"),
    *("floor", "ceil", "trunc", "round", "sign", "sum", "mean", "var", "std", "prod", "max", "min"),
    *("norm", "cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "sort", "ravel", "flip"),
    *("layer_norm", "rms_norm"),
]


@pytest.mark.parametrize("name", UNARY)
def test_float32_stays_without_float64_in_between(name: str) -> None:
    seen: list[Array] = []
    x = Tensor(np.array([0.25, 0.5, 0.75], np.float32), requires_grad=True)
    y = getattr(ops, name)(x)
    seen.append(y.data)
    gradient = grad(y, x, upstream=np.ones(y.shape), create_graph=True)
    # The rule, recorded: nothing on the way back is float64 either.
    stack = [gradient.node]
    while stack:
        node = stack.pop()
        if node is not None:
            assert node.dtype == np.float32, node.op
            stack.extend(node.parents)
    assert y.dtype == gradient.dtype == np.float32
