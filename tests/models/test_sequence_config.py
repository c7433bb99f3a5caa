"""Configurations of encoder and encoder-decoder: what fits together and what is refused."""

from typing import Any

import pytest

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import Classifier, Encoder, EncoderConfig, MaskedLanguageModel
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer

VOCABULARIES = {"src_vocab_size": 9, "tgt_vocab_size": 7}


def test_round_trip() -> None:
    config = Seq2SeqConfig(**VOCABULARIES, d_k=3, d_v=5, norm="pre", label_smoothing=0.1)
    assert Seq2SeqConfig.from_dict(config.as_dict()) == config
    other = EncoderConfig(vocab_size=9, pooling="cls", cls_id=1, n_outputs=4)
    assert EncoderConfig.from_dict(other.as_dict()) == other


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "no tgt_vocab_size"),
        (VOCABULARIES | {"heads": 2}, "unknown fields heads"),
        (VOCABULARIES | {"d_model": "wide"}, "d_model is 'wide'"),
    ],
)
def test_a_damaged_configuration_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Seq2SeqConfig.from_dict(given)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"d_model": 0}, "d_model is 0"),
        ({"n_heads": True}, "n_heads is True"),
        ({"n_decoder_layers": 0}, "n_decoder_layers is 0"),
        ({"d_v": -1}, "d_v is -1"),
        ({"n_heads": 5}, "d_model is 128, which 5 heads cannot share equally; make it 125"),
        ({"n_heads": 5, "d_k": 8}, "5 heads cannot share"),
        ({"norm": "both"}, "norm 'both' is not known; choose one of post, pre"),
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
def test_what_does_not_fit_together_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Seq2SeqConfig(**(VOCABULARIES | options))


@pytest.mark.parametrize(
    ("options", "told"),
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
def test_an_encoder_too(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
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
