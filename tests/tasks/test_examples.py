"""Batches of examples: each once an epoch, padded, exact to take up again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import EncoderConfig, MaskedLanguageModel
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.tasks.examples import (
    ExampleBatches,
    HiddenExamples,
    LabelledExamples,
    PairExamples,
    in_batches,
)
from tinygrad_tf.train.parallel import Compute, loss_and_gradients
from tinygrad_tf.types import IGNORE

PAD = 0


def drawn_pairs(count: int, seed: int = 0) -> PairExamples:
    rng = np.random.default_rng(seed)
    sources = [rng.integers(3, 20, rng.integers(1, 9)) for _ in range(count)]
    targets = [rng.integers(3, 20, rng.integers(1, 9)) for _ in range(count)]
    return PairExamples(sources, targets, PAD)


def masked_model() -> MaskedLanguageModel:
    config = EncoderConfig(vocab_size=20, d_model=8, n_heads=2, n_layers=1, mask_id=1, max_length=9)
    return MaskedLanguageModel(config)


def rows_of(batch) -> list[tuple]:
    return [
        tuple(tuple(np.atleast_1d(part[i])) for part in batch.arguments)
        for i in range(len(batch.targets))
    ]


def unpadded(batch) -> list[tuple]:
    return [tuple(tuple(x for x in part if x != PAD) for part in row) for row in rows_of(batch)]


@given(st.integers(1, 70), st.integers(1, 20), st.integers(0, 5))
def test_every_example_once_an_epoch(count: int, batch_size: int, seed: int) -> None:
    pairs = drawn_pairs(count)
    batches = ExampleBatches(pairs, batch_size, seed)
    whole = [row for batch in in_batches(pairs, 7) for row in unpadded(batch)]
    per_epoch = -(-count // batch_size)
    for _ in range(2):
        epoch = [batches.next_batch() for _ in range(per_epoch)]
        assert max(len(b.targets) for b in epoch) <= batch_size
        assert sorted(row for b in epoch for row in unpadded(b)) == sorted(whole)
    assert sum(b.count for b in epoch) == int(pairs.targets.sum())


def test_examples_of_similar_length_share_a_batch() -> None:
    pairs = drawn_pairs(640)
    batches = ExampleBatches(pairs, 16, 0)
    shares = []
    for _ in range(40):
        ids = batches.next_batch().arguments[1]
        shares.append(np.count_nonzero(ids) / ids.size)
    assert np.mean(shares) > 0.95


@pytest.mark.parametrize("kind", ["pairs", "hidden"])
def test_a_position_is_found_again_exactly(kind: str) -> None:
    rng = np.random.default_rng(0)
    if kind == "pairs":
        examples = drawn_pairs(50)
    else:
        examples = HiddenExamples([rng.integers(2, 20, 8) for _ in range(50)], masked_model(), 0.3)
    batches, again = (ExampleBatches(examples, 8, 3) for _ in range(2))
    for _ in range(11):
        batches.next_batch()
    again.restore(batches.state())
    for _ in range(20):
        ours, theirs = batches.next_batch(), again.next_batch()
        for a, b in zip(ours.arguments, theirs.arguments, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_position_of_other_examples_is_refused() -> None:
    state = ExampleBatches(drawn_pairs(50), 8, 0).state()
    with pytest.raises(InputError, match="7 batches an epoch, and these make 5"):
        ExampleBatches(drawn_pairs(40), 8, 0).restore(state)
    with pytest.raises(InputError, match="not one of examples"):
        ExampleBatches(drawn_pairs(50), 8, 0).restore({"seed": 0})


def test_no_examples_or_no_batch_is_refused() -> None:
    with pytest.raises(InputError, match="no examples"):
        ExampleBatches(PairExamples([], [], PAD), 8, 0)
    with pytest.raises(InputError, match="`batch_size` is 0"):
        ExampleBatches(drawn_pairs(3), 0, 0)


def test_dense_sources_are_padded_with_zeros_and_tell_their_lengths() -> None:
    rng = np.random.default_rng(0)
    sources = [rng.normal(size=(n, 5)) for n in (2, 4, 3)]
    pairs = PairExamples(sources, [np.array([3, 4])] * 3, PAD)
    src, tgt, lengths = pairs.batch(np.array([2, 0]), rng).arguments
    assert src.shape == (2, 3, 5) and src.dtype == np.float32 and lengths.tolist() == [3, 2]
    np.testing.assert_allclose(src[1, :2], sources[0], rtol=1e-6)
    assert not src[1, 2].any() and tgt.tolist() == [[3, 4], [3, 4]]


@pytest.mark.parametrize("dense", [False, True])
def test_a_split_batch_has_the_gradient_of_the_whole(dense: bool) -> None:
    """What `count` and `take` promise: shards weighed by their targets are the whole batch."""
    rng = np.random.default_rng(0)
    shape = {"src_features": 5} if dense else {"src_vocab_size": 20}
    config = Seq2SeqConfig(tgt_vocab_size=20, d_model=16, n_heads=2, max_length=10, **shape)
    model = Transformer(config).astype(np.float64)
    sources = [rng.normal(size=(n, 5)) if dense else rng.integers(3, 20, n) for n in (2, 7, 4, 5)]
    pairs = PairExamples(sources, [rng.integers(3, 20, n) for n in (1, 3, 8, 2)], PAD)
    batch = pairs.batch(np.arange(4), rng)
    whole, gradients = loss_and_gradients(model, batch)
    parts, shares = Compute(3).gradients(model, batch)
    assert parts == pytest.approx(whole)
    for name, g in gradients.items():
        np.testing.assert_allclose(shares[name], g, atol=1e-6)


def test_evaluation_batches_are_always_the_same() -> None:
    rng = np.random.default_rng(0)
    examples = HiddenExamples([rng.integers(2, 20, 8) for _ in range(30)], masked_model(), 0.2)
    first, second = ([b.arguments for b in in_batches(examples, 8)] for _ in range(2))
    for (a, x), (b, y) in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(x, y)
    half = sum(len(b.targets) for b in in_batches(examples, 8, every=2))
    assert half == 15


def test_hidden_tokens_are_counted_as_they_are_hidden() -> None:
    rng = np.random.default_rng(0)
    sources = [rng.integers(2, 20, rng.integers(1, 9)) for _ in range(40)]
    examples = HiddenExamples(sources, masked_model(), 0.3)
    for batch in in_batches(examples, 8):
        assert batch.count == np.count_nonzero(batch.arguments[1] != IGNORE)
    assert sum(b.count for b in in_batches(examples, 8)) == examples.targets.sum()


def test_labels_stay_with_their_texts() -> None:
    sources = [np.full(n, n) for n in range(1, 9)]
    examples = LabelledExamples(sources, np.arange(1, 9), PAD)
    batches = ExampleBatches(examples, 3, 0)
    for _ in range(6):
        src, labels = batches.next_batch().arguments
        assert src.max(axis=1).tolist() == labels.tolist()
