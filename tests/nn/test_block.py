"""The block of encoder and decoder: names, shapes, caches, heads one by one and fused."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tinygrad_tf import Tensor, no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import Dropout, record
from tinygrad_tf.nn.block import Block
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
        cache = made.new_cache(T, Tensor(MEMORY))
        parts, seen = [], 0
        for part in np.split(X, cuts, axis=1):
            seen += part.shape[1]
            mask = causal_mask(part.shape[1], seen)
            parts.append(made(Tensor(part), mask=mask, cache=cache).data)
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)


@no_grad()
def test_rows_of_a_cache_may_be_chosen_and_repeated() -> None:
    made, rows = block(cross=True), np.array([2, 0, 2])
    cache = made.new_cache(T, Tensor(MEMORY))
    made(Tensor(X[:, :2]), mask=causal_mask(2), cache=cache)
    cache.select(rows)
    y = made(Tensor(X[rows, 2:3]), mask=causal_mask(1, 3), cache=cache).data
    whole = made(Tensor(X[:, :3]), Tensor(MEMORY), mask=causal_mask(3)).data
    np.testing.assert_allclose(y, whole[rows, 2:], atol=1e-5)


def test_only_a_decoder_keeps_the_memory() -> None:
    assert block().new_cache(T, Tensor(MEMORY)).memory is None
    with pytest.raises(InputError, match="norm 'none' is not known"):
        block(norm="none")


def test_pre_and_post_norm_place_the_norms() -> None:
    for norm in ("pre", "post"):
        made, x = block(norm=norm), Tensor(X)
        if norm == "pre":
            x = x + made.attn(made.ln_1(x))
            x = x + made.mlp(made.ln_2(x))
        else:
            x = made.ln_1(x + made.attn(x))
            x = made.ln_2(x + made.mlp(x))
        np.testing.assert_allclose(made(Tensor(X)).data, x.data, atol=1e-5)
