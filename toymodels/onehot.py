"""Words as vectors: one-hot coding, and what multiplying with it does.

Source document S4, from the one-hot vector to the matrix that is a lookup table.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.word_tokenizer import WORD
from tinygrad_tf.types import Floats, Ids


def split_words(text: str) -> list[str]:
    """Return the words of a text in small letters, without punctuation."""
    return [word for word in WORD.findall(text.lower()) if any(map(str.isalnum, word))]


@dataclass(frozen=True)
class Vocabulary:
    """Words, each with its index as its number. Raises InputError for a word that occurs twice."""

    words: tuple[str, ...]
    _number: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = {word: number for number, word in enumerate(self.words)}
        if len(numbers) < len(self.words):
            twice = next(word for i, word in enumerate(self.words) if numbers[word] != i)
            raise InputError(f"the word {twice!r} is in the vocabulary twice", "name it once")
        object.__setattr__(self, "_number", numbers)

    @classmethod
    def of(cls, words: Iterable[str]) -> "Vocabulary":
        """Make the vocabulary of the distinct words, sorted."""
        return cls(tuple(sorted(set(words))))

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: str) -> int:
        """Return the number of a word. Raises InputError for a word outside the vocabulary."""
        if word not in self._number:
            near = difflib.get_close_matches(word, self.words, 3) or self.words[:8]
            raise InputError(
                f"the word {word!r} is not among the {len(self)} words of the vocabulary",
                f"use words it has, such as {', '.join(near)}",
            )
        return self._number[word]

    def ids(self, words: str | Sequence[str]) -> Ids:
        """Return words (or a text, split into its words) as numbers (N,)."""
        words = split_words(words) if isinstance(words, str) else words
        return np.array([self.number(word) for word in words], np.int64)

    def text(self, ids: Iterable[int]) -> str:
        """Return numbers as words with spaces between; the number after the last word is END."""
        return " ".join([*self.words, "END"][number] for number in ids)


def one_hot(ids: Any, size: int) -> Floats:
    """Return numbers (N,) as rows (N, size) with a single 1; one number gives one row (size,)."""
    ids = np.asarray(ids)
    if ids.size and not (ids.min() >= 0 and ids.max() < size):
        raise InputError(
            f"a one-hot vector of {size} entries cannot encode numbers from {ids.min()} to "
            f"{ids.max()}",
            f"use numbers from 0 to {size - 1}",
        )
    rows: Floats = np.eye(size)[ids]
    return rows


def dot(a: Any, b: Any) -> float:
    """Return Σ a_i b_i. Raises InputError unless both are vectors of one length."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(
            f"a dot product multiplies entry by entry, but the shapes are {a.shape} and {b.shape}",
            "give two vectors of the same length",
        )
    return float(a @ b)


@dataclass(frozen=True)
class Cell:
    """A cell of a product: the row of A, the column of B, the products, and their sum."""

    row: int
    column: int
    left: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def products(self) -> tuple[float, ...]:
        """The products of the entries, which are added up."""
        return tuple(a * b for a, b in zip(self.left, self.right, strict=True))

    @property
    def value(self) -> float:
        """The dot product."""
        return dot(self.left, self.right)


def matmul_cells(a: Any, b: Any) -> Iterator[Cell]:
    """Yield A·B cell by cell: (m, k) and (k, n) give m n cells, row by row.

    Raises InputError where the shapes do not fit.
    """
    a, b = _fitting(a, b)
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            yield Cell(row, column, tuple(a[row].tolist()), tuple(b[:, column].tolist()))


def matmul(a: Any, b: Any) -> Floats:
    """Return A·B, (m, k) and (k, n) to (m, n), put together from its cells."""
    a, b = _fitting(a, b)
    product = np.empty((a.shape[0], b.shape[1]))
    for cell in matmul_cells(a, b):
        product[cell.row, cell.column] = cell.value
    return product


def lookup(ids: Any, table: Any) -> Floats:
    """Return rows (N, d) of a table (V, d), by multiplying it with one-hot vectors (N, V)."""
    table = np.asarray(table, float)
    return matmul(one_hot(np.atleast_1d(ids), len(table)), table)


def _fitting(a: Any, b: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = np.atleast_2d(np.asarray(a, float)), np.atleast_2d(np.asarray(b, float))
    if a.ndim > 2 or b.ndim > 2:
        raise InputError(f"shapes {a.shape} and {b.shape} are not matrices", "give two matrices")
    if a.shape[1] != b.shape[0]:
        hint = " (or transpose B, whose columns do fit)" if a.shape[1] == b.shape[1] else ""
        raise InputError(
            f"{a.shape[0]}×{a.shape[1]} times {b.shape[0]}×{b.shape[1]} cannot be multiplied: each "
            f"cell pairs a row of A, of {a.shape[1]} numbers, with a column of B, of {b.shape[0]}",
            f"give B {a.shape[1]} rows{hint}",
        )
    return a, b
