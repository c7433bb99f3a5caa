"""Markov models: the next token depends on the last `order` tokens and on nothing before them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids
from toymodels.counts import NgramCounts
from toymodels.model import LanguageModel
from toymodels.text import History, Text, normalised

LARGEST_MATRIX = 1 << 24  # numbers; 128 MiB


@dataclass(frozen=True)
class MatrixSize:
    """The size of a dense transition matrix: a row for each context, a column for each token."""

    rows: int
    columns: int

    @property
    def numbers(self) -> int:
        """Rows times columns."""
        return self.rows * self.columns

    @property
    def memory_bytes(self) -> int:
        """Bytes in float64."""
        return 8 * self.numbers


def matrix_size(vocab_size: int, order: int) -> MatrixSize:
    """Return the size of the matrix of all contexts of that length, occurring or not."""
    return MatrixSize(vocab_size**order, vocab_size)


class Markov(LanguageModel):
    """A Markov chain: the shares of the tokens after each context of `order` tokens.

    With `add` 0 the shares are the counted ones (maximum likelihood): a token that never followed
    a context has probability 0, and after a context that never occurred every token has. With
    more, each count is `add` larger (Laplace). Where a text is made of sentences, the end token is
    one of those that follow.
    """

    def __init__(self, counts: NgramCounts, order: int, add: float = 0.0) -> None:
        counts.require(order)
        if not (np.isfinite(add) and add >= 0):
            raise InputError(f"`add` is {add}", "give a number from 0 up")
        self.name = f"Markov {order}" + (f", add {add:g}" if add else "")
        self.order, self.add = order, float(add)
        self.contexts, self.rows = counts.contexts, counts.rows[order]
        self.vocab_size, self.end = counts.vocab_size, counts.contexts.end

    @classmethod
    def fit(cls, text: Text, order: int, add: float = 0.0) -> "Markov":
        """Count a text for this order alone."""
        return cls(NgramCounts.count(text, order), order, add)

    @property
    def parameters(self) -> int:
        """Counts other than 0."""
        return self.rows.entries

    @property
    def memory_bytes(self) -> int:
        """Bytes of the counts and of the contexts."""
        return self.rows.memory_bytes + self.contexts.memory_bytes(self.order)

    @property
    def reach(self) -> int:
        """The order."""
        return self.order

    def probs(self, history: History, at: Ids) -> Floats:
        """The distributions (n, V) at the places (n,)."""
        rows = self._rows(history, at)
        probs = np.zeros((len(at), self.vocab_size))
        self.rows.add_to(probs, rows)
        probs += self.add
        return normalised(probs)

    def nats(self, tokens: Ids) -> Floats:
        """-ln of the probability of each token (N,); infinite where the model excludes it."""
        history = self.history(tokens)
        rows = self._rows(history, history.everywhere)
        total = self.add * self.vocab_size + np.append(self.rows.total, 0.0)[rows]  # row -1: the 0
        counts = self.add + self.rows.weight_of(rows, history.tokens)
        with np.errstate(divide="ignore"):
            nats: Floats = -np.log(counts / np.where(total > 0, total, 1.0))
        return nats

    def predict(self, tokens: Ids) -> Ids:
        """The best guess for each token (N,): smoothing does not change it."""
        history = self.history(tokens)
        rows = self._rows(history, history.everywhere)
        return np.append(self.rows.best(), 0)[rows]  # row -1: all are equal, the first is taken

    def sparse_rows(self) -> Iterator[tuple[tuple[int, ...], dict[int, float]]]:
        """Yield each context that occurred, oldest token first, and the shares of its followers."""
        shares = self.rows.shares()
        for row, key in enumerate(shares.keys):
            entries = slice(shares.first[row], shares.first[row + 1])
            followers = zip(shares.token[entries], shares.weight[entries], strict=True)
            context = self.contexts.tokens(self.order, int(key))
            yield context, {int(token): float(share) for token, share in followers}

    @property
    def inner(self) -> list[int]:
        """The tokens of the matrix: all but the end token."""
        return [token for token in range(self.vocab_size) if token != self.end]

    def matrix(self, *, with_end: bool = False) -> Floats:
        """Return the counted shares as a dense matrix (W^order, W) over the W tokens of `inner`.

        Row (a, b) of order 2 is a * W + b. A row sums to 1, or to 0 where nothing followed: the
        sentence ends there. `with_end` adds one column, the share of sentences that end; without
        it the others sum to 1. Raises InputError where the matrix would be too large.
        """
        width = len(self.inner)
        size = matrix_size(width, self.order)
        if size.numbers > LARGEST_MATRIX:
            raise InputError(
                f"a matrix of {width:,}^{self.order} = {size.rows:,} rows and {width:,} columns "
                f"takes {size.memory_bytes / 1e9:,.1f} GB; {len(self.rows):,} of its rows and "
                f"{self.rows.entries:,} of its numbers are not 0",
                "use the sparse rows, or a lower order",
            )
        dense = np.zeros((size.rows, width + 1))
        column = {token: place for place, token in enumerate(self.inner)}
        for context, followers in self.sparse_rows():
            if all(token in column for token in context):
                row = 0
                for token in context:
                    row = row * width + column[token]
                for token, share in followers.items():
                    dense[row, column.get(token, width)] = share
        if with_end:
            return dense
        return normalised(dense[:, :width])

    def branches(self) -> list[tuple[int, ...]]:
        """Return the contexts, within sentences, that more than one token followed."""
        inner = set(self.inner)
        return [
            context
            for context, followers in self.sparse_rows()
            if len(followers) > 1 and inner.issuperset(context)
        ]

    def row_entropy(self, prompt: Ids) -> float:
        """Return the entropy in nats of the next token; 0 where none can follow the prompt."""
        return entropy(self.next_probs(prompt))

    def _rows(self, history: History, at: Ids) -> Ids:
        return self.rows.find(self.contexts.find(history, at, self.order)[-1])


def entropy(probs: Floats) -> float:
    """Return -Σ p ln p, in nats."""
    some = probs[probs > 0]
    return float(-(some @ np.log(some))) + 0.0
