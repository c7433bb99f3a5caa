"""The seeded order of examples: by length, once an epoch, with a position that can be saved."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import random_generator

_POOL = 64  # batches that examples of similar length are sought in: more pads less


class EpochOrder:
    """Every example once an epoch, in a new seeded order each time, `batch_size` at most together.

    Examples of similar length, sought within pools of some dozens of batches, go together, so that
    rows padded to the longest of a batch waste little. Batches of an epoch differ by at most one
    row. `kind` is the name of the examples in an error.
    """

    def __init__(
        self, lengths: NDArray[np.int64], batch_size: int, seed: int, kind: str = "examples"
    ) -> None:
        self.batches_per_epoch = -(-len(lengths) // batch_size)
        self.kind = kind
        self._lengths = lengths
        self._edges = _even_edges(len(lengths), self.batches_per_epoch)
        self._seed, self._epoch, self._cursor = seed, 0, 0
        self._shuffle()

    def __repr__(self) -> str:
        return f"epoch {self._epoch}, batch {self._cursor} of {self.batches_per_epoch}"

    @property
    def position(self) -> tuple[int, int, int]:
        """The seed, the epoch and the number of its batches that are done."""
        return self._seed, self._epoch, self._cursor

    def _shuffle(self) -> None:
        """Set the order of the epoch, a function of the seed and its number alone."""
        random = random_generator(self._seed, self._epoch)
        self._order = random.permutation(len(self._lengths))
        for first in range(0, self.batches_per_epoch, _POOL):
            end = min(first + _POOL, self.batches_per_epoch)
            pool = self._order[self._edges[first] : self._edges[end]]
            pool[:] = pool[np.argsort(self._lengths[pool], kind="stable")]
        self._batch_order = random.permutation(self.batches_per_epoch)

    def next_rows(self) -> NDArray[np.intp]:
        """Return the examples of the next batch."""
        if self._cursor == self.batches_per_epoch:
            self._epoch += 1
            self._cursor = 0
            self._shuffle()
        number = self._batch_order[self._cursor]
        self._cursor += 1
        return self._order[self._edges[number] : self._edges[number + 1]]

    def state(self) -> dict[str, Any]:
        """Return the seed, the epoch and the number of its batches that are done."""
        return {
            "seed": self._seed,
            "epoch": self._epoch,
            "cursor": self._cursor,
            "batches_per_epoch": self.batches_per_epoch,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position that `state` gave; InputError when it is none of this order."""
        names = ("seed", "epoch", "cursor", "batches_per_epoch")
        if any(type(state.get(name)) is not int or state[name] < 0 for name in names):
            raise not_a_state(self.kind)
        if state["batches_per_epoch"] != self.batches_per_epoch:
            raise InputError(
                f"the saved position counts {state['batches_per_epoch']:,} batches an epoch, "
                f"and these make {self.batches_per_epoch:,}",
                "resume with the text, `batch_size` and `block_size` of the run",
            )
        if state["cursor"] > self.batches_per_epoch:
            raise not_a_state(self.kind)
        self._seed, self._epoch, self._cursor = (state[name] for name in names[:3])
        self._shuffle()


def not_a_state(kind: str) -> InputError:
    """Make the error for a saved position that is none of this kind of order."""
    return InputError(
        f"the saved position in the data is not one of {kind}",
        "resume from a checkpoint of this run",
    )


def _even_edges(count: int, parts: int) -> NDArray[np.int64]:
    """Return the parts + 1 edges that cut `count` things into parts differing by one at most."""
    return np.arange(parts + 1) * count // parts
