"""Counting what follows what, sparsely: only what occurs is stored, in sorted arrays.

Contexts form a tree. One of length 2 is a context of length 1 and the token before it; its number
is its place among all pairs of the two that occur. So numbers stay small whatever the vocabulary,
and the parent of a context is the same context without its oldest token: where back-off goes.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids
from toymodels.text import History, Text

_LARGEST = 2**62


class Rows:
    """A sparse matrix of weights: rows by number, tokens as columns.

    `keys` (R,) are the numbers of the rows that occur, ascending; row i has the entries
    `first[i]` to `first[i + 1]`, exclusive, of `token` and `weight` (E,).
    """

    def __init__(self, codes: Ids, weight: Floats, vocab_size: int) -> None:
        """Rows from codes key * V + token, ascending and distinct, with their weights."""
        self.vocab_size = vocab_size
        self.token: Ids = codes % vocab_size
        self.weight = weight
        key = codes // vocab_size
        begins = np.flatnonzero(np.diff(key, prepend=-1))
        self.keys: Ids = key[begins]
        self.first: Ids = np.append(begins, len(codes))
        self.total: Floats = np.add.reduceat(weight, begins) if len(codes) else np.zeros(0)

    @classmethod
    def count(cls, portions: Iterable[tuple[Ids, Ids, Floats]], vocab_size: int) -> "Rows":
        """Add up (keys, tokens, weights) that arrive in portions."""
        parts: list[tuple[Ids, Floats]] = [(np.empty(0, np.int64), np.empty(0))]
        for keys, tokens, weight in portions:
            if len(keys) and keys.max() >= _LARGEST // vocab_size:
                raise InputError(
                    f"{keys.max():,} rows of {vocab_size:,} columns are too many to be numbered",
                    "use a smaller vocabulary",
                )
            parts.append(_add_up(keys * vocab_size + tokens, weight))
            if sum(len(codes) for codes, _ in parts[1:]) > len(parts[0][0]):
                parts = [_joined(parts)]  # now and then, so that each entry is moved a few times
        return cls(*_joined(parts), vocab_size)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def entries(self) -> int:
        """The number of stored entries, E."""
        return len(self.weight)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.keys, self.first, self.token, self.weight, self.total)
        return sum(array.nbytes for array in arrays)

    @property
    def kinds(self) -> Ids:
        """The number of different tokens in each row, (R,)."""
        return np.diff(self.first)

    def row_of_entry(self) -> Ids:
        """The row of each entry, (E,)."""
        return np.repeat(np.arange(len(self)), self.kinds)

    def find(self, keys: Ids) -> Ids:
        """The row of each key, -1 where it has none."""
        return find_sorted(self.keys, keys)

    def weight_of(self, rows: Ids, tokens: Ids) -> Floats:
        """The weight of one token in each row; 0 where it is absent or the row is -1."""
        codes = self.row_of_entry() * self.vocab_size + self.token
        at = find_sorted(codes, np.where(rows < 0, -1, rows * self.vocab_size + tokens))
        weights = np.zeros(len(rows))
        weights[at >= 0] = self.weight[at[at >= 0]]
        return weights

    def add_to(self, dense: Floats, rows: Ids) -> None:
        """Add each row to a line of dense (n, V); row -1 adds nothing."""
        lines = np.flatnonzero(rows >= 0)
        which, entries = self.spread(rows[lines])
        dense[lines[which], self.token[entries]] += self.weight[entries]

    def best(self) -> Ids:
        """The heaviest token of each row, (R,); of equals the first of the vocabulary."""
        if not len(self):
            return np.empty(0, np.int64)
        heaviest = np.maximum.reduceat(self.weight, self.first[:-1])
        ties = np.where(self.weight == np.repeat(heaviest, self.kinds), self.token, self.vocab_size)
        best: Ids = np.minimum.reduceat(ties, self.first[:-1])
        return best

    def select(self, rows: Ids) -> "Rows":
        """Return only some of the rows, `rows` in ascending order."""
        kept = np.isin(self.row_of_entry(), rows)
        codes = np.repeat(self.keys, self.kinds) * self.vocab_size + self.token
        return Rows(codes[kept], self.weight[kept], self.vocab_size)

    def shares(self) -> "Rows":
        """Return the same rows, each divided by its sum."""
        return self.reweighted(self.weight / np.repeat(self.total, self.kinds))

    def reweighted(self, weight: Floats) -> "Rows":
        """Return the same entries with other weights (E,); the other arrays are shared."""
        other = copy(self)
        other.weight = weight
        other.total = np.add.reduceat(weight, self.first[:-1]) if len(self) else np.zeros(0)
        return other

    def spread(self, rows: Ids) -> tuple[Ids, Ids]:
        """Return the entries of some rows one after the other: index into `rows`, and entry."""
        lengths = self.kinds[rows]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(np.arange(len(rows)), lengths), np.repeat(
            self.first[rows], lengths
        ) + within


@dataclass(frozen=True)
class Contexts:
    """All contexts of length 0 to `order` of a text.

    `codes[k]` (R,), ascending, is parent * (V + 1) + oldest token for each context of length k.
    """

    codes: tuple[Ids, ...]
    vocab_size: int
    end: int | None

    @classmethod
    def grow(cls, text: Text, order: int) -> tuple["Contexts", list[Ids]]:
        """Build the tree of a text, and the context of each of its tokens at each length."""
        history, at = text.history, text.history.everywhere
        numbers = [np.zeros(len(text), np.int64)]
        codes = [np.zeros(1, np.int64)]
        for length in range(1, order + 1):
            code = numbers[-1] * (text.vocab_size + 1) + history.back(length, at)
            distinct, number = np.unique(code, return_inverse=True)
            codes.append(distinct)
            numbers.append(number)
        return cls(tuple(codes), text.vocab_size, text.end), numbers

    def find(self, history: History, at: Ids, order: int) -> list[Ids]:
        """Find the contexts of length 0 to `order` before each place; -1 for unknown ones."""
        numbers = [np.zeros(len(at), np.int64)]
        for length in range(1, order + 1):
            code = numbers[-1] * (self.vocab_size + 1) + history.back(length, at)
            numbers.append(find_sorted(self.codes[length], code))  # of -1 negative: not found
        return numbers

    def tokens(self, length: int, number: int) -> tuple[int, ...]:
        """The tokens of a context, oldest first; those before the beginning are the padding."""
        tokens = []
        for codes in self.codes[length:0:-1]:
            number, oldest = divmod(int(codes[number]), self.vocab_size + 1)
            tokens.append(oldest)
        return tuple(tokens)

    def memory_bytes(self, order: int) -> int:
        """Bytes of the arrays that find the contexts of length `order`."""
        return sum(codes.nbytes for codes in self.codes[1 : order + 1])


@dataclass(frozen=True)
class NgramCounts:
    """Counts of the tokens after each context of length 0 to `order`, shared by all n-grams."""

    contexts: Contexts
    rows: tuple[Rows, ...]
    weighted: bool

    @classmethod
    def count(cls, text: Text, order: int) -> "NgramCounts":
        """Count a text. Raises InputError where `order` is not a whole number from 0 up."""
        if isinstance(order, bool) or not isinstance(order, int) or order < 0:
            raise InputError(f"the order is {order}", "give a whole number from 0 up")
        contexts, numbers = Contexts.grow(text, order)
        rows = (
            Rows.count([(number, text.tokens, text.weight)], text.vocab_size) for number in numbers
        )
        return cls(contexts, tuple(rows), text.weights is not None)

    @property
    def order(self) -> int:
        """The length of the longest contexts."""
        return len(self.rows) - 1

    @property
    def vocab_size(self) -> int:
        """The number of tokens, V."""
        return self.contexts.vocab_size

    def require(self, order: int) -> None:
        """Raise InputError where contexts as long as that were not counted."""
        if not 0 <= order <= self.order:
            raise InputError(
                f"the order is {order}, but contexts were counted up to {self.order}",
                f"count them up to {order}" if order > 0 else "give a whole number from 0 up",
            )


def find_sorted(ascending: Ids, numbers: Ids) -> Ids:
    """Return the index of each number in an ascending array, -1 where it is absent."""
    if not len(ascending):
        return np.full(len(numbers), -1)
    index = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.where(ascending[index] == numbers, index, -1)


def _joined(parts: list[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    codes, weights = zip(*parts, strict=True)
    return _add_up(np.concatenate(codes), np.concatenate(weights))


def _add_up(codes: Ids, weights: Floats) -> tuple[Ids, Floats]:
    """Distinct codes, ascending, and the sum of the weights of each."""
    if not len(codes):
        return codes, weights
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    return codes[begins], np.add.reduceat(weights[order], begins)
