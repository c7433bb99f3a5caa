"""Tensor as a value: construction, dtype, operators, NumPy's protocols, copies."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf import Tensor, grad, no_grad, ops

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
SCALARS = [2, 0.5, True, np.float64(2), np.float32(3), np.int64(2), np.array(2.0), np.array(3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_scalars_never_change_the_dtype(op: Any, scalar: Any, dtype: Any, shape: Any) -> None:
    x = np.full(shape, 1.5, dtype)
    for f in (lambda t: op(t, scalar), lambda t: op(scalar, t)):
        t = Tensor(x, requires_grad=True)
        y = f(t)
        assert isinstance(y, Tensor) and y.dtype == dtype and y.shape == shape
        np.testing.assert_allclose(y.data, f(x.astype(np.float64)), rtol=1e-6)
        gradient = grad(y, t, upstream=np.ones(shape))
        assert gradient.dtype == dtype and gradient.shape == shape


OF_TWO = [ops.maximum, ops.minimum, ops.arctan2, ops.power, ops.divide]


@pytest.mark.parametrize("f", [*OF_TWO, lambda a, b: ops.where(True, a, b)])
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_functions_of_two_keep_float32_beside_scalars(f: Any, scalar: Any) -> None:
    t = Tensor(np.ones(3, np.float32), requires_grad=True)
    for y in (f(t, scalar), f(scalar, t), ops.clip(t, scalar)):
        assert y.dtype == np.float32
        assert grad(y, t, upstream=np.ones(3)).dtype == np.float32


def test_an_array_on_the_left_gives_a_tensor() -> None:
    t = Tensor(np.ones(3, np.float32), requires_grad=True)
    for y in (
        np.ones(3, np.float32) * t,
        np.float64(2) * t,
        np.float32(1) - t,
        [1.0, 2.0, 3.0] * t,
    ):
        assert type(y) is Tensor and y.shape == (3,) and y.requires_grad
    square = np.eye(3, dtype=np.float32) @ t
    assert type(square) is Tensor and square.dtype == np.float32


UNARY = [
    *("exp", "expm1", "log", "log1p", "sqrt", "square", "reciprocal", "negative", "absolute"),
    *("sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh"),
    *("sign", "floor", "ceil", "trunc"),
]
BINARY = [
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "matmul", "arctan2"),
]


@pytest.mark.parametrize("name", UNARY)
def test_numpys_functions_are_recorded(name: str) -> None:
    x = np.array([0.5, 2.0])
    t = Tensor(x, requires_grad=True)
    y = getattr(np, name)(t)
    assert type(y) is Tensor and y.requires_grad
    np.testing.assert_array_equal(y.data, getattr(np, name)(x))
    np.testing.assert_array_equal(getattr(ops, name)(t).data, y.data)


@pytest.mark.parametrize("name", BINARY)
def test_numpys_functions_of_two_are_recorded(name: str) -> None:
    x = np.array([[0.5, 2.0], [3.0, 1.0]])
    for a, b in ((Tensor(x, True), x), (x, Tensor(x, True)), (Tensor(x, True), Tensor(x, True))):
        y = getattr(np, name)(a, b)
        assert type(y) is Tensor and y.requires_grad
        np.testing.assert_array_equal(y.data, getattr(np, name)(x, x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x, axis=0, keepdims=True),
        lambda x: np.add.reduce(x),
        lambda x: np.add.reduce(x, axis=1),
        lambda x: np.add.reduce(x, axis=None),
        lambda x: np.mean(x, axis=-1),
        lambda x: np.var(x, ddof=1),
        lambda x: np.max(x, axis=1),
        lambda x: np.concatenate([x, x * 2.0], axis=1),
        lambda x: np.stack([x, x]),
        lambda x: np.split(x, 2, axis=1)[1],
        lambda x: np.where(np.array([True, False, True, False]), x, 0.0),
        lambda x: np.reshape(x, (4, 2)),
        lambda x: np.transpose(x),
        lambda x: np.swapaxes(x, 0, 1),
        lambda x: np.expand_dims(x, 1),
        lambda x: np.squeeze(x[:1]),
        lambda x: np.broadcast_to(x, (3, 2, 4)),
        lambda x: np.std(x, axis=0, ddof=1),
        lambda x: np.prod(x, axis=1),
        lambda x: np.min(x, axis=(0, 1)),
        lambda x: np.multiply.reduce(x, axis=(0, -1)),
        lambda x: np.maximum.reduce(x),
        lambda x: np.minimum.reduce(x, axis=1, keepdims=True),
        lambda x: np.cumsum(x),
        lambda x: np.cumsum(x, axis=-1),
        lambda x: np.cumprod(x, axis=0),
        lambda x: np.add.accumulate(x),
        lambda x: np.multiply.accumulate(x, axis=1),
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: np.linalg.norm(x, 3, axis=0),
        lambda x: np.linalg.norm(x, np.inf, 1),
        lambda x: np.arcsin(x / 8.0) + np.arccos(x / 8.0),
        lambda x: np.fabs(x - 3.25) + np.rint(x),
        lambda x: np.clip(x, 1.0, 5.0),
        lambda x: np.clip(x, None, 5.0),
        lambda x: np.clip(x, a_min=2.0, a_max=None),
        lambda x: np.round(x * 0.375, 1),
        lambda x: np.ravel(x),
        lambda x: np.moveaxis(x[None], (0, -1), (-1, 1)),
        lambda x: np.tile(x, (3, 1, 2)),
        lambda x: np.tile(x, 2),
        lambda x: np.repeat(x, 2, axis=-1),
        lambda x: np.repeat(x, [1, 0, 2, 3], axis=1),
        lambda x: np.repeat(x, 3),
        lambda x: np.roll(x, (1, -2), axis=(0, 1)),
        lambda x: np.roll(x, 3),
        lambda x: np.roll(x, (1, 2)),
        lambda x: np.roll(x, 1, axis=(0, 1)),
        lambda x: np.flip(x),
        lambda x: np.flip(x, -1),
        lambda x: np.pad(x, 1),
        lambda x: np.pad(x, (2, 1), constant_values=7.0),
        lambda x: np.pad(x, ((0, 1), (2, 0)), mode="constant"),
        lambda x: np.triu(x, 1) + np.tril(x, -1),
        lambda x: np.tril(x[0]),
        lambda x: np.take(x, [1, -1, 1], axis=1),
        lambda x: np.take(x, [[5, 0]]),
        lambda x: np.take_along_axis(x, np.array([[1, 1, 0], [3, 2, -1]]), axis=1),
        lambda x: np.sort(-x),
        lambda x: np.sort(-x, axis=0),
        lambda x: np.dot(x, x[0]),
        lambda x: np.dot(x, np.arange(24.0).reshape(2, 4, 3)),
        lambda x: np.dot(x[0], np.arange(24.0).reshape(2, 4, 3)),
        lambda x: np.dot(x, 2.0),
        lambda x: np.outer(x, x[1]),
        lambda x: np.einsum("ij,kj", x, x),
        lambda x: np.einsum("...j->j...", x),
    ],
)
def test_numpys_shapes_and_reductions_are_recorded(f: Any) -> None:
    x = np.arange(8.0).reshape(2, 4)
    y = f(Tensor(x, requires_grad=True))
    assert type(y) is Tensor and y.requires_grad
    np.testing.assert_allclose(y.data, f(x))


@pytest.mark.parametrize(
    "f",
    [
        np.median,
        np.linalg.inv,
        np.cbrt,
        lambda t: np.add(t, 1.0, out=np.zeros(2)),
        lambda t: np.sum(t, where=[True, False]),
        lambda t: np.maximum.accumulate(t),
        lambda t: np.add.reduceat(t, [0]),
        lambda t: np.exp(t, where=[True, False]),
        lambda t: np.mean(t, where=[True, False]),
        lambda t: np.max(t, where=[True, False], initial=0.0),
        lambda t: np.add.reduce(t, where=[True, False]),
        lambda t: np.cumsum(t, out=np.zeros(2)),
        lambda t: np.einsum(t, [0], [0]),
    ],
)
def test_what_has_no_derivative_is_refused(f: Any) -> None:
    with pytest.raises(TypeError):
        f(Tensor([1.0, 2.0], requires_grad=True))


QUESTIONS: list[Any] = [
    *(np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.any, np.all, np.isnan),
    *(np.argmax, np.argmin, np.argsort, np.count_nonzero),
    *(lambda x: np.allclose(x, x), lambda x: np.array_equal(x, x)),
]


@pytest.mark.parametrize("f", QUESTIONS)
def test_questions_about_the_numbers_have_no_gradient(f: Any) -> None:
    x = np.array([[2.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    answer = f(Tensor(x, requires_grad=True))
    if isinstance(answer, Tensor):
        assert not answer.requires_grad
        answer = answer.data
    np.testing.assert_array_equal(answer, f(x))


def test_a_refusal_names_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"np\.median .*detach\(\)\.numpy\(\)"):
        np.median(Tensor([1.0]))
    with pytest.raises(TypeError, match=r"np\.cbrt .*detach\(\)\.numpy\(\)"):
        np.cbrt(Tensor([1.0]))
    t = Tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"detach\(\)\.numpy\(\)"):
        np.asarray(t)
    assert np.asarray(t.detach()).tolist() == [1.0]
    with no_grad():
        assert np.asarray(t).tolist() == [1.0]


def test_an_array_is_never_written_to_by_a_tensor() -> None:
    out = np.zeros(2)
    with pytest.raises(TypeError):
        out += Tensor([1.0, 2.0], requires_grad=True)
    assert out.tolist() == [0.0, 0.0]


def test_integers_carry_no_gradient() -> None:
    for data in ([1, 2, 3], True, np.arange(3, dtype=np.uint8)):
        with pytest.raises(TypeError, match="dtype=float"):
            Tensor(data, requires_grad=True)
    assert Tensor([1, 2, 3], requires_grad=True, dtype=float).requires_grad
    x = Tensor([1.5, 2.5], requires_grad=True)
    assert not x.astype(int).requires_grad
    half = Tensor([1.5], requires_grad=True, dtype=np.float32)
    assert grad(half.astype(np.float64) * 3.0, half).dtype == np.float32


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(-3, 3))
def test_comparisons_are_numpys(values: list[int], than: int) -> None:
    x = np.array(values, float)
    t = Tensor(x, requires_grad=True)
    names = ["lt", "le", "gt", "ge", "eq", "ne"]
    for compare in (getattr(operator, name) for name in names):
        for ours, numpys in (
            (compare(t, than), compare(x, than)),
            (compare(x, t), compare(x, x)),
            (compare(t, Tensor(x[::-1])), compare(x, x[::-1])),
        ):
            assert type(ours) is Tensor and not ours.requires_grad and ours.dtype == bool
            np.testing.assert_array_equal(ours.data, numpys)
    both = ((t > 0) & (t < 2)) | ~(t <= 2)
    np.testing.assert_array_equal(both.data, ((x > 0) & (x < 2)) | ~(x <= 2))
    np.testing.assert_array_equal(((x > 0) & (t < 2)).data, (x > 0) & (x < 2))


def test_identity_not_equality_is_what_a_set_keeps() -> None:
    x, y = Tensor([1.0]), Tensor([1.0])
    assert len({x, y, x}) == 2


def test_iteration_length_and_truth() -> None:
    t = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = list(t)
    assert len(t) == 2 and [r.data.tolist() for r in rows] == [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(grad(ops.sum(rows[1]), t), [[0, 0], [1, 1]])
    scalar = Tensor(2.0)
    for f in (len, list):
        with pytest.raises(TypeError):
            f(scalar)
    assert bool(scalar) and float(scalar) == 2.0 and int(scalar) == 2 and scalar.item() == 2.0
    with pytest.raises(ValueError, match="ambiguous"):
        bool(t)


def test_data_is_shared_and_keeps_its_dtype() -> None:
    x = np.ones(3, np.float32)
    t = Tensor(x)
    assert t.data is x and t.numpy() is x and Tensor(t).data is x
    assert (t.shape, t.ndim, t.size, t.dtype) == ((3,), 1, 3, np.dtype(np.float32))
    assert Tensor([1, 2]).dtype == np.int64 and Tensor([1.0]).dtype == np.float64


def test_repr_tells_numbers_dtype_and_gradient() -> None:
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1. , 2.5])"
    shown = repr(Tensor(np.float32([1.5]), requires_grad=True))
    assert shown == "Tensor([1.5], dtype=float32, requires_grad=True)"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_have_the_data_and_no_graph(again: Any) -> None:
    for x in (Tensor(np.float32([1.5]), requires_grad=True), Tensor(np.float32([1.5]))):
        twin = again(x)
        assert twin.requires_grad == x.requires_grad and twin.dtype == np.float32
        assert twin.data is not x.data and twin.data.tolist() == [1.5] and twin.grad is None
    y = again(Tensor([2.0], requires_grad=True) * 3.0)
    y.backward()
    assert y.grad is not None and y.grad.tolist() == [1.0]


def test_requires_grad_can_be_switched() -> None:
    x = Tensor([1.0], requires_grad=True)
    x.requires_grad = False
    assert not (x * 2.0).requires_grad
    x.requires_grad = True
    assert grad(x * 2.0, x).tolist() == [2.0]


METHODS = [
    *("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "softmax", "sum", "mean", "var", "std"),
    *("prod", "cumsum", "cumprod", "min", "argmin", "argsort", "ravel"),
]


def test_methods_are_the_functions_of_ops() -> None:
    x = np.array([[0.5, 2.0], [3.0, 0.25]])
    t = Tensor(x)
    for name in METHODS:
        np.testing.assert_array_equal(getattr(t, name)().data, getattr(ops, name)(x).data)
    assert t.max(axis=0).data.tolist() == [3.0, 2.0]
    assert t.clip(0.5, 1.5).data.tolist() == [[0.5, 1.5], [1.5, 0.5]]
    assert t.dot(t).data.tolist() == (x @ x).tolist()
    assert t.take([0, 0], 1).data.tolist() == t.T[0].repeat(2).reshape(2, 2).data.tolist()
    assert t.argmax(axis=1).data.tolist() == [1, 0]
    assert abs(-t).data.tolist() == x.tolist()


@pytest.mark.parametrize("f", [ops.exp, ops.gelu, ops.sigmoid, ops.relu, ops.erf, ops.sign])
def test_numbers_are_accepted_like_tensors(f: Any) -> None:
    assert f(0.5).item() == pytest.approx(f(np.array([0.5])).data[0], rel=1e-15)


@pytest.mark.parametrize("combine", [operator.add, operator.mul, operator.truediv, operator.pow])
def test_a_tensor_that_is_one_number_does_not_widen_an_array(combine: Any) -> None:
    """As in PyTorch: 0-d and float64 beside float32 with axes gives float32, and its gradient."""
    number = Tensor(2.0, requires_grad=True)
    array = Tensor(np.array([1.0, 3.0], np.float32), requires_grad=True)
    for y in (combine(array, number), combine(number, array)):
        assert y.dtype == np.float32
        by_array, by_number = grad(y.sum(), [array, number])
        assert (by_array.dtype, by_number.dtype) == (np.float32, np.float64)
    assert combine(number, Tensor(3.0)).dtype == np.float64
    assert combine(array, np.array([1.0, 2.0])).dtype == np.float64


def test_small_courtesies_of_numbers_and_masks() -> None:
    t = Tensor([1.5], requires_grad=True)
    assert +t is t and f"{t:.3f}" == "1.500" and f"{t}" == repr(t)
    mask = Tensor([True, False])
    assert np.array_equal((np.array([True, True]) & mask).data, [True, False])
    assert np.array_equal((mask ^ True).data, [False, True])
