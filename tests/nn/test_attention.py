"""Multi-head attention: masks, heads, caches, other sequences, and theorems about them."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tinygrad_tf import Tensor, grad, no_grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import Block, Dropout, LayerCache, MultiHeadAttention, record
from tinygrad_tf.nn.masks import padding_mask

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
X = Tensor(RNG.normal(size=(2, 5, 12)).astype(np.float32))
MEMORY = Tensor(RNG.normal(size=(2, 7, 12)).astype(np.float32))


def layer(**options: Any) -> MultiHeadAttention:
    """Two heads on 12 channels, with weights large enough to tell positions apart."""
    rate = options.pop("rate", 0.0)
    return MultiHeadAttention(
        12,
        2,
        dropout=Dropout(rate, np.random.default_rng(1)),
        rng=np.random.default_rng(2),
        std=0.4,
        proj_std=0.4,
        **options,
    )


def naive(attn: MultiHeadAttention, x: Array, memory: Array, allowed: Array) -> Array:
    """Attention head by head, from the slices of its weights, in float64."""
    d_k, d_v = attn.key_width // 2, attn.value_width // 2
    w, b = attn.c_attn.weight.data.astype(float), attn.c_attn.bias.data.astype(float)
    parts = []
    for head in range(2):
        q_at = slice(head * d_k, (head + 1) * d_k)
        k_at = slice(2 * d_k + q_at.start, 2 * d_k + q_at.stop)
        v_at = slice(4 * d_k + head * d_v, 4 * d_k + (head + 1) * d_v)
        q = x @ w[:, q_at] + b[q_at]
        k = memory @ w[:, k_at] + b[k_at]
        v = memory @ w[:, v_at] + b[v_at]
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(d_k)
        scores = np.where(allowed, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        parts.append(weights / weights.sum(-1, keepdims=True) @ v)
    out = np.concatenate(parts, -1) @ attn.c_proj.weight.data
    return np.asarray(out + attn.c_proj.bias.data)


@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}, {"d_k": 4, "d_v": 4}])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_each_head_computes_from_its_slices(widths: Any, causal: bool, recorded: bool) -> None:
    attn = layer(causal=causal, **widths)
    attn.c_attn.bias.data[:] = RNG.normal(size=attn.c_attn.bias.shape)
    allowed = np.tri(5, dtype=bool) if causal else np.ones((5, 5), bool)
    expected = naive(attn, X.data, X.data, allowed)
    if recorded:
        with record():
            y = attn(X)
    else:
        y = attn(X)
    assert y.shape == (2, 5, 12) and y.dtype == np.float32
    np.testing.assert_allclose(y.data, expected, atol=2e-5)


@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}])
@pytest.mark.parametrize("recorded", [False, True])
def test_queries_may_come_from_another_sequence(widths: Any, recorded: bool) -> None:
    attn = layer(**widths)
    expected = naive(attn, X.data, MEMORY.data, np.ones((5, 7), bool))
    if recorded:
        with record() as values:
            y = attn(X, MEMORY)
        assert values["hook_pattern"].shape == (2, 2, 5, 7)
    else:
        y = attn(X, MEMORY)
    np.testing.assert_allclose(y.data, expected, atol=2e-5)
    np.testing.assert_allclose(attn(X, X).data, attn(X).data, atol=1e-5)


def test_gradients_reach_both_sequences_and_all_weights() -> None:
    attn = layer()
    x, memory = (Tensor(t.data, requires_grad=True) for t in (X, MEMORY))
    found = grad(ops.sum(ops.square(attn(x, memory))), [x, memory, *attn.parameters()])
    assert all(np.any(g) and np.all(np.isfinite(g)) for g in found)


def test_masks_boolean_additive_and_padding_agree() -> None:
    attn = layer()
    keep = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)[:, None, None, :]  # (B, 1, 1, S)
    additive = np.where(keep, 0.0, -np.inf)
    expected = naive(attn, X.data, X.data, keep[:, 0])
    results = [attn(X, mask=m).data for m in (keep, additive, additive.astype(np.float32))]
    with record() as values:
        results.append(attn(X, mask=additive).data)
    assert values["hook_pattern"].dtype == np.float32
    assert not values["hook_pattern"].data[0, :, :, 3:].any()
    for y in results:
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, expected, atol=2e-5)
    # What stands at padded places changes nothing, bit for bit.
    other = X.data.copy()
    other[0, 3:] = 99.0
    np.testing.assert_array_equal(attn(Tensor(other), mask=keep).data[0, :3], results[0][0, :3])


def test_causal_attention_does_not_look_ahead() -> None:
    attn = layer(causal=True)
    y = attn(X).data
    for t in range(1, 5):
        changed = X.data.copy()
        changed[:, t:] += 1.0
        np.testing.assert_array_equal(attn(Tensor(changed)).data[:, :t], y[:, :t])


def test_without_positions_attention_is_permutation_equivariant() -> None:
    order = np.array([3, 0, 4, 1, 2])
    attn = layer()
    np.testing.assert_allclose(
        attn(Tensor(X.data[:, order])).data, attn(X).data[:, order], atol=1e-5
    )
    np.testing.assert_allclose(
        attn(X, Tensor(MEMORY.data[:, ::-1])).data, attn(X, MEMORY).data, atol=1e-5
    )


def test_a_cache_is_refused_where_it_would_lose_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="no_grad"):
        layer(causal=True)(X, cache=LayerCache(5))


@no_grad()
def test_a_cache_continues_where_it_stopped() -> None:
    attn = layer(causal=True)
    whole = attn(X).data
    for cuts in ([1, 2, 3, 4], [3], [2, 4]):
        cache = LayerCache(5)
        parts = [attn(Tensor(part), cache=cache).data for part in np.split(X.data, cuts, axis=1)]
        np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=1e-5)
        assert cache.length == 5


def test_dropout_drops_weights_in_training_only() -> None:
    attn = layer(rate=0.5)
    y = attn(X).data
    assert not np.allclose(attn(X).data, y)
    attn.eval()
    np.testing.assert_allclose(attn(X).data, layer()(X).data, atol=1e-6)


def test_dropout_is_the_same_recorded_or_not() -> None:
    with record():
        recorded = layer(rate=0.3)(X).data
    np.testing.assert_allclose(layer(rate=0.3)(X).data, recorded, atol=1e-5)


def test_heads_share_the_channels_equally() -> None:
    with pytest.raises(InputError, match="12 channels cannot be divided among 5 heads"):
        MultiHeadAttention(12, 5, dropout=Dropout(0.0, RNG), rng=np.random.default_rng(0))


@pytest.mark.parametrize("bias", [False, True])
def test_weight_counts_of_the_paper(bias: bool) -> None:
    """512 wide, 8 heads: 1,048,576 weights in attention, 2,099,712 in the feed-forward."""
    block = Block(512, 8, 2048, bias=bias, dropout=Dropout(0.0, RNG), rng=RNG)
    if bias:
        assert block.mlp.parameter_count() == 2_099_712
    else:
        assert block.attn.parameter_count() == 1_048_576


@pytest.mark.parametrize("bias", [False, True])
def test_the_memory_may_be_projected_before(bias: bool) -> None:
    attn = layer(d_k=3, d_v=5, bias=bias)
    projected = attn.project(MEMORY)
    assert projected.key.shape == (2, 7, 6) and projected.value.shape == (2, 7, 10)
    np.testing.assert_array_equal(attn(X, projected).data, attn(X, MEMORY).data)


def test_the_shapes_of_the_small_example() -> None:
    """You are welcome PAD: embedding 6, two heads of 3, without biases; 108 weights in Q, K, V."""
    rng = np.random.default_rng(5)
    attn = MultiHeadAttention(6, 2, bias=False, dropout=Dropout(0.0, rng), rng=rng, std=0.5)
    assert attn.c_attn.weight.shape == (6, 18) and attn.c_attn.weight.size == 3 * 36 == 108
    assert attn.c_proj.weight.shape == (6, 6)
    x = Tensor(rng.standard_normal((1, 4, 6)))
    with record() as values:
        y = attn(x, mask=padding_mask(np.array([[57, 62, 17, 1]]), 1))
    shapes = {name: value.shape for name, value in values.items()}
    assert shapes["hook_q"] == shapes["hook_k"] == shapes["hook_v"] == (1, 4, 2, 3)
    assert shapes["hook_attn_scores"] == shapes["hook_pattern"] == (1, 2, 4, 4)
    assert shapes["hook_z"] == (1, 4, 2, 3) and y.shape == (1, 4, 6)
    q, k = (values[n].data.swapaxes(1, 2) for n in ("hook_q", "hook_k"))
    scores = values["hook_attn_scores"].data
    np.testing.assert_allclose(
        scores[..., :3], (q @ k.swapaxes(2, 3) / 1.7320508075688772)[..., :3], atol=1e-12
    )
    assert np.isneginf(scores[..., 3]).all()
    # Heads are columns of the projection: a reshape without the swap mixes positions.
    whole = ops.matmul(x, attn.c_attn.weight[:, :6]).data
    for head in range(2):
        own = x.data @ attn.c_attn.weight.data[:, 3 * head : 3 * head + 3]
        np.testing.assert_allclose(q[:, head], own, atol=1e-12)
    assert not np.allclose(whole.reshape(1, 2, 4, 3), q)
