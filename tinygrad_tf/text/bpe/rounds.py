"""Merging many short sequences side by side: NumPy does in each round one merge of every one."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Rounds:
    """Does what `Merger` does, for many sequences at once.

    `ranks` are those of pairs of ids below `size`, `made` the ids that merges of a rank make.
    """

    def __init__(
        self, ranks: Mapping[tuple[int, int], int], made: Mapping[int, int], size: int
    ) -> None:
        self._none = max(made, default=0) + 1
        self._made = np.zeros(self._none, dtype=np.int32)
        self._made[list(made)] = list(made.values())
        self._base = size + 2
        pairs = np.array([*ranks, (size, size)], dtype=np.int64)  # the last never occurs
        codes = self._code(pairs[:, 0], pairs[:, 1])
        order = np.argsort(codes)
        self._codes = codes[order]
        self._ranks = np.array([*ranks.values(), self._none], dtype=np.int64)[order]

    def merged(self, sequences: Sequence[Sequence[int]]) -> list[bytes]:
        """Return what the merges make of each sequence, none of them empty, as 32-bit ids."""
        found = [b""] * len(sequences)
        which = np.arange(len(sequences))
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int32)
        ranks = np.full(len(ids), self._none)  # of the pair that begins at each place
        ranks[:-1] = self._rank(ids, np.arange(len(ids) - 1))
        ranks[np.cumsum(lengths) - 1] = self._none
        while which.size:
            ends = np.cumsum(lengths)
            starts = ends - lengths
            lowest = np.minimum.reduceat(ranks, starts)
            go_on = lowest < self._none
            if not go_on.all():
                done = ~go_on
                for i, start, end in zip(which[done], starts[done], ends[done], strict=True):
                    found[i] = ids[start:end].tobytes()
                keep = np.repeat(go_on, lengths)
                ids, ranks = ids[keep], ranks[keep]
                which, lengths = which[go_on], lengths[go_on]
                continue
            places = np.flatnonzero(ranks == np.repeat(lowest, lengths))
            at = places[np.searchsorted(places, starts)]  # the leftmost of each sequence
            ids[at] = self._made[lowest]
            ids, ranks = np.delete(ids, at + 1), np.delete(ranks, at + 1)
            before = np.arange(len(at))  # so many places went before each sequence
            at, starts, ends = at - before, starts - before, ends - before - 1
            lengths = lengths - 1
            ranks[at] = self._none
            for changed in (at[at + 1 < ends], at[at > starts] - 1):
                ranks[changed] = self._rank(ids, changed)
        return found

    def _rank(self, ids: NDArray[np.int32], places: IntArray) -> IntArray:
        """Return the ranks of the pairs that begin at the places."""
        codes = self._code(ids[places], ids[places + 1])
        at = np.searchsorted(self._codes, codes)
        return np.where(self._codes[at] == codes, self._ranks[at], self._none)

    def _code(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> IntArray:
        """Return a number for each pair, of which one id may be -1: an unknown character."""
        return (left.astype(np.int64) + 1) * self._base + right + 1
