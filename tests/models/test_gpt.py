"""The GPT as a function: causality, cache, long prompts, loss, refusals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf import grad, no_grad
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.generation import generate_tokens
from tinygrad_tf.models.soft_prompt import PromptedGPT
from tinygrad_tf.train.batches import Batch
from tinygrad_tf.train.parallel import Compute

VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "post", "bias": False, "activation": "relu"},
    {"positions": "sinusoidal", "tie_weights": False, "head_bias": True, "qkv_bias": False},
]


def make(options: dict[str, Any] | None = None, **more: Any) -> GPT:
    """A small model that is far from uniform."""
    fields: dict[str, Any] = {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "block_size": 12,
        "init_std": 0.3,
    }
    fields |= {**(options or {}), **more}
    fields.pop("prompted", None)
    return GPT(GPTConfig(vocab_size=9, **fields), seed=5)


def some_ids(length: int, rows: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 9, (rows, length))


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@settings(max_examples=15)
@given(length=st.integers(2, 12), place=st.integers(1, 11), token=st.integers(0, 8))
def test_a_token_changes_nothing_before_it(
    options: dict[str, Any], length: int, place: int, token: int
) -> None:
    gpt, ids = make(options), some_ids(length)
    place = min(place, length - 1)
    changed = ids.copy()
    changed[0, place] = (ids[0, place] + 1 + token % 8) % 9
    before, after = gpt(ids).data, gpt(changed).data
    np.testing.assert_array_equal(before[0, :place], after[0, :place])
    np.testing.assert_array_equal(before[1], after[1])
    assert np.all(np.any(before[0, place:] != after[0, place:], axis=-1))


@pytest.mark.parametrize("options", [*VARIANTS, {"prompted": True}], ids=str)
@settings(max_examples=15)
@given(cuts=st.sets(st.integers(1, 11), max_size=5))
@no_grad()
def test_the_cache_changes_no_logit(options: dict[str, Any], cuts: set[int]) -> None:
    ids = some_ids(12)
    model: Any = make(options)
    if options.get("prompted"):
        model = PromptedGPT(model, np.random.default_rng(1).standard_normal((3, 16)))
    cache, whole = model.new_cache(), model(ids).data
    for part in np.split(ids, sorted(cuts), axis=1):
        logits = model.next_logits(part, cache).data
        np.testing.assert_allclose(
            logits, whole[:, cache.length - 1 :][:, :1], atol=1e-5, rtol=1e-5
        )
    assert cache.length == 12


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("prompt", [1, 7, 12, 20])
def test_greedy_is_the_argmax_over_the_last_block_size_tokens(
    options: dict[str, Any], prompt: int
) -> None:
    gpt, ids = make(options), some_ids(prompt)
    text = ids
    for _ in range(16):
        chosen = gpt(text[:, -12:]).data[:, -1].argmax(-1)
        text = np.concatenate([text, chosen[:, None]], axis=1)
    np.testing.assert_array_equal(gpt.generate(ids, 16, temperature=0.0), text)


def test_rows_of_a_batch_do_not_see_one_another() -> None:
    gpt, ids = make(), some_ids(6, rows=3)
    together = gpt.generate(ids, 10, temperature=0.0)
    for row in range(3):
        alone = gpt.generate(ids[row : row + 1], 10, temperature=0.0)
        np.testing.assert_array_equal(alone[0], together[row])


def test_the_seed_decides_what_is_drawn() -> None:
    gpt, ids = make(), some_ids(3)
    first, same, other = (gpt.generate(ids, 20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(first[:, :3], ids)
    assert first.shape == (2, 23)


def test_generation_leaves_the_model_as_it_was() -> None:
    gpt = make(dropout=0.5)
    state = gpt.dropout_rng.bit_generator.state
    text = gpt.generate(some_ids(3), 5, temperature=0.0)
    np.testing.assert_array_equal(gpt.generate(some_ids(3), 5, temperature=0.0), text)
    assert gpt.training and gpt.drop.training
    assert gpt.dropout_rng.bit_generator.state == state
    assert all(p.grad is None for p in gpt.parameters())


def test_the_loss_is_mean_nats_over_targets_that_count() -> None:
    gpt, ids = make(), some_ids(6)
    targets = np.where(some_ids(6, seed=1) > 4, -1, ids)
    logits = gpt(ids).data.astype(float)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    picked = np.take_along_axis(log_probs, np.maximum(targets, 0)[..., None], -1)[..., 0]
    expected = -picked[targets >= 0].mean()
    assert gpt.loss(ids, targets).item() == pytest.approx(expected, rel=1e-5)
    batches = [Batch(ids, targets), Batch(ids, ids)]
    everything = [expected] * np.sum(targets >= 0) + [gpt.loss(ids, ids).item()] * ids.size
    assert Compute().mean_loss(gpt, batches) == pytest.approx(np.mean(everything), rel=1e-5)


def test_evaluation_is_without_dropout() -> None:
    gpt, ids = make(dropout=0.5), some_ids(6)
    evaluated = [Compute().mean_loss(model, [Batch(ids, ids)]) for model in (gpt, gpt, make())]
    assert evaluated[0] == evaluated[1] == evaluated[2]
    assert gpt.loss(ids, ids).item() != gpt.loss(ids, ids).item()


def test_a_tied_table_gets_both_gradients() -> None:
    tied = make()
    untied = make(tie_weights=False)
    state = tied.state_dict()
    untied.load_state_dict(state | {"lm_head.weight": state["wte.weight"]})
    ids = some_ids(6)
    whole = grad(tied.loss(ids, ids), tied.wte.weight)
    assert untied.lm_head is not None
    parts = grad(untied.loss(ids, ids), [untied.wte.weight, untied.lm_head.weight])
    np.testing.assert_allclose(whole, parts[0] + parts[1], atol=1e-6)


def test_equal_ids_differ_by_position_only() -> None:
    gpt = make(positions="sinusoidal", n_layer=1)
    ids = np.full((1, 6), 4)
    assert len(np.unique(gpt(ids).data[0].round(4), axis=0)) == 6
    gpt.position_table[:] = 0.0  # all positions alike: every row sees the same
    np.testing.assert_allclose(gpt(ids).data[0] - gpt(ids).data[0, :1], 0.0, atol=1e-5)


def test_parameter_names_are_gpt2s() -> None:
    block = [
        f"h.0.{part}.{kind}"
        for part in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        for kind in ("weight", "bias")
    ]
    names = ["wte.weight", "wpe.weight", *block, "ln_f.weight", "ln_f.bias"]
    assert list(make(n_layer=1).named_parameters()) == names
    shapes = {n: p.shape for n, p in make(n_layer=1).named_parameters().items()}
    assert shapes["h.0.attn.c_attn.weight"] == (16, 48)  # stored [in, out]
    assert shapes["h.0.mlp.c_fc.weight"] == (16, 64)


def test_float64_stays_float64() -> None:
    gpt = make(positions="sinusoidal").astype(np.float64)
    loss = gpt.loss(some_ids(5), some_ids(5))
    assert loss.dtype == np.float64
    assert {g.dtype for g in grad(loss, gpt.parameters())} == {loss.dtype}


def test_inputs_that_do_not_fit_are_refused() -> None:
    gpt = make()
    with pytest.raises(InputError, match="13 positions, but `block_size` is 12"):
        gpt(some_ids(13))
    with pytest.raises(InputError, match="13 positions"):
        gpt.next_logits(some_ids(5), advanced(gpt, 8))
    with pytest.raises(InputError, match=r"\(batch, time\)"):
        gpt(some_ids(5)[0])
    for wrong in (9, -1):
        with pytest.raises(IndexError):
            gpt(np.array([[0, wrong]]))
        with pytest.raises(InputError, match="0 to 8"):
            gpt.generate(np.array([[0, wrong]]), 1)
    with pytest.raises(TypeError):
        gpt(np.array([[0.5]]))
    with pytest.raises(InputError, match="at least one token"):
        gpt.generate(np.zeros((1, 0), int), 1)
    with pytest.raises(InputError, match="-1 new tokens"):
        gpt.generate(some_ids(2), -1)
    assert gpt.generate(some_ids(2), 0).shape == (2, 2)


@no_grad()
def advanced(gpt: GPT, length: int) -> Any:
    cache = gpt.new_cache()
    gpt.next_logits(some_ids(length), cache)
    return cache


@pytest.mark.parametrize(
    "options",
    [
        *({"temperature": t} for t in (-1.0, math.nan, math.inf)),
        {"top_k": 0},
        {"top_k": -1},
        *({"top_p": p} for p in (0.0, -0.5, 1.5, math.nan)),
    ],
    ids=str,
)
def test_bad_sampling_options_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(options))}` is"):
        generate_tokens(make(), some_ids(2), 1, **options)


def test_what_is_printed_shows_the_shape_and_the_parts() -> None:
    lines = repr(make(positions="sinusoidal")).split("\n")
    assert lines[0] == "GPT(2 layers x 2 heads x 16, context 12, 9 tokens; 6,736 parameters)"
    assert lines[1:3] == [
        "  wte: Embedding(weight (9, 16))",
        "  h.0 ... h.1: Block(3,280 parameters)",
    ]
    assert lines[-1] == "  ln_f: LayerNorm(weight (16,), bias (16,))"


def test_weights_that_are_not_finite_are_reported() -> None:
    gpt = make()
    gpt.wte.weight.data[:] = np.nan
    with pytest.raises(FailedError, match="logits are not finite"):
        gpt.generate(some_ids(2), 1)
