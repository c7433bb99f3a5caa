"""Recording and patching a forward pass."""

import threading
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, grad, ops
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.nn import record

# T = 5 differs from the head size 6, so that (T, T) and (T, head size) cannot be confused.
B, T, H, C, F = 3, 5, 2, 12, 20
IDS = np.random.default_rng(0).integers(0, 7, (B, T))


def model(**options: Any) -> GPT:
    fields = {"n_layer": 2, "n_head": H, "n_embd": C, "d_ff": F, "block_size": 8, "init_std": 0.3}
    return GPT(GPTConfig(vocab_size=7, **(fields | options)))  # type: ignore[arg-type]


def block_shapes(i: int) -> dict[str, tuple[int, ...]]:
    """The values of one block in the order of computation, with their shapes."""
    by_head = (B, T, H, C // H)
    return {
        f"blocks.{i}.{name}": shape
        for name, shape in {
            "hook_resid_pre": (B, T, C),
            "ln1.hook_normalized": (B, T, C),
            "attn.hook_q": by_head,
            "attn.hook_k": by_head,
            "attn.hook_v": by_head,
            "attn.hook_attn_scores": (B, H, T, T),
            "attn.hook_pattern": (B, H, T, T),
            "attn.hook_z": by_head,
            "hook_attn_out": (B, T, C),
            "hook_resid_mid": (B, T, C),
            "ln2.hook_normalized": (B, T, C),
            "mlp.hook_pre": (B, T, F),
            "mlp.hook_post": (B, T, F),
            "hook_mlp_out": (B, T, C),
            "hook_resid_post": (B, T, C),
        }.items()
    }


def test_the_names_and_shapes_of_a_gpt() -> None:
    expected: dict[str, tuple[int, ...]] = {"hook_embed": (B, T, C), "hook_pos_embed": (T, C)}
    expected |= block_shapes(0) | block_shapes(1) | {"ln_final.hook_normalized": (B, T, C)}
    with record() as values:
        logits = model()(IDS)
    assert {name: v.shape for name, v in values.items()} == expected
    assert list(values) == list(expected)
    assert logits.shape == (B, T, 7)


def test_what_is_recorded_is_what_was_computed() -> None:
    gpt = model()
    with record() as values:
        gpt(IDS)
    pattern = values["blocks.1.attn.hook_pattern"].data
    np.testing.assert_allclose(pattern.sum(-1), 1.0, atol=1e-6)
    assert not pattern[..., ~np.tri(T, dtype=bool)].any()
    scores = values["blocks.1.attn.hook_attn_scores"].data
    assert np.all(np.isneginf(scores[..., ~np.tri(T, dtype=bool)]))
    q, k = (values[f"blocks.1.attn.hook_{n}"].data.swapaxes(1, 2) for n in "qk")
    visible = np.tri(T, dtype=bool)
    dots = q @ k.swapaxes(-1, -2) / np.sqrt(C // H)
    np.testing.assert_allclose(scores[..., visible], dots[..., visible], atol=1e-5)
    summed = values["blocks.0.hook_resid_pre"].data + values["blocks.0.hook_attn_out"].data
    np.testing.assert_allclose(values["blocks.0.hook_resid_mid"].data, summed, atol=1e-6)
    post = values["blocks.0.hook_resid_post"].data
    np.testing.assert_array_equal(post, values["blocks.1.hook_resid_pre"].data)


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "post"}, {"positions": "sinusoidal", "tie_weights": False}, {"dropout": 0.4}],
)
def test_recording_changes_no_logit_and_no_gradient(options: Any) -> None:
    plain, recorded = model(**options), model(**options)
    loss = plain.loss(IDS, IDS)
    with record():
        same = recorded.loss(IDS, IDS)
    assert same.item() == pytest.approx(loss.item(), abs=1e-6)
    for g, h in zip(grad(loss, plain.parameters()), grad(same, recorded.parameters()), strict=True):
        np.testing.assert_allclose(g, h, atol=1e-5)
    plain.eval()
    recorded.eval()
    with record():
        logits = recorded(IDS).data
    np.testing.assert_allclose(plain(IDS).data, logits, atol=1e-6 * max(1, np.abs(logits).max()))


def test_every_name_can_be_patched_and_acts() -> None:
    gpt = model()
    with record() as values:
        plain = gpt(IDS).data
    for name in values:
        # Something that a softmax or a norm that follows cannot undo.
        noise = np.random.default_rng(1).random(values[name].shape, np.float32)
        with record({name: lambda value, noise=noise: value * (1.0 + noise)}):
            patched = gpt(IDS).data
        assert np.abs(patched - plain).max() > 1e-4, name


def test_a_patch_replaces_what_is_used_and_recorded() -> None:
    gpt = model()
    name = "blocks.0.attn.hook_pattern"
    with record({name: lambda weights: Tensor(np.zeros(weights.shape, np.float32))}) as values:
        gpt(IDS)
    assert not values[name].data.any()
    assert not values["blocks.0.attn.hook_z"].data.any()


def test_an_unpatched_pass_follows_unchanged() -> None:
    gpt = model()
    before = gpt(IDS).data
    with record({"hook_embed": lambda x: x * 0.0}):
        gpt(IDS)
    np.testing.assert_array_equal(gpt(IDS).data, before)


def test_a_patch_of_no_value_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"blocks\.9.*hook_embed"), record({"blocks.9": lambda x: x}):
        model()(IDS)


def test_recorders_nest_and_survive_exceptions() -> None:
    gpt = model()
    with record() as outer:
        with record() as inner:
            gpt(IDS)
        assert "hook_embed" in inner and not outer
        with pytest.raises(ZeroDivisionError), record():
            raise ZeroDivisionError
        gpt(IDS)
    assert list(outer) == list(inner)


def test_each_thread_records_for_itself() -> None:
    gpt = model()
    with record() as values:
        thread = threading.Thread(target=gpt, args=(IDS,))
        thread.start()
        thread.join()
    assert values == {}


def test_gradients_of_recorded_values() -> None:
    gpt = model()
    with record() as values:
        loss = gpt.loss(IDS, IDS)
    pattern = values["blocks.0.attn.hook_pattern"]
    gradient = grad(loss, pattern)
    assert gradient.shape == pattern.shape and np.any(gradient)
    assert ops.sum(pattern).item() == pytest.approx(B * H * T, rel=1e-5)
