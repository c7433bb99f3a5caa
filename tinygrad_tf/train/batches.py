"""Token files to batches: random windows, whole documents, and the whole of a split."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import random_generator
from tinygrad_tf.text.tokens import TokenFile
from tinygrad_tf.train.order import EpochOrder, not_a_state
from tinygrad_tf.types import IGNORE


class Examples(Protocol):
    """Examples to learn from: the arguments of a model's `loss`, and their number of targets."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `model.loss`, arrays whose first axis is that of the examples."""
        ...

    @property
    def count(self) -> int:
        """The number of targets that the mean loss is over."""
        ...

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the examples."""
        ...


@dataclass(frozen=True)
class Batch:
    """Input ids (B, T) and, for each, the id that follows it (B, T), or IGNORE; both int64."""

    ids: NDArray[np.int64]
    targets: NDArray[np.int64]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The ids and the targets."""
        return self.ids, self.targets

    @property
    def count(self) -> int:
        """The number of targets that count in the loss."""
        return int(np.count_nonzero(self.targets != IGNORE))

    def take(self, rows: NDArray[np.intp]) -> "Batch":
        """Return some of the rows."""
        return Batch(self.ids[rows], self.targets[rows])


class Batches(Protocol):
    """An endless, seeded order of training batches that can be left and taken up again."""

    def next_batch(self) -> Examples:
        """Return the next batch."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the position, exactly, as plain JSON."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` gave; InputError when it is none of this order."""
        ...


class WindowBatches:
    """Windows of `block_size` tokens that start anywhere, drawn at random.

    InputError when the split is shorter than block_size + 1, or an option is out of range.
    """

    def __init__(self, split: TokenFile, block_size: int, batch_size: int, seed: int) -> None:
        _require_positive(block_size=block_size, batch_size=batch_size)
        if split.targets < block_size:
            raise InputError(
                f"the {split.name} split has {len(split.tokens):,} tokens and needs "
                f"block_size + 1 = {block_size + 1:,}",
                "use a smaller `block_size` or a longer text",
            )
        self._tokens = split.tokens
        self._batch_size = batch_size
        self._offsets = np.arange(block_size + 1)
        self._random = random_generator(seed)

    def __repr__(self) -> str:
        rows, columns = self._batch_size, len(self._offsets) - 1
        return f"WindowBatches({rows} x {columns} of {len(self._tokens):,} tokens)"

    def next_batch(self) -> Batch:
        """Return the next batch: ids and targets (batch_size, block_size)."""
        last = len(self._tokens) - len(self._offsets)
        starts = self._random.integers(0, last, size=(self._batch_size, 1), endpoint=True)
        return _shifted(self._tokens[starts + self._offsets])

    def state(self) -> dict[str, Any]:
        """Return the state of the generator; its two 128-bit words as strings."""
        state: dict[str, Any] = dict(self._random.bit_generator.state)
        words = {name: str(word) for name, word in state.pop("state").items()}
        return {**state, **words}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` gave."""
        try:
            self._random.bit_generator.state = {
                "bit_generator": state["bit_generator"],
                "state": {name: int(state[name]) for name in ("state", "inc")},
                "has_uint32": state["has_uint32"],
                "uinteger": state["uinteger"],
            }
        except (KeyError, TypeError, ValueError, OverflowError) as fault:
            raise not_a_state("windows") from fault


class DocumentBatches:
    """Whole documents, every one of them once an epoch, in a new seeded order each time.

    A document longer than `block_size` is cut into consecutive pieces, of which each target
    counts once; pieces of similar length go together, as in `EpochOrder`. InputError when there
    are no documents or an option is out of range.
    """

    def __init__(self, split: TokenFile, block_size: int, batch_size: int, seed: int) -> None:
        _require_positive(block_size=block_size, batch_size=batch_size)
        self._begins, self._lengths = _pieces(split, block_size)
        self._tokens = split.tokens
        self._order = EpochOrder(self._lengths, batch_size, seed, "documents")
        self.batches_per_epoch = self._order.batches_per_epoch

    def __repr__(self) -> str:
        return f"DocumentBatches({len(self._lengths):,} pieces, {self._order})"

    def next_batch(self) -> Batch:
        """Return the next batch: rows padded to the longest, at most block_size."""
        pieces = self._order.next_rows()
        return _padded(self._tokens, self._begins[pieces], self._lengths[pieces])

    def state(self) -> dict[str, Any]:
        """Return the seed, the epoch and the number of its batches that are done."""
        return self._order.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` gave."""
        self._order.restore(state)


def training_batches(split: TokenFile, block_size: int, batch_size: int, seed: int) -> Batches:
    """Return batches of documents if the split has documents, else of random windows."""
    kind = WindowBatches if split.starts is None else DocumentBatches
    return kind(split, block_size, batch_size, seed)


def evaluation_batches(
    split: TokenFile, block_size: int, batch_size: int, every: int = 1
) -> Iterator[Batch]:
    """Yield the whole split, the same way every time; or every so-many-th piece of it.

    Every token after the first is a target exactly once: in windows at stride `block_size`
    (the last one may be shorter, padded), or in all documents, the longest first.
    """
    _require_positive(block_size=block_size, batch_size=batch_size, every=every)
    begins, lengths = _pieces(split, block_size, every)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        pieces = order[first : first + batch_size]
        yield _padded(split.tokens, begins[pieces], lengths[pieces])


def _pieces(
    split: TokenFile, block_size: int, every: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut documents, or the one text, into pieces: first token and number of targets of each."""
    if not split.targets:
        raise InputError(f"the {split.name} split has nothing to predict", "give a longer text")
    if split.starts is None:
        begins = np.arange(0, split.targets, block_size * every)
        return begins, np.minimum(block_size, split.targets - begins)
    starts, ends = split.starts[:-1:every], split.starts[1::every]
    counts = -(-(ends - starts) // block_size)
    before = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(before, counts)
    begins = np.repeat(starts, counts) + within * block_size
    return begins, np.minimum(block_size, np.repeat(ends, counts) - begins)


def _padded(tokens: NDArray[Any], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> Batch:
    columns = np.arange(lengths.max() + 1)
    places = np.minimum(begins[:, None] + columns, len(tokens) - 1)
    batch = _shifted(tokens[places])
    padding = columns[:-1] >= lengths[:, None]
    batch.ids[padding] = 0  # any id will do: a causal model never looks from left to right
    batch.targets[padding] = IGNORE
    return batch


def _shifted(rows: NDArray[Any]) -> Batch:
    """Make a batch of rows (B, T + 1): each token is the target of the one before it."""
    return Batch(rows[:, :-1].astype(np.int64), rows[:, 1:].astype(np.int64))


def _require_positive(**options: int) -> None:
    for name, value in options.items():
        if value < 1:
            raise InputError(
                f"`{name}` is {value}, and must be at least 1", f"use `{name}=1` or more"
            )
