"""Known values where engines go wrong: ties, edges, broadcasting, indexing, extreme numbers."""

import math

import numpy as np
import pytest

from tests.engine.gradients import gradients
from tinygrad_tf import ops
from tinygrad_tf.types import Array


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
    "maximum with itself": (lambda x: ops.maximum(x, x), [1.0], None, [1.0]),
    "logsumexp of large": (ops.logsumexp, [[1000.0, 1000.0]], None, [[0.5, 0.5]]),
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
