"""The plain layers: known values, shapes, statistics."""

import math
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import (
    Block,
    Dropout,
    Embedding,
    FeedForward,
    LayerNorm,
    Linear,
    sinusoidal_positions,
)

TABLE = sinusoidal_positions(16, 64)


def dropout(rate: float = 0.0, seed: int = 0) -> Dropout:
    return Dropout(rate, np.random.default_rng(seed))


# --- positions ------------------------------------------------------------------------------------
EXACT = {  # source document S0 prints some of these with six digits
    (0, 0): 0.0,
    (0, 1): 1.0,
    (1, 0): 0.8414709848078965,
    (1, 1): 0.5403023058681398,
    (1, 2): 0.6815613503552693,
    (1, 3): 0.7317609757987247,
    (1, 4): 0.5331684399140229,
    (1, 5): 0.8460091102817079,
    (2, 1): -0.4161468365471424,
    (3, 2): 0.7782725224195125,
    (5, 9): -0.010342318905209005,
    (7, 6): 0.1885811074834826,
    (9, 6): -0.6081086168269857,
    (10, 8): -0.020683531529582043,
    (12, 3): -0.9106063483606912,
    (15, 0): 0.6502878401571168,
    (15, 1): -0.7596879128588213,
    (15, 9): 0.03102253171061849,
    (1, 54): 0.0004216964909303456,
    (15, 54): 0.006325405369963846,
    (15, 55): 0.9999799944233413,
    (15, 56): 0.004743398702460742,
    (15, 62): 0.0020002808143475435,
    (15, 63): 0.9999979994363307,
}


def test_the_sinusoidal_table() -> None:
    assert TABLE.shape == (16, 64) and TABLE.dtype == np.float64
    for place, value in EXACT.items():
        assert TABLE[place] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("d_model", [2, 10, 64])
def test_every_position_has_the_same_length_and_shifts_are_rotations(d_model: int) -> None:
    table = sinusoidal_positions(50, d_model)
    np.testing.assert_allclose(np.sum(table**2, axis=1), d_model / 2, rtol=1e-12)
    gram = table @ table.T  # depends on the distance alone
    np.testing.assert_allclose(np.diagonal(gram, 7), gram[0, 7], rtol=1e-9)


def test_the_table_does_not_depend_on_its_length() -> None:
    np.testing.assert_array_equal(sinusoidal_positions(100, 64)[:16], TABLE)


# --- layers ---------------------------------------------------------------------------------------
def test_layer_norm_of_one_two_three_four() -> None:
    y = LayerNorm(4)(Tensor(np.array([1.0, 2.0, 3.0, 4.0], np.float32))).data
    np.testing.assert_allclose(y, [-1.341635, -0.447212, 0.447212, 1.341635], atol=1e-6)
    exact = ops.layer_norm(np.array([1.0, 2.0, 3.0, 4.0]), eps=0.0).data
    np.testing.assert_allclose(exact, np.array([-3, -1, 1, 3]) / math.sqrt(5), rtol=1e-15)


def test_layer_norm_is_per_token() -> None:
    rng = np.random.default_rng(0)
    layer = LayerNorm(8)
    layer.weight.data[:] = rng.normal(size=8)
    assert layer.bias is not None
    layer.bias.data[:] = rng.normal(size=8)
    x = rng.normal(3.0, 5.0, (2, 3, 8)).astype(np.float32)
    y = layer(Tensor(x)).data
    plain = (y - layer.bias.data) / layer.weight.data
    np.testing.assert_allclose(plain.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(plain.std(-1), 1.0, atol=1e-4)
    np.testing.assert_allclose(layer(Tensor(x[1, 2])).data, y[1, 2], rtol=1e-6)
    np.testing.assert_allclose(layer(Tensor(x * 7 + 2)).data, y, atol=1e-4)
    assert LayerNorm(8, bias=False).bias is None


def test_linear_is_x_w_plus_b() -> None:
    layer = Linear(3, 2, rng=np.random.default_rng(0), std=0.5)
    assert layer.bias is not None and not layer.bias.data.any()
    layer.bias.data[:] = [1.0, -1.0]
    x = np.random.default_rng(1).normal(size=(4, 5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        layer(Tensor(x)).data, x @ layer.weight.data + layer.bias.data, rtol=1e-5
    )
    assert Linear(400, 500, rng=np.random.default_rng(0), std=0.02).weight.data.std() == (
        pytest.approx(0.02, rel=0.01)
    )


def test_embedding_gives_equal_ids_equal_rows() -> None:
    layer = Embedding(5, 3, rng=np.random.default_rng(0))
    rows = layer(np.array([[0, 4], [4, 2]], np.uint16))
    assert rows.shape == (2, 2, 3)
    np.testing.assert_array_equal(rows.data[0, 1], rows.data[1, 0])
    np.testing.assert_array_equal(rows.data[1, 1], layer.weight.data[2])


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
def test_feed_forward(activation: str) -> None:
    layer = FeedForward(
        2, 6, activation=activation, dropout=dropout(), rng=np.random.default_rng(0), std=0.5
    )
    x = Tensor(np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32))
    hidden = {
        "relu": ops.relu,
        "gelu": ops.gelu,
        "gelu_tanh": lambda h: ops.gelu(h, "tanh"),
    }[activation](layer.c_fc(x))
    np.testing.assert_allclose(layer(x).data, layer.c_proj(hidden).data, rtol=1e-6)


def test_unknown_choices_are_refused() -> None:
    options: dict[str, Any] = {"dropout": dropout(), "rng": np.random.default_rng(0)}
    with pytest.raises(InputError, match=r"swish.*relu"):
        FeedForward(2, 2, activation="swish", **options)
    with pytest.raises(InputError, match="between"):
        Block(2, 1, 2, norm="between", **options)
    for rate in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="dropout"):
            dropout(rate)


# --- dropout --------------------------------------------------------------------------------------
def test_dropout_statistics_and_gradient() -> None:
    x = Tensor(np.ones((1000, 100), np.float32), requires_grad=True)
    y = dropout(0.2)(x)
    assert y.dtype == np.float32
    assert np.mean(y.data == 0) == pytest.approx(0.2, abs=0.006)
    assert y.data.mean() == pytest.approx(1.0, abs=0.007)
    assert set(np.unique(y.data)) == {np.float32(0), np.float32(1.25)}
    np.testing.assert_array_equal(grad(ops.sum(y), x), y.data)


def test_dropout_follows_its_generator_and_rests_in_eval() -> None:
    x = Tensor(np.ones(100, np.float32))
    first, second = dropout(0.5, 1), dropout(0.5, 1)
    a, b = first(x).data, first(x).data
    np.testing.assert_array_equal(second(x).data, a)
    assert not np.array_equal(a, b)
    first.eval()
    state = first.rng.bit_generator.state
    assert first(x) is x and first.mask((2, 2), np.float32) is None
    assert first.rng.bit_generator.state == state  # evaluating costs no random numbers
    assert dropout(0.0)(x) is x
