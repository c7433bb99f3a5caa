"""The encoder with its heads: pooling, classes, numbers, hidden tokens."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf import grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import (
    IGNORE,
    Classifier,
    Encoder,
    EncoderConfig,
    MaskedLanguageModel,
    Regressor,
    mask_tokens,
)
from tinygrad_tf.nn import record
from tinygrad_tf.train.optim import AdamW

V, PAD, CLS, MASK = 11, 0, 1, 2
SRC = np.array([[5, 3, 4, 6], [7, 8, PAD, PAD], [9, PAD, PAD, PAD]])
SMALL: dict[str, Any] = {"vocab_size": V, "d_model": 12, "n_heads": 2, "d_ff": 16, "max_length": 9}


def config(**options: Any) -> EncoderConfig:
    return EncoderConfig(**(SMALL | options))


def test_every_position_sees_every_real_one() -> None:
    model = Encoder(config()).astype(float)
    before = model(SRC).data
    changed = SRC.copy()
    changed[0, 3] = 10
    after = model(changed).data
    assert (np.abs(after[0] - before[0]).max(axis=-1) > 1e-9).all()
    np.testing.assert_array_equal(after[1:], before[1:])
    with record() as seen:
        model(SRC)
    assert not seen["encoder.1.attn.hook_pattern"].data[1, :, :, 2:].any()


def test_the_mean_is_over_real_positions() -> None:
    model = Encoder(config()).astype(float)
    x, pooled = model(SRC).data, model.pool(SRC).data
    expected = [x[0].mean(axis=0), x[1, :2].mean(axis=0), x[2, 0]]
    np.testing.assert_allclose(pooled, expected, atol=1e-12)
    np.testing.assert_array_equal(model.pool([[PAD, PAD]]).data, np.zeros((1, 12)))


def test_cls_is_put_before_each_source() -> None:
    model = Encoder(config(pooling="cls", cls_id=CLS)).astype(float)
    by_hand = Encoder(config()).astype(float)
    by_hand.load_state_dict(model.state_dict())
    with_cls = np.concatenate([np.full((3, 1), CLS), SRC], axis=1)
    np.testing.assert_allclose(model.pool(SRC).data, by_hand(with_cls).data[:, 0], atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"pooling": "cls", "cls_id": CLS}])
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_pad_changes_no_prediction(kind: Any, options: dict[str, Any]) -> None:
    model = kind(config(n_outputs=3, **options)).astype(float)
    together = model(SRC).data
    assert together.shape == (3, 3)
    np.testing.assert_allclose(model(SRC[1:2, :2]).data, together[1:2], atol=1e-12)


def test_vectors_are_classified() -> None:
    model = Classifier(config(vocab_size=None, src_features=5, n_outputs=3)).astype(float)
    src = np.random.default_rng(0).standard_normal((2, 4, 5))
    both = model(src, [4, 2]).data
    np.testing.assert_allclose(model(src[1:, :2]).data, both[1:], atol=1e-12)


def test_the_losses() -> None:
    classes = Classifier(config(n_outputs=3)).astype(float)
    log_probs = ops.log_softmax(classes(SRC)).data
    expected = -(log_probs[0, 2] + log_probs[1, 0] + log_probs[2, 1]) / 3
    assert classes.loss(SRC, [2, 0, 1]).item() == pytest.approx(expected, rel=1e-12)
    numbers = Regressor(config()).astype(float)
    wanted = np.array([1.0, -2.0, 0.5])
    expected = np.mean((numbers(SRC).data[:, 0] - wanted) ** 2)
    assert numbers.loss(SRC, wanted).item() == pytest.approx(expected, rel=1e-12)
    assert numbers.loss(SRC, wanted[:, None]).item() == pytest.approx(expected, rel=1e-12)
    for wrong in (wanted[:2], wanted[None], np.zeros((3, 3))):
        with pytest.raises(InputError, match=r"predictions of shape \(3, 1\)"):
            numbers.loss(SRC, wrong)
    with pytest.raises(InputError, match=r"predictions of shape \(3, 3\)"):
        Regressor(config(n_outputs=3)).loss(SRC, wanted)


@pytest.mark.parametrize("options", [{}, {"pooling": "cls", "cls_id": CLS}])
@pytest.mark.parametrize(
    ("src", "message"),
    [
        ([3, 4], r"a source of shape \(2,\)"),
        ([[3, V]], "run from . to 11; the model knows 0 to 10"),
        ([[3] * 10], r"1[01] positions in the encoder, but the model knows 9"),
        ([[0.5]], "float64 ids"),
    ],
)
def test_sources_that_do_not_fit_are_refused(options: Any, src: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Classifier(config(n_outputs=2, **options)).loss(src, [0])


# --- hidden tokens ---
rows = st.lists(st.lists(st.integers(3, V - 1), max_size=12), min_size=1, max_size=4)


@given(rows, st.integers(0, 99), st.sampled_from([0.15, 0.5]))
def test_a_share_of_each_row_is_chosen(sentences: Any, seed: int, rate: float) -> None:
    ids = np.full((len(sentences), 13), PAD)
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = sentence
    options: dict[str, Any] = {"mask_id": MASK, "vocab_size": V, "special_ids": [PAD, CLS, MASK]}
    hidden, labels = mask_tokens(ids, np.random.default_rng(seed), rate=rate, **options)
    again = mask_tokens(ids, np.random.default_rng(seed), rate=rate, **options)
    np.testing.assert_array_equal(hidden, again[0])
    np.testing.assert_array_equal(labels, again[1])
    chosen = labels != IGNORE
    for sentence, count in zip(sentences, chosen.sum(axis=1), strict=True):
        assert count == (max(1, round(rate * len(sentence))) if sentence else 0)
    np.testing.assert_array_equal(labels[chosen], ids[chosen])
    np.testing.assert_array_equal(hidden[~chosen], ids[~chosen])
    assert not np.isin(ids[chosen], [PAD, CLS, MASK]).any()
    assert not np.isin(hidden[chosen], [PAD, CLS]).any()


def test_eight_in_ten_are_masked_one_drawn_one_kept() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(3, 1000, (400, 100))
    hidden, labels = mask_tokens(ids, rng, mask_id=2, vocab_size=1000, special_ids=[0, 1, 2])
    chosen = labels != IGNORE
    assert (chosen.sum(axis=1) == 15).all()
    shares = [np.mean(hidden[chosen] == 2), np.mean(hidden[chosen] == ids[chosen])]
    np.testing.assert_allclose(shares, [0.8, 0.1], atol=0.02)
    # Every place of a row is as likely as any other.
    np.testing.assert_allclose(chosen.mean(axis=0), 0.15, atol=0.08)


def test_nothing_to_hide_is_refused() -> None:
    with pytest.raises(InputError, match="all 2 tokens are special"):
        mask_tokens([[0]], np.random.default_rng(0), mask_id=1, vocab_size=2, special_ids=[0, 1])


@pytest.mark.parametrize("options", [{}, {"pooling": "cls", "cls_id": CLS}])
def test_a_masked_token_model_learns_what_follows_what(options: dict[str, Any]) -> None:
    """Sentences count up by one: either neighbour tells the hidden token."""
    model = MaskedLanguageModel(config(mask_id=MASK, d_model=24, **options))
    optimizer, rng = AdamW(model, lr=5e-3), np.random.default_rng(0)
    for _ in range(150):
        ids = rng.integers(3, 7, (16, 1)) + np.arange(5)
        hidden, labels = model.hide(ids, rng)
        optimizer.zero_grad()
        model.loss(hidden, labels).backward()
        optimizer.step()
    model.eval()
    ids = np.arange(3, 7)[:, None] + np.arange(5)
    ids[:, 2] = MASK
    logits = model(ids)
    assert logits.shape == (4, 5, V)
    np.testing.assert_array_equal(logits.data[:, 2].argmax(axis=-1), np.arange(3, 7) + 2)


def test_hidden_tokens_are_told_by_their_own_vectors() -> None:
    """CLS, where there is one, is seen by all and told by none."""
    model = MaskedLanguageModel(config(mask_id=MASK, pooling="cls", cls_id=CLS)).astype(float)
    plain = MaskedLanguageModel(config(mask_id=MASK)).astype(float)
    plain.load_state_dict(model.state_dict())
    with_cls = np.concatenate([np.full((3, 1), CLS), SRC], axis=1)
    np.testing.assert_allclose(model(SRC).data, plain(with_cls).data[:, 1:], atol=1e-12)


@pytest.mark.parametrize("kind", [Classifier, Regressor, MaskedLanguageModel])
def test_gradients_reach_every_parameter(kind: Any) -> None:
    model = kind(config(mask_id=MASK, qkv_bias=True)).astype(float)
    targets = {Classifier: [0, 0, 0], Regressor: [1.0, 2.0, 3.0]}.get(kind, SRC)
    if kind is Classifier:
        model = kind(config(n_outputs=2)).astype(float)
    found = grad(model.loss(SRC, targets), model.named_parameters())
    assert all(np.isfinite(g).all() and g.any() for g in found.values())
