"""Examples that are no stretch of a text: pairs, labelled sequences, sequences to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import MaskedLanguageModel
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.text.tokens import random_generator
from tinygrad_tf.train.order import EpochOrder
from tinygrad_tf.types import Array

Rows = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Padded:
    """Some examples as arrays whose first axis is theirs, for the `loss` of a model.

    targets: how many targets each example has, (B,).
    """

    arguments: tuple[Array, ...]
    targets: Counts

    @property
    def count(self) -> int:
        """How many targets the mean loss is over."""
        return int(self.targets.sum())

    def take(self, rows: Rows) -> Padded:
        """Return some of the examples."""
        return Padded(tuple(a[rows] for a in self.arguments), self.targets[rows])


class ExampleSet(Protocol):
    """Examples to learn from, or to be judged by."""

    @property
    def lengths(self) -> Counts:
        """How long each is: those of similar length are padded together."""
        ...

    @property
    def targets(self) -> Counts:
        """How many targets each has."""
        ...

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return some of them, a function of the rows and of what `rng` draws."""
        ...


class ExampleBatches:
    """Batches of a set in an `EpochOrder`: the `Batches` of a trainer.

    InputError where there are no examples or the batch size is below 1.
    """

    def __init__(self, examples: ExampleSet, batch_size: int, seed: int) -> None:
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}", "use --batch-size 1 or more")
        if not len(examples.lengths):
            raise InputError("there are no examples to learn from", "give at least one")
        self.examples = examples
        self.tokens_per_epoch = int(examples.targets.sum())
        self._order = EpochOrder(examples.lengths, batch_size, seed)

    def next_batch(self) -> Padded:
        """Return the next batch."""
        rows = self._order.next_rows()
        # What is drawn for a batch is a function of its place, so that nothing of it is kept.
        return self.examples.batch(rows, random_generator(*self._order.position))

    def state(self) -> dict[str, Any]:
        """Return the position."""
        return self._order.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` gave."""
        self._order.restore(state)


def in_batches(examples: ExampleSet, batch_size: int, every: int = 1) -> Iterator[Padded]:
    """Yield the whole set, or every so-many-th of it, the longest first, always the same way."""
    chosen = np.arange(0, len(examples.lengths), every)
    chosen = chosen[np.argsort(-examples.lengths[chosen], kind="stable")]
    for first in range(0, len(chosen), batch_size):
        yield examples.batch(chosen[first : first + batch_size], random_generator(0, first))


class Sequences:
    """Sources of one kind: ids (S,), or vectors (S, F), each of its own length."""

    def __init__(self, sources: Sequence[Array], pad_id: int) -> None:
        self.sources, self.pad_id = sources, pad_id
        self.lengths: Counts = np.array([len(s) for s in sources], np.int64)
        self.dense = bool(sources) and np.ndim(sources[0]) == 2

    def padded(self, rows: Rows) -> Array:
        """(B, S) ids filled up with PAD, or (B, S, F) vectors filled up with zeros."""
        chosen = [self.sources[row] for row in rows]
        if not self.dense:
            return pad_sequences(chosen, self.pad_id)
        longest = max(map(len, chosen))
        vectors = np.zeros((len(chosen), longest, chosen[0].shape[1]), np.float32)
        for row, source in zip(vectors, chosen, strict=True):
            row[: len(source)] = source
        return vectors


class PairExamples:
    """Sources, of ids or of vectors, and bare target ids: what `Transformer.loss` takes."""

    def __init__(self, sources: Sequence[Array], tokens: Sequence[Array], pad_id: int) -> None:
        self._sources, self._tokens = Sequences(sources, pad_id), Sequences(tokens, pad_id)
        self.targets: Counts = self._tokens.lengths + 1  # and END
        # Sorted by the target first: it costs more, having three parts in each layer.
        self.lengths: Counts = self._tokens.lengths * 4096 + self._sources.lengths

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return source, target and, of vectors, the lengths of the source."""
        given: tuple[Array, ...] = (self._sources.padded(rows), self._tokens.padded(rows))
        if self._sources.dense:
            given += (self._sources.lengths[rows],)
        return Padded(given, self.targets[rows])


class LabelledExamples:
    """Sources and for each a class, or a number: what a `Classifier` or a `Regressor` takes."""

    def __init__(self, sources: Sequence[Array], labels: Array, pad_id: int) -> None:
        self._sources, self.labels = Sequences(sources, pad_id), np.asarray(labels)
        self.lengths = self._sources.lengths
        self.targets: Counts = np.ones(len(sources), np.int64)

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return source, labels and, of vectors, the lengths of the source."""
        given: tuple[Array, ...] = (self._sources.padded(rows), self.labels[rows])
        if self._sources.dense:
            given += (self._sources.lengths[rows],)
        return Padded(given, self.targets[rows])


class HiddenExamples:
    """Sequences of which other tokens are hidden every time: what masked-token training takes."""

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
