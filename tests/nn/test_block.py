"""The block of encoder and decoder: names, shapes, caches, heads one by one and fused."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tinygrad_tf import Tensor, no_grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import Dropout, MultiHeadAttention, record
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.cross_attention import CrossAttention
from tinygrad_tf.nn.masks import causal_mask, padding_mask

Array = npt.NDArray[Any]
B, T, S, C, H, F = 3, 4, 5, 12, 2, 20
X = np.random.default_rng(0).standard_normal((B, T, C)).astype(np.float32)
MEMORY = np.random.default_rng(1).standard_normal((B, S, C)).astype(np.float32)


def block(**options: Any) -> Block:
    """A block whose every parameter, biases too, is random and matters."""
    rng = np.random.default_rng(2)
    own: dict[str, Any] = {"dropout": Dropout(0.0, rng), "rng": rng, "std": 0.4, "proj_std": 0.4}
    made = Block(C, H, F, **({"norm": "post"} | own | options))
    for p in made.parameters():
        p.data += 0.2 * rng.standard_normal(p.shape, np.float32)
    return made


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [False, True])
def test_the_names_and_shapes_of_its_values(norm: str, cross: bool) -> None:
    """In the order of computation; d_k 3 and d_v 7 differ from every other number."""
    made = block(cross=cross, norm=norm, d_k=3, d_v=7, name="decoder.0")
    own = {"hook_q": (B, T, H, 3), "hook_k": (B, T, H, 3), "hook_v": (B, T, H, 7)}
    own |= {"hook_attn_scores": (B, H, T, T), "hook_pattern": (B, H, T, T), "hook_z": (B, T, H, 7)}
    other = own | {"hook_k": (B, S, H, 3), "hook_v": (B, S, H, 7)}
    other |= {"hook_attn_scores": (B, H, T, S), "hook_pattern": (B, H, T, S)}
    feed = {"mlp.hook_pre": (B, T, F), "mlp.hook_post": (B, T, F)}
    parts: list[tuple[str, dict[str, Any], str, str]] = [
        ("ln1", {f"attn.{n}": s for n, s in own.items()}, "hook_attn_out", "hook_resid_mid"),
        ("ln2", feed, "hook_mlp_out", "hook_resid_post"),
    ]
    if cross:
        inside = {f"cross_attn.{n}": s for n, s in other.items()}
        parts.insert(1, ("ln_cross", inside, "hook_cross_attn_out", "hook_resid_mid_cross"))
    expected: dict[str, tuple[int, ...]] = {"hook_resid_pre": (B, T, C)}
    for ln, values, out, after in parts:
        normalised = {f"{ln}.hook_normalized": (B, T, C)}
        around = {out: (B, T, C)}
        inner = normalised | values | around if norm == "pre" else values | around | normalised
        expected |= inner | {after: (B, T, C)}
    with record() as seen:
        y = made(Tensor(X), Tensor(MEMORY) if cross else None)
    assert y.shape == (B, T, C)
    assert {n: v.shape for n, v in seen.items()} == {
        f"decoder.0.{n}": s for n, s in expected.items()
    }
    assert list(seen) == [f"decoder.0.{n}" for n in expected]


@pytest.mark.parametrize("cross", [False, True])
def test_recorded_or_not_is_the_same(cross: bool) -> None:
    made, memory = block(cross=cross), Tensor(MEMORY) if cross else None
    mask = padding_mask(np.array([[1] * T, [1, 1, 0, 0], [1, 0, 0, 0]]), 0)
    plain = made(Tensor(X), memory, mask=mask).data
    with record():
        np.testing.assert_allclose(made(Tensor(X), memory, mask=mask).data, plain, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 7}])
@no_grad()
def test_a_cache_continues_where_it_stopped(norm: str, widths: dict[str, int]) -> None:
    made = block(cross=True, norm=norm, **widths)
    whole = made(Tensor(X), Tensor(MEMORY), mask=causal_mask(T)).data
    for cuts in ([1, 2, 3], [3], [2]):
        cache = made.new_cache(Tensor(MEMORY), T)
        parts, seen = [], 0
        for part in np.split(X, cuts, axis=1):
            seen += part.shape[1]
            mask = causal_mask(part.shape[1], seen)
            parts.append(made(Tensor(part), mask=mask, cache=cache).data)
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)


@no_grad()
def test_rows_of_a_cache_may_be_chosen_and_repeated() -> None:
    made, rows = block(cross=True), np.array([2, 0, 2])
    cache = made.new_cache(Tensor(MEMORY), T)
    made(Tensor(X[:, :2]), mask=causal_mask(2), cache=cache)
    cache.select(rows)
    y = made(Tensor(X[rows, 2:3]), mask=causal_mask(1, 3), cache=cache).data
    whole = made(Tensor(X[:, :3]), Tensor(MEMORY), mask=causal_mask(3)).data
    np.testing.assert_allclose(y, whole[rows, 2:], atol=1e-5)


def test_only_a_decoder_has_a_cache_for_the_memory() -> None:
    with pytest.raises(RuntimeError, match=r"encoder\.0 has no cross-attention"):
        block(name="encoder.0").new_cache(Tensor(MEMORY), T)
    with pytest.raises(InputError, match="norm 'none' is not known"):
        block(norm="none")


def test_the_memory_may_be_projected_before() -> None:
    rng = np.random.default_rng(3)
    for bias in (False, True):
        attn = CrossAttention(C, H, d_k=3, d_v=7, bias=bias, dropout=Dropout(0.0, rng), rng=rng)
        if attn.c_attn.bias is not None:
            attn.c_attn.bias.data[:] = rng.standard_normal(attn.c_attn.bias.shape)
        projected = attn.project(Tensor(MEMORY))
        assert projected.key.shape == (B, S, H * 3) and projected.value.shape == (B, S, H * 7)
        np.testing.assert_array_equal(
            attn(Tensor(X), projected).data, attn(Tensor(X), Tensor(MEMORY)).data
        )


@pytest.mark.parametrize("widths", [(6, 6), (3, 7)])
@pytest.mark.parametrize("crossed", [False, True])
def test_head_by_head_and_fused_agree(widths: tuple[int, int], crossed: bool) -> None:
    """To 1e-12 in float64: each head reads its own columns of W_Q, W_K and W_V."""
    rng, (d_k, d_v) = np.random.default_rng(4), widths
    kind = CrossAttention if crossed else MultiHeadAttention
    attn = kind(C, H, d_k=d_k, d_v=d_v, dropout=Dropout(0.0, rng), rng=rng, std=0.4)
    for p in attn.parameters():
        p.data = rng.standard_normal(p.shape) * 0.4
    x = X.astype(float)
    memory = MEMORY.astype(float) if crossed else x
    splits = np.cumsum([H * d_k, H * d_k])
    wq, wk, wv = np.split(attn.c_attn.weight.data, splits, axis=1)
    assert attn.c_attn.bias is not None and attn.c_proj.bias is not None
    bq, bk, bv = np.split(attn.c_attn.bias.data, splits)
    keep = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)[:, : memory.shape[1]]
    total = np.zeros((B, T, C)) + attn.c_proj.bias.data
    for h in range(H):
        k_at, v_at = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        q, k = x @ wq[:, k_at] + bq[k_at], memory @ wk[:, k_at] + bk[k_at]
        v = memory @ wv[:, v_at] + bv[v_at]
        scores = np.where(keep[:, None], q @ k.swapaxes(1, 2) / math.sqrt(d_k), -np.inf)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        total += weights @ v @ attn.c_proj.weight.data[v_at]
    given = (Tensor(x), Tensor(memory)) if crossed else (Tensor(x),)
    np.testing.assert_allclose(attn(*given, mask=keep[:, None, None]).data, total, atol=1e-12)


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
