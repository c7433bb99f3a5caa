"""Batches: each target counted once, the same for the same seed, and continued bit for bit."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.tokens import TokenFile
from tinygrad_tf.train.batches import (
    IGNORE,
    DocumentBatches,
    WindowBatches,
    evaluation_batches,
    training_batches,
)


def text_split(size):
    """A split whose token at each place is the place itself, so that a batch shows its source."""
    return TokenFile("training", np.arange(size, dtype=np.uint32))


def document_split(lengths):
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenFile("training", np.arange(starts[-1] + 1, dtype=np.uint32), starts)


def targets(batches):
    """The places of all targets that count, and how often; checks the shift on the way."""
    places = Counter()
    for batch in batches:
        used = batch.targets != IGNORE
        assert batch.ids.shape == batch.targets.shape
        assert batch.ids.dtype == batch.targets.dtype == np.int64
        assert batch.ids.min() >= 0
        assert np.all(batch.targets[used] == batch.ids[used] + 1)
        # Padding is to the right only, and fills no row
        assert np.all(used[:, 0])
        assert np.all(used[:, 1:] <= used[:, :-1])
        assert np.any(used[:, -1])  # and no column
        assert batch.count == used.sum()
        places.update(batch.targets[used].tolist())
    return places


splits = st.one_of(
    st.integers(10, 80).map(text_split),
    st.lists(st.integers(1, 20), min_size=1, max_size=30).map(document_split),
)
blocks = st.integers(1, 9)
sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32)


@given(splits, blocks, sizes)
def test_evaluation_counts_every_target_once_the_same_way(split, block_size, batch_size):
    batches = list(evaluation_batches(split, block_size, batch_size))
    assert targets(batches) == Counter(range(1, len(split.tokens)))
    assert all(b.ids.shape[0] <= batch_size and b.ids.shape[1] <= block_size for b in batches)
    again = list(evaluation_batches(split, block_size, batch_size))
    assert all(
        np.array_equal(a.ids, b.ids) and np.array_equal(a.targets, b.targets)
        for a, b in zip(batches, again, strict=True)
    )


@given(st.lists(st.integers(1, 20), min_size=1, max_size=400), blocks, st.integers(1, 3), seeds)
def test_each_epoch_visits_every_piece_once(lengths, block_size, batch_size, seed):
    split = document_split(lengths)
    batches = DocumentBatches(split, block_size, batch_size, seed)
    for _ in range(2):
        epoch = [batches.next_batch() for _ in range(batches.batches_per_epoch)]
        assert targets(epoch) == Counter(range(1, len(split.tokens)))
        rows = [len(batch.ids) for batch in epoch]
        assert max(rows) <= batch_size
        assert max(rows) - min(rows) <= 1
        assert max(batch.ids.shape[1] for batch in epoch) == min(block_size, max(lengths))


def test_documents_are_whole_and_cut_only_when_too_long():
    split = document_split([3, 10, 4])
    batches = DocumentBatches(split, 4, 2, seed=0)
    rows = {
        tuple(row[row != IGNORE].tolist())
        for _ in range(batches.batches_per_epoch)
        for row in batches.next_batch().targets
    }
    assert rows == {
        (1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13), (14, 15, 16, 17)
    }  # fmt: skip


def test_similar_lengths_go_together():
    lengths = np.random.Generator(np.random.PCG64(0)).integers(1, 60, 2000)
    batches = DocumentBatches(document_split(lengths), 64, 16, seed=0)
    epoch = [batches.next_batch() for _ in range(batches.batches_per_epoch)]
    used = sum(batch.count for batch in epoch) / sum(batch.ids.size for batch in epoch)
    assert used > 0.9  # about a half without sorting


def test_epochs_differ_and_lengths_come_in_no_order():
    split = document_split([3, 5, 7, 9] * 50)
    batches = DocumentBatches(split, 16, 4, seed=0)
    epochs = [[batches.next_batch() for _ in range(50)] for _ in range(2)]
    assert any(not np.array_equal(a.ids, b.ids) for a, b in zip(epochs[0], epochs[1], strict=True))
    widths = [batch.ids.shape[1] for batch in epochs[0]]
    assert widths != sorted(widths)


@given(st.integers(2, 50), blocks, sizes, seeds)
def test_windows_are_full_and_consecutive(size, block_size, batch_size, seed):
    split = text_split(size)
    if size < block_size + 1:
        with pytest.raises(InputError, match=f"{size} tokens and needs block_size"):
            WindowBatches(split, block_size, batch_size, seed)
        return
    batch = WindowBatches(split, block_size, batch_size, seed).next_batch()
    assert batch.ids.shape == (batch_size, block_size)
    assert np.array_equal(batch.targets, batch.ids + 1)
    assert np.all(np.diff(batch.ids, axis=1) == 1)
    assert batch.count == batch_size * block_size


def test_windows_start_everywhere_equally_often():
    batches = WindowBatches(text_split(12), 4, 8000, seed=3)
    counts = np.bincount(batches.next_batch().ids[:, 0])
    assert len(counts) == 8  # places 0 to 7, the last of which reaches the last token
    assert np.all(np.abs(counts - 1000) < 150)


@given(splits, blocks, sizes, seeds, st.integers(0, 20), st.integers(1, 20), seeds)
def test_restored_batches_continue_bit_for_bit(split, block, size, seed, before, after, other):
    straight = training_batches(split, block, size, seed)
    for _ in range(before):
        straight.next_batch()
    state = json.loads(json.dumps(straight.state()))
    resumed = training_batches(split, block, size, other)
    resumed.restore(state)
    for _ in range(after):
        a, b = straight.next_batch(), resumed.next_batch()
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.targets, b.targets)
    assert straight.state() == resumed.state()


@pytest.mark.parametrize("split", [text_split(100), document_split([5] * 20)])
def test_seed_decides(split):
    first, again, other = (
        training_batches(split, 5, 4, seed).next_batch().ids for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_documents_or_windows_by_what_the_split_has():
    assert isinstance(training_batches(text_split(9), 2, 1, 0), WindowBatches)
    assert isinstance(training_batches(document_split([9]), 2, 1, 0), DocumentBatches)


def test_state_of_another_order_is_refused():
    windows = WindowBatches(text_split(50), 4, 2, 0)
    few = DocumentBatches(document_split([5] * 8), 8, 2, 0)
    many = DocumentBatches(document_split([5] * 8), 8, 1, 0)
    for batches, state in [
        (windows, few.state()),
        (few, windows.state()),
        (few, many.state()),
        (few, {**few.state(), "cursor": 99}),
        (few, {**few.state(), "epoch": "1"}),
        (windows, {}),
        (windows, {**windows.state(), "state": "x"}),
        (windows, {**windows.state(), "state": str(1 << 200)}),
        (windows, {**windows.state(), "inc": str(-1)}),
        (windows, {**windows.state(), "bit_generator": "MT19937"}),
        (windows, {**windows.state(), "has_uint32": None}),
    ]:
        expected = batches.state()
        with pytest.raises(InputError):
            batches.restore(state)
        assert batches.state() == expected


@pytest.mark.parametrize("options", [(0, 1, 0), (1, 0, 0), (-3, 1, 0), (1, 1, -1)])
def test_options_out_of_range_are_refused(options):
    for split in (text_split(50), document_split([5])):
        with pytest.raises(InputError):
            training_batches(split, *options)


def test_nothing_to_predict_is_refused():
    for size in (0, 1):
        with pytest.raises(InputError, match="nothing to predict"):
            list(evaluation_batches(text_split(size), 4, 2))


@given(st.integers(1, 6), st.integers(1, 9))
def test_a_share_of_the_pieces_comes_from_all_over_the_split(every: int, block_size: int) -> None:
    """Every so-many-th window or document, whole, and nothing else."""
    split = text_split(100)
    taken = [
        b for batch in evaluation_batches(split, block_size, 4, every) for b in batch.ids[:, 0]
    ]
    starts = range(0, split.targets, block_size * every)
    assert sorted(taken) == sorted(split.tokens[start] for start in starts)
    rows = [row for batch in evaluation_batches(split, 200, 3, every) for row in batch.targets]
    assert sum(int((row != IGNORE).sum()) for row in rows) == split.targets


def test_a_share_of_documents_is_of_all_lengths() -> None:
    lengths = np.arange(1, 41)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    split = TokenFile("training", np.zeros(starts[-1] + 1, np.uint8), starts)
    counts = [
        int((row != IGNORE).sum())
        for batch in evaluation_batches(split, 64, 8, every=4)
        for row in batch.targets
    ]
    assert sorted(counts) == lengths[::4].tolist()
