"""Configurations and presets: what they count, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.config import CHOICES
from tinygrad_tf.models.presets import PRESETS, preset

COUNTS = {
    ("nano-cpu", 65): 804_096,
    ("baby", 65): 10_745_088,
    ("gpt2", 50_257): 124_439_808,
    ("seed", 3_771): 884_923,
}


def config(name: str, vocab_size: int) -> GPTConfig:
    return GPTConfig(**({"block_size": 32} | preset(name).model | {"vocab_size": vocab_size}))


@pytest.mark.parametrize(("name", "vocab_size"), COUNTS)
def test_presets_have_the_known_sizes(name: str, vocab_size: int) -> None:
    assert config(name, vocab_size).parameter_count() == COUNTS[name, vocab_size]


@pytest.mark.parametrize("name", ["nano-cpu", "seed", "micro", "default"])
def test_the_count_is_that_of_the_model(name: str) -> None:
    shape = config(name, 65)
    assert GPT(shape).parameter_count() == shape.parameter_count()


choices = st.fixed_dictionaries(
    {
        "vocab_size": st.integers(1, 9),
        "block_size": st.integers(1, 9),
        "n_layer": st.integers(1, 3),
        "n_embd": st.just(6),
        "n_head": st.sampled_from([1, 2, 3, 6]),
        "d_ff": st.none() | st.integers(1, 9),
        "qkv_bias": st.none() | st.booleans(),
        **{name: st.booleans() for name in ("bias", "tie_weights", "head_bias")},
        **{name: st.sampled_from(values) for name, values in CHOICES.items()},
    }
)


@given(choices)
def test_any_shape_is_counted_right_and_goes_round(fields: Any) -> None:
    shape = GPTConfig(**fields)
    assert GPT(shape).parameter_count() == shape.parameter_count()
    assert GPTConfig.from_dict(shape.as_dict()) == shape


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"gpt2"}))
def test_the_first_loss_is_that_of_guessing(name: str) -> None:
    shape = config(name, 65)
    gpt = GPT(shape, seed=1)
    gpt.eval()
    ids = np.random.default_rng(0).integers(0, 65, (4, min(32, shape.block_size)))
    targets = np.random.default_rng(1).integers(0, 65, ids.shape)
    assert gpt.loss(ids, targets).item() == pytest.approx(math.log(65), abs=0.1)


def test_initialisation_is_gpt2s() -> None:
    gpt = GPT(GPTConfig(vocab_size=65, n_layer=8, n_embd=128, n_head=4))
    for name, p in gpt.named_parameters().items():
        if name.endswith("bias"):
            assert not p.data.any()
        elif ".ln" in name or name.startswith("ln"):
            assert np.all(p.data == 1.0)
        else:
            std = 0.02 / math.sqrt(16) if name.endswith("c_proj.weight") else 0.02
            assert p.data.std() == pytest.approx(std, rel=0.05), name
            assert abs(p.data.mean()) < 4 * std / math.sqrt(p.size), name
            assert p.dtype == np.float32


def test_the_seed_decides_the_weights() -> None:
    shape = GPTConfig(vocab_size=5, n_embd=8, n_head=2, n_layer=1)
    first, same, other = (GPT(shape, seed).state_dict() for seed in (3, 3, 4))
    assert all(np.array_equal(first[n], same[n]) for n in first)
    assert not np.array_equal(first["wte.weight"], other["wte.weight"])


BAD: list[dict[str, Any]] = [
    *({name: 0} for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "d_ff")),
    *({name: -3} for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "d_ff")),
    *({name: 8.0} for name in ("vocab_size", "n_embd", "d_ff")),
    *({name: "8"} for name in ("vocab_size", "n_embd", "d_ff", "dropout", "init_std")),
    *({name: True} for name in ("n_layer", "d_ff", "dropout", "layer_norm_eps")),
    *({"dropout": x} for x in (-0.1, 1.0, math.nan, math.inf, None)),
    *({"layer_norm_eps": x} for x in (0.0, -1e-5, math.nan, math.inf, None)),
    *({"init_std": x} for x in (0.0, math.nan, math.inf)),
    *({name: "swish"} for name in CHOICES),
    *({name: None} for name in CHOICES),
    *({name: "false"} for name in ("bias", "qkv_bias", "tie_weights", "head_bias")),
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_bad_values_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))) as caught:
        GPTConfig(**({"vocab_size": 5} | wrong))
    assert caught.value.next


@given(st.integers(1, 200), st.integers(1, 50))
def test_heads_must_divide_the_width_and_the_remedy_does(width: int, heads: int) -> None:
    if width % heads == 0:
        GPTConfig(vocab_size=5, n_embd=width, n_head=heads)
        return
    with pytest.raises(InputError, match=f"n_embd is {width}, which {heads} heads") as caught:
        GPTConfig(vocab_size=5, n_embd=width, n_head=heads)
    proposed = int(caught.value.next.split("--n-embd ")[1].split(",")[0])
    GPTConfig(vocab_size=5, n_embd=proposed, n_head=heads)


@pytest.mark.parametrize("given_fields", [{}, {"vocab_size": 5, "n_heads": 2}, {"n_embd": 8}])
def test_malformed_fields_are_refused(given_fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="configuration"):
        GPTConfig.from_dict(given_fields)


def test_an_unknown_preset_names_the_known() -> None:
    with pytest.raises(InputError, match="nano-cpu"):
        preset("nanocpu")
