"""Configurations and presets: what they count, what fits together, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.config import CHOICES, EncoderConfig, Seq2SeqConfig
from tinygrad_tf.models.encoder import Classifier, Encoder, MaskedLanguageModel
from tinygrad_tf.models.presets import PRESETS, preset
from tinygrad_tf.models.seq2seq import Transformer

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
        **{n: st.sampled_from(CHOICES[n]) for n in ("activation", "norm", "positions")},
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
    *({name: x} for name in ("activation", "norm", "positions") for x in ("swish", None)),
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
    proposed = int(caught.value.next.split("n_embd=")[1].split("`")[0])
    GPTConfig(vocab_size=5, n_embd=proposed, n_head=heads)


@pytest.mark.parametrize("given_fields", [{}, {"vocab_size": 5, "n_heads": 2}, {"n_embd": 8}])
def test_malformed_fields_are_refused(given_fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="configuration"):
        GPTConfig.from_dict(given_fields)


def test_an_unknown_preset_names_the_known() -> None:
    with pytest.raises(InputError, match="nano-cpu"):
        preset("nanocpu")


# --- encoder and encoder-decoder ---
VOCABULARIES = {"src_vocab_size": 9, "tgt_vocab_size": 7}


def test_round_trip() -> None:
    config = Seq2SeqConfig(**VOCABULARIES, d_k=3, d_v=5, norm="pre", label_smoothing=0.1)
    assert Seq2SeqConfig.from_dict(config.as_dict()) == config
    other = EncoderConfig(vocab_size=9, pooling="cls", cls_id=1, n_outputs=4)
    assert EncoderConfig.from_dict(other.as_dict()) == other


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "no tgt_vocab_size"),
        (VOCABULARIES | {"heads": 2}, "unknown fields heads"),
        (VOCABULARIES | {"d_model": "wide"}, "d_model is 'wide'"),
    ],
)
def test_a_damaged_configuration_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Seq2SeqConfig.from_dict(fields)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_model": 0}, "d_model is 0"),
        ({"n_heads": True}, "n_heads is True"),
        ({"n_decoder_layers": 0}, "n_decoder_layers is 0"),
        ({"d_v": -1}, "d_v is -1"),
        ({"n_heads": 5}, "d_model is 128, which 5 heads cannot share equally; use `d_model=125`"),
        ({"n_heads": 5, "d_k": 8}, "5 heads cannot share"),
        ({"norm": "both"}, "norm 'both' is not known; choose one of pre, post"),
        ({"activation": "tanh"}, "activation 'tanh'"),
        ({"positions": "none"}, "positions 'none'"),
        ({"tie_output": 1}, "tie_output is 1; give true or false"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing is -0.1"),
        ({"layer_norm_eps": None}, "layer_norm_eps is None"),
        ({"init_std": float("inf")}, "init_std is inf"),
        ({"share_embeddings": True}, "9 source and 7 target tokens cannot share"),
        ({"src_features": 3}, "of src_vocab_size and src_features both is given"),
        ({"src_vocab_size": None}, "neither is given"),
        ({"end_id": 7}, "end_id is 7 in a vocabulary of 7; give a whole number from 0 to 6"),
        ({"start_id": 0}, "special tokens share an id: pad_id=0, start_id=0, end_id=2"),
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Seq2SeqConfig(**(VOCABULARIES | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "of vocab_size and src_features neither is given"),
        ({"vocab_size": 9, "pooling": "max"}, "pooling 'max'"),
        ({"vocab_size": 9, "pooling": "cls"}, "needs a vocabulary and the id of its CLS token"),
        ({"src_features": 3, "pooling": "cls", "cls_id": 1}, "needs a vocabulary"),
        ({"vocab_size": 9, "cls_id": 3, "mask_id": 3}, "share an id"),
        ({"vocab_size": 9, "mask_id": 9}, "mask_id is 9"),
        ({"vocab_size": 9, "n_outputs": 0}, "n_outputs is 0"),
    ],
)
def test_an_encoder_too(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EncoderConfig(**options)


def test_a_masked_token_model_needs_a_mask() -> None:
    with pytest.raises(InputError, match="MASK"):
        MaskedLanguageModel(EncoderConfig(vocab_size=9))


def test_heads_need_not_divide_the_width() -> None:
    config = EncoderConfig(vocab_size=9, d_model=10, n_heads=3, d_k=2, d_v=4)
    assert Encoder(config)([[1, 2]]).shape == (1, 2, 10)


def test_the_papers_layers_have_their_number_of_parameters() -> None:
    """One of each kind at width 512, counted from the shapes of section 3."""
    base = {"d_model": 512, "n_heads": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    shared = {"share_embeddings": True, "tie_output": True, "tgt_vocab_size": 10}
    model = Transformer(Seq2SeqConfig(src_vocab_size=10, **base, **shared))
    attention, feed, norm = 4 * 512 * 512 + 512, 2_099_712, 2 * 512
    encoder, decoder = attention + feed + 2 * norm, 2 * attention + feed + 3 * norm
    assert model.parameter_count() == encoder + decoder + 10 * 512


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_weights_go_from_one_model_to_another(norm: str) -> None:
    config = Seq2SeqConfig(**VOCABULARIES, d_model=8, n_heads=2, norm=norm)
    one, other = Transformer(config, seed=1), Transformer(config, seed=2)
    src, tgt = [[3, 4, 5]], [[1, 4]]
    assert (one(src, tgt).data != other(src, tgt).data).any()
    other.load_state_dict(one.state_dict())
    assert (one(src, tgt).data == other(src, tgt).data).all()
    with pytest.raises(InputError, match=r"missing head\.weight"):
        encoder = EncoderConfig(vocab_size=9, d_model=8, n_heads=2, norm=norm)
        Classifier(encoder).load_state_dict(Encoder(encoder).state_dict())
