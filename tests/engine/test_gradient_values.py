"""Known values where engines go wrong: ties, edges, broadcasting, indexing, extreme numbers."""

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.gradients import Array, first_order, leaves
from tinygrad_tf import Tensor, grad, ops

F64 = np.float64


def gradients(f: Any, *inputs: Any, up: Any = None, dtype: Any = F64) -> list[Array]:
    """The gradients of Σ up·f, with `up` all ones unless given."""
    xs = leaves([np.asarray(x, dtype) for x in inputs])
    y = f(*xs)
    return grad(y, xs, upstream=np.ones(y.shape) if up is None else np.asarray(up, dtype))


def up_to(*shape: int) -> Array:
    """1, 2, 3, ... in that shape."""
    return np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)


nan, inf = math.nan, math.inf
KNOWN = {
    "reuse of a leaf": (lambda x: x * x + x, [3.0], None, [7.0]),
    "a leaf in quotient and sum": (
        lambda x, y: x / (x + y),
        [[1.0, 2.0], [3.0, 4.0]],
        None,
        [[3 / 16, 4 / 36], [-1 / 16, -2 / 36]],
    ),
    "a comparison has no gradient": (lambda x: x * (x < 0), [[-2.0, 3.0]], None, [[1.0, 0.0]]),
    "equal data, different leaves": (lambda x, y: x * y, [2.0, 2.0], None, [2.0, 2.0]),
    "broadcast both ways": (
        lambda a, b: a + b,
        [np.zeros((3, 1)), np.zeros((1, 4))],
        None,
        [np.full((3, 1), 4.0), np.full((1, 4), 3.0)],
    ),
    "0-d operand": (lambda s, m: s * m, [2.0, np.ones((2, 3))], None, [6.0, np.full((2, 3), 2.0)]),
    "zero-size broadcast": (
        lambda a, b: a + b,
        [np.ones((4, 0)), np.ones((4, 1))],
        None,
        [np.ones((4, 0)), np.zeros((4, 1))],
    ),
    "zero-size vector": (
        lambda a, b: a * b,
        [np.ones((4, 0)), np.ones(0)],
        None,
        [np.ones((4, 0)), np.ones(0)],
    ),
    "batched matmul": (
        lambda a, b: a @ b,
        [np.ones((2, 1, 3, 4)), np.ones((5, 4, 2))],
        None,
        [np.full((2, 1, 3, 4), 10.0), np.full((5, 4, 2), 6.0)],
    ),
    "repeated fancy index": (lambda x: x[[0, 0]], [[1.0]], None, [[2.0]]),
    "pair index": (
        lambda x: x[[0, 0], [1, 1]],
        [np.zeros((2, 3))],
        None,
        [[[0, 2, 0], [0, 0, 0]]],
    ),
    "mask that takes nothing": (
        lambda x: x[np.zeros((2, 3), bool)],
        [np.ones((2, 3))],
        None,
        [np.zeros((2, 3))],
    ),
    "mask and slice": (
        lambda x: x[np.array([True, False]), :2],
        [np.ones((2, 3))],
        [[5.0, 7.0]],
        [[[5, 7, 0], [0, 0, 0]]],
    ),
    "reversed": (lambda x: x[::-1], [np.zeros(3)], [1.0, 2.0, 3.0], [[3, 2, 1]]),
    "slice and new axis": (
        lambda x: x[1:3, None],
        [np.zeros(4)],
        [[5.0], [7.0]],
        [[0, 5, 7, 0]],
    ),
    "ellipsis and column": (
        lambda x: x[..., 0],
        [np.zeros((2, 2))],
        [5.0, 7.0],
        [[[5, 0], [7, 0]]],
    ),
    "maximum with itself": (lambda x: ops.maximum(x, x), [1.0], None, [1.0]),
    "var of equals": (ops.var, [[1.0, 1.0, 1.0]], None, [[0, 0, 0]]),
    "logsumexp of large": (ops.logsumexp, [[1000.0, 1000.0]], None, [[0.5, 0.5]]),
    "logsumexp with -inf": (ops.logsumexp, [[-inf, 0.0]], None, [[0, 1]]),
    "cross-entropy of extremes": (
        lambda x: ops.cross_entropy(x, [1]),
        [[[1000.0, 0.0]]],
        None,
        [[[1, -1]]],
    ),
    "layer norm of a constant row": (
        lambda x: ops.layer_norm(x, eps=1e-5),
        [[5.0, 5.0, 5.0]],
        [1.0, 0.0, 0.0],
        [[2 / 3 / math.sqrt(1e-5), -1 / 3 / math.sqrt(1e-5), -1 / 3 / math.sqrt(1e-5)]],
    ),
    "concatenate with itself": (
        lambda x: ops.concatenate([x, x], -1),
        [np.zeros((2, 2))],
        up_to(2, 4),
        [[[4, 6], [12, 14]]],
    ),
    "sigmoid saturates": (ops.sigmoid, [[1000.0, -1000.0]], None, [[0, 0]]),
    "tanh saturates": (ops.tanh, [[1000.0, -1000.0]], None, [[0, 0]]),
    "gelu": (ops.gelu, [1.0], None, [1.0833154705876864]),
    "gelu, tanh form": (lambda x: ops.gelu(x, "tanh"), [1.0], None, [1.0829640838457826]),
    "einsum of different lengths": (
        lambda x, y: ops.einsum("i,i", x, y),
        [[2.0, 2.0], [2.0]],
        None,
        [[2, 2], [4]],
    ),
    "repeat along a negative axis": (
        lambda x: ops.repeat(x, 2, axis=-1),
        [np.ones((2, 2))],
        up_to(2, 4),
        [[[3, 7], [11, 15]]],
    ),
    "cumsum of all": (ops.cumsum, [[[1.0, 2.0], [3.0, 4.0]]], None, [[[4, 3], [2, 1]]]),
    "softplus saturates": (ops.softplus, [[1000.0, -1000.0]], None, [[1, 0]]),
    "logsigmoid saturates": (ops.logsigmoid, [[1000.0, -1000.0]], None, [[0, 1]]),
    "silu saturates": (ops.silu, [[1000.0, -1000.0]], None, [[1, 0]]),
    "elu of large": (ops.elu, [[1000.0, -1000.0]], None, [[1, 0]]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_gradients(name: str) -> None:
    f, inputs, up, expected = KNOWN[name]
    for ours, known in zip(gradients(f, *inputs, up=up), expected, strict=True):
        assert type(ours) is np.ndarray and ours.shape == np.shape(known)
        np.testing.assert_allclose(ours, known, rtol=1e-12, atol=1e-15)


def test_known_values_at_the_edges() -> None:
    assert ops.cross_entropy([[1000.0, 0.0]], [1]).item() == 1000.0
    assert ops.gelu(1.0).item() == pytest.approx(0.8413447460685429, rel=1e-15)
    np.testing.assert_array_equal(ops.sigmoid(np.array([-1000.0, 0.0, 1000.0])).data, [0, 0.5, 1])
    np.testing.assert_array_equal(ops.logsumexp(np.array([-inf, -inf]), keepdims=True).data, [-inf])
    far = np.array([1000.0, -1000.0])
    np.testing.assert_array_equal(ops.softplus(far).data, [1000, 0])
    np.testing.assert_array_equal(ops.logsigmoid(far).data, [0, -1000])
    np.testing.assert_array_equal(ops.tanh(far).data, [1, -1])
    np.testing.assert_array_equal(ops.silu(far).data, [1000, 0])
    np.testing.assert_array_equal(ops.elu(far).data, [1000, -1])
    np.testing.assert_allclose(
        ops.softmax(np.array([2.0, 1.0, 0.1])).data,
        [0.6590011388859679, 0.24243297070471392, 0.09856589040931818],
        rtol=1e-15,
    )


def test_infinite_slopes_raise_nothing() -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        assert gradients(ops.sqrt, 0.0)[0] == inf
        assert gradients(lambda y: 0.0**y, -1.0)[0] == -inf


def test_a_tiny_divisor_does_not_underflow() -> None:
    dx, dy = gradients(lambda x, y: x / y, 1e-25, 1e-25, dtype=np.float32)
    assert dx == pytest.approx(1e25, rel=1e-6) and dy == pytest.approx(-1e25, rel=1e-6)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.uint16])
def test_embedding_adds_up_repeated_rows(kind: Any) -> None:
    ids = np.array([[1, 1], [3, 1]], kind)
    (dtable,) = gradients(lambda w: ops.embedding(w, ids), np.zeros((4, 2)))
    np.testing.assert_array_equal(dtable.sum(axis=1) / 2, [0, 3, 0, 1])
    (dtable,) = gradients(lambda w: ops.embedding(w, ids * 0), np.zeros((4, 2)))
    np.testing.assert_array_equal(dtable[:, 0], [4, 0, 0, 0])


def test_cross_entropy_with_nothing_counted_is_0() -> None:
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    loss = ops.cross_entropy(x, [-100, -100])
    assert loss.item() == 0.0
    np.testing.assert_array_equal(grad(loss, x), np.zeros((2, 3)))


def test_cross_entropy_leaves_ignored_targets_out_of_the_mean() -> None:
    logits = np.array([[2.0, 1.0, 0.1], [9.0, -9.0, 4.0]])
    assert ops.cross_entropy(logits, [0, -1], ignore_index=-1).item() == pytest.approx(
        0.4170300162778335, rel=1e-15
    )


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_a_float32_gradient_summed_over_a_million_rows(shape: tuple[int, ...]) -> None:
    bias = Tensor(np.zeros(shape, np.float32), requires_grad=True)
    rows = np.zeros((10**6, 2), np.float32)
    up = np.full((10**6, 2), 0.1, np.float32)
    np.testing.assert_allclose(grad(rows + bias, bias, upstream=up), 1e5, atol=1)
    if bias.ndim == 1:
        weight = np.eye(2, dtype=np.float32)
        y = ops.linear(rows, weight, bias)
        np.testing.assert_allclose(grad(y, bias, upstream=up), 1e5, atol=1)


def test_float32_sums_and_means_of_a_million_rows() -> None:
    for shape, axis in (((10**6, 2), 0), ((1000, 1000, 2), (0, 1)), ((1000, 1000, 2), (1, 0))):
        rows = np.full(shape, 0.1, np.float32)
        for keepdims in (False, True):
            total = ops.sum(rows, axis=axis, keepdims=keepdims)
            assert total.shape == np.sum(rows, axis=axis, keepdims=keepdims).shape
            np.testing.assert_allclose(total.data, 1e5, atol=1)
        np.testing.assert_allclose(ops.mean(rows, axis=axis).data, 0.1, rtol=1e-5)
    assert ops.sum(np.ones((10**4, 2), bool), axis=0).data.tolist() == [10**4] * 2


@pytest.mark.parametrize("masked", ["mask", "more queries than keys"])
def test_a_query_without_keys_gets_0_and_gradient_0(masked: str) -> None:
    shape = (1, 3, 4)
    q, k, v = (np.random.default_rng(i).normal(size=shape) for i in range(3))
    if masked == "mask":
        keep = np.array([[True] * 3, [False] * 3, [True] * 3])
        options: dict[str, Any] = {"mask": keep}
        empty = 1
    else:
        k, v, options, empty = k[:, :2], v[:, :2], {"causal": True}, 0
    y, found = first_order(
        lambda *x: ops.attention(*x, n_head=2, **options), [q, k, v], np.ones(shape)
    )
    assert np.all(y[:, empty] == 0.0) and np.all(found[0][:, empty] == 0.0)
    assert all(np.all(np.isfinite(g)) for g in [y, *found])


def test_softmax_of_a_row_of_minus_infinity_is_0() -> None:
    x = Tensor(np.array([[-inf, -inf], [0.0, -inf]]), requires_grad=True)
    y = ops.softmax(x)
    np.testing.assert_array_equal(y.data, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(grad(y, x, upstream=np.ones((2, 2))), np.zeros((2, 2)))


def test_softmax_sees_only_differences() -> None:
    expected = [0.2689414213699951, 0.7310585786300049]
    for pair in ([4.0, 5.0], [0.0, 1.0], [1000.0, 1001.0]):
        np.testing.assert_allclose(ops.softmax(np.array(pair)).data, expected, rtol=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-7), (np.float64, 1e-15)])
def test_erf_is_exact(dtype: Any, tolerance: float) -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-30, 1e30, 61)]).astype(dtype)
    ours = ops.erf(x).data
    assert ours.dtype == dtype
    exact = np.array([math.erf(v) for v in x.tolist()])
    assert np.max(np.abs(ours - exact)) <= tolerance
    np.testing.assert_array_equal(ops.erf(np.array([inf, -inf, 0.0], dtype)).data, [1, -1, 0])


def test_gelu_in_float32_is_exact() -> None:
    x = np.linspace(-9, 9, 5001, dtype=np.float32)
    exact = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
    np.testing.assert_allclose(ops.gelu(x).data, exact, atol=6e-7)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (-1, -2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_mean_and_var_are_numpys(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3))
    for dtype in (np.float32, np.float64):
        t = Tensor(x.astype(dtype), requires_grad=True)
        for name, options in (("mean", {}), ("var", {}), ("var", {"ddof": 1})):
            if axis == () and options:
                continue
            ours = getattr(ops, name)(t, axis, keepdims=keepdims, **options)
            numpys = getattr(np, name)(x, axis=axis, keepdims=keepdims, **options)
            assert ours.dtype == dtype and ours.shape == np.shape(numpys)
            np.testing.assert_allclose(ours.data, numpys, rtol=1e-5)
            assert grad(ours, t, upstream=np.ones(ours.shape)).dtype == dtype


def test_shapes_follow_numpy() -> None:
    x = np.arange(12.0).reshape(2, 6)
    t = Tensor(x)
    for ours, numpys in zip(ops.split(t, [1, 3], axis=-1), np.split(x, [1, 3], -1), strict=True):
        np.testing.assert_array_equal(ours.data, numpys)
    np.testing.assert_array_equal(ops.stack([t, t], -1).data, np.stack([x, x], -1))
    np.testing.assert_array_equal(t.reshape(3, 1, 4).squeeze(1).data, x.reshape(3, 4))
    np.testing.assert_array_equal(t.reshape((3, -1)).T.data, x.reshape(3, 4).T)
    np.testing.assert_array_equal(t.transpose(1, 0).swapaxes(0, -1).data, x)
    np.testing.assert_array_equal(ops.expand_dims(t, (0, -1)).data, x[None, ..., None])


def test_dropout_scales_what_it_keeps() -> None:
    x = Tensor(np.ones(100_000, np.float32), requires_grad=True)
    y = ops.dropout(x, 0.25, np.random.default_rng(0))
    assert set(np.unique(y.data)) == {np.float32(0), np.float32(4 / 3)}
    assert np.mean(y.data == 0) == pytest.approx(0.25, abs=0.006)  # four standard deviations
    np.testing.assert_array_equal(grad(y, x, upstream=np.ones(x.shape)), y.data)
    assert ops.dropout(x, 0.0, np.random.default_rng(0)) is x


def test_label_smoothing_mixes_the_target_with_all_classes() -> None:
    logits, targets = np.array([[2.0, 1.0, 0.1], [0.5, -1.0, 3.0]]), np.array([0, 1])
    each = -ops.log_softmax(logits).data
    expected = 0.9 * each[[0, 1], targets] + 0.1 * each.mean(axis=1)
    for reduction, loss in (("none", expected), ("sum", sum(expected)), ("mean", expected.mean())):
        ours = ops.cross_entropy(logits, targets, label_smoothing=0.1, reduction=reduction)
        np.testing.assert_allclose(ours.data, loss, rtol=1e-14)


def test_rms_norm_by_hand() -> None:
    y = ops.rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), eps=0.0)
    np.testing.assert_allclose(y.data, [[3 / math.sqrt(12.5), 8 / math.sqrt(12.5)]], rtol=1e-15)


def test_order_among_equals_is_that_of_the_entries() -> None:
    x = np.array([1.0, 3.0, 1.0, 3.0, 2.0])
    assert ops.argsort(x).data.tolist() == [0, 2, 4, 1, 3]
    assert ops.argsort(x, descending=True).data.tolist() == [1, 3, 4, 0, 2]
    values, places = ops.topk(x, 3)
    assert values.data.tolist() == [3, 3, 2] and places.data.tolist() == [1, 3, 4]
    values, places = ops.topk(x, 3, largest=False)
    assert values.data.tolist() == [1, 1, 2] and places.data.tolist() == [0, 2, 4]
    assert not places.requires_grad
    assert ops.sort(x, descending=True).data.tolist() == [3, 3, 2, 1, 1]


def test_einsum_is_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 4)), rng.normal(size=(1, 3))
    for subscripts, *operands in (
        ("bij,jk->bik", a, b),
        ("bii->b", a),
        ("bii", a),
        ("...i,ij", a, b),
        ("bij, xi -> bj", a, c),
        ("...ij->...ji", a),
        ("bij,jk,xj->kb", a, b, c),
        ("->", np.array(2.0)),
        ("...,...", a, c),
    ):
        ours = ops.einsum(subscripts, *operands)
        theirs = np.einsum(subscripts, *operands)
        assert ours.shape == np.shape(theirs)
        np.testing.assert_allclose(ours.data, theirs, rtol=1e-13, atol=1e-15)
    # The diagonal is chosen: what stands beside it does not matter, be it infinite.
    assert ops.einsum("ii", np.array([[1.0, inf], [nan, 2.0]])).item() == 3.0
