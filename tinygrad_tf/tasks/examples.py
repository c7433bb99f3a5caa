"""Sets of separate examples: pairs, labelled sequences, sequences with hidden tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import MaskedLanguageModel
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.text.held_out import random_generator
from tinygrad_tf.train.order import EpochOrder
from tinygrad_tf.types import Array, Ids

Rows = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Padded:
    """Examples as arrays, the arguments of a model's `loss`; the first axis is the example.

    targets: the number of targets of each example, (B,).
    """

    arguments: tuple[Array, ...]
    targets: Counts

    @property
    def count(self) -> int:
        """The number of targets that the mean loss is over."""
        return int(self.targets.sum())

    def take(self, rows: Rows) -> Padded:
        """Return some of the examples."""
        return Padded(tuple(a[rows] for a in self.arguments), self.targets[rows])


class ExampleSet(Protocol):
    """A set of examples to train on, or to validate on."""

    @property
    def lengths(self) -> Counts:
        """The length of each example: those of similar length are padded together."""
        ...

    @property
    def targets(self) -> Counts:
        """The number of targets of each example."""
        ...

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return the examples of these rows; `rng` draws what is random in them."""
        ...


class ExampleBatches:
    """Batches of a set of examples in an `EpochOrder`, for a trainer.

    InputError where there are no examples or the batch size is below 1.
    """

    def __init__(self, examples: ExampleSet, batch_size: int, seed: int) -> None:
        if batch_size < 1:
            raise InputError(f"`batch_size` is {batch_size}", "use `batch_size=1` or more")
        if not len(examples.lengths):
            raise InputError("there are no examples to learn from", "give at least one")
        self.examples = examples
        self._order = EpochOrder(examples.lengths, batch_size, seed)

    def __repr__(self) -> str:
        return f"ExampleBatches({len(self.examples.lengths):,} examples, {self._order})"

    def next_batch(self) -> Padded:
        """Return the next batch."""
        rows = self._order.next_rows()
        # The draws of a batch are a function of its place, so that no state of them is kept.
        return self.examples.batch(rows, random_generator(*self._order.position))

    def state(self) -> dict[str, Any]:
        """Return the position."""
        return self._order.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` returned."""
        self._order.restore(state)


def in_batches(examples: ExampleSet, batch_size: int, every: int = 1) -> Iterator[Padded]:
    """Yield batches of the whole set, or of one example in `every`, the longest first."""
    chosen = np.arange(0, len(examples.lengths), every)
    chosen = chosen[np.argsort(-examples.lengths[chosen], kind="stable")]
    for first in range(0, len(chosen), batch_size):
        yield examples.batch(chosen[first : first + batch_size], random_generator(0, first))


class Sequences:
    """Sequences of one kind: ids (S,), or vectors (S, F), each of its own length."""

    def __init__(self, sources: Sequence[Array], pad_id: int) -> None:
        self.sources, self.pad_id = sources, pad_id
        self.lengths: Counts = np.array([len(s) for s in sources], np.int64)
        self.dense = bool(sources) and np.ndim(sources[0]) == 2

    def padded(self, rows: Rows) -> Array:
        """Return ids (B, S) padded with PAD, or vectors (B, S, F) padded with zeros."""
        chosen = [self.sources[row] for row in rows]
        if not self.dense:
            return pad_sequences(chosen, self.pad_id)
        longest = max(map(len, chosen))
        vectors = np.zeros((len(chosen), longest, chosen[0].shape[1]), np.float32)
        for row, source in zip(vectors, chosen, strict=True):
            row[: len(source)] = source
        return vectors


class PairExamples:
    """Sources, of ids or of vectors, and target ids, for `Transformer.loss`."""

    def __init__(self, sources: Sequence[Array], tokens: Sequence[Array], pad_id: int) -> None:
        self._sources, self._tokens = Sequences(sources, pad_id), Sequences(tokens, pad_id)
        self.targets: Counts = self._tokens.lengths + 1  # and END
        # Sorted by the target first: it costs more, having three parts in each layer.
        self.lengths: Counts = self._tokens.lengths * 4096 + self._sources.lengths

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return source, target and, for vectors, the lengths of the source."""
        arrays: tuple[Array, ...] = (self._sources.padded(rows), self._tokens.padded(rows))
        if self._sources.dense:
            arrays += (self._sources.lengths[rows],)
        return Padded(arrays, self.targets[rows])


class LabelledExamples:
    """Sources of ids, each with a class or a number, for a `Classifier` or a `Regressor`."""

    def __init__(self, sources: Sequence[Array], labels: Array, pad_id: int) -> None:
        self._sources, self.labels = Sequences(sources, pad_id), np.asarray(labels)
        self.lengths = self._sources.lengths
        self.targets: Counts = np.ones(len(sources), np.int64)

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return source and labels."""
        return Padded((self._sources.padded(rows), self.labels[rows]), self.targets[rows])


class HiddenExamples:
    """Sequences of which other tokens are hidden each time, for masked-token training."""

    def __init__(self, sources: Sequence[Array], model: MaskedLanguageModel, rate: float) -> None:
        self._sources = Sequences(sources, model.config.pad_id)
        self._model, self._rate = model, rate
        self.lengths = self._sources.lengths
        hidden = np.maximum(1, np.rint(rate * self.lengths))
        self.targets: Counts = np.minimum(self.lengths, hidden).astype(np.int64)

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return sources with tokens hidden, and the labels of those."""
        hidden, labels = self._model.hide(self._sources.padded(rows), rng, self._rate)
        return Padded((hidden, labels), np.count_nonzero(labels >= 0, axis=1))


def unigram_nats_per_target(train: Sequence[Ids], held_out: Sequence[Ids], size: int) -> float:
    """Cross-entropy, in nats per target, of guessing each token by its frequency in training.

    Each sequence ends with END, which counts as a target; `size` is that of the vocabulary.
    """
    end = -1
    counts = Counter(token for ids in train for token in (*ids.tolist(), end))
    total = counts.total() + size
    targets = [token for ids in held_out for token in (*ids.tolist(), end)]
    return -sum(math.log((counts[token] + 1) / total) for token in targets) / len(targets)
