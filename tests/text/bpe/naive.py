"""Byte pair encoding by the book: every pair counted anew for every merge, one rule a peer.

A corpus is a list of words, each a list of symbols, repeated as often as it occurs. A rule says
which of the pairs is merged, given their counts in order of first occurrence, and what its
symbols are: ids, bytes or strings. This is slow, and meant to be plainly right.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

Symbol = Hashable
Pair = tuple[Symbol, Symbol]
Choice = Callable[[Counter], Pair]


def learn(
    words: Iterable[Sequence[Symbol]],
    merges: int,
    choose: Choice,
    join: Callable[[Symbol, Symbol, int], Symbol],
    min_frequency: int = 1,
) -> list[tuple[Symbol, Symbol, int]]:
    """Return the merges (left, right, count); `join` names the product of merge number i."""
    words = [list(word) for word in words]
    learned: list[tuple[Symbol, Symbol, int]] = []
    while len(learned) < merges:
        counts: Counter = Counter()
        for word in words:
            counts.update(pairwise(word))
        if not counts:
            break
        left, right = choose(counts)
        if counts[left, right] < min_frequency:
            break
        new = join(left, right, len(learned))
        words = [merge(word, left, right, new) for word in words]
        learned.append((left, right, counts[left, right]))
    return learned


def merge(word: list[Symbol], left: Symbol, right: Symbol, new: Symbol) -> list[Symbol]:
    """Replace a pair by a new symbol from left to right."""
    merged, i = [], 0
    while i < len(word):
        if word[i : i + 2] == [left, right]:
            merged.append(new)
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return merged


def first_seen(counts: Counter) -> Pair:
    return max(counts, key=counts.__getitem__)


def lowest(counts: Counter) -> Pair:
    return min(counts, key=lambda pair: (-counts[pair], pair))


def largest(counts: Counter) -> Pair:
    return max(counts, key=lambda pair: (counts[pair], pair))


def numbered(first: int) -> Callable[[Symbol, Symbol, int], int]:
    return lambda left, right, i: first + i


def joined(left: Symbol, right: Symbol, i: int) -> Symbol:
    return left + right


class Counted(NamedTuple):
    """What counting gives: distinct pieces in order of first occurrence."""

    pieces: list[bytes]
    counts: list[int]

    @classmethod
    def of(cls, *pieces):
        counts = Counter(pieces)
        return cls(list(counts), list(counts.values()))
