"""Smoothed n-grams: a long context leaves some of its probability to shorter ones.

The distribution of a context is (c(w) - d) / z for the tokens w seen there, and what that leaves,
g / z, is shared out as the context without its oldest token shares. Without any context, all tokens
are equally likely. Smoothing by a constant, add-k, is `Markov(counts, order, add=k)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids
from toymodels.counts import Contexts, NgramCounts, Rows
from toymodels.model import LanguageModel
from toymodels.text import History


@dataclass(frozen=True)
class _Level:
    """Contexts of one length: the discount of each count, and g and z for each row (R,)."""

    rows: Rows
    discount: float
    left: Floats
    total: Floats


class Interpolated(LanguageModel):
    """Counts of all lengths up to `order`, each leaving some of its mass to the next shorter."""

    def __init__(self, name: str, contexts: Contexts, levels: Sequence[_Level]) -> None:
        self.name = name
        self.vocab_size, self.end = contexts.vocab_size, contexts.end
        self.contexts = contexts
        self.levels = tuple(levels)
        self.order = len(self.levels) - 1

    @property
    def parameters(self) -> int:
        """The number of stored counts, of all lengths together."""
        return sum(level.rows.entries for level in self.levels)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the counts and of the contexts."""
        own = (lv.rows.memory_bytes + lv.left.nbytes + lv.total.nbytes for lv in self.levels)
        return sum(own) + self.contexts.memory_bytes(self.order)

    @property
    def reach(self) -> int:
        """The order."""
        return self.order

    def probs(self, history: History, at: Ids) -> Floats:
        """The distributions (n, V) at the places (n,)."""
        probs = np.full((len(at), self.vocab_size), 1 / self.vocab_size)
        for level, number in self._levels(history, at):
            rows = level.rows.find(number)
            known = np.flatnonzero(rows >= 0)
            rows = rows[known]
            counts = np.zeros((len(known), self.vocab_size))
            level.rows.add_to(counts, rows)
            probs[known] *= level.left[rows, None]
            probs[known] += np.maximum(counts - level.discount, 0)
            probs[known] /= level.total[rows, None]
        return probs

    def nats(self, tokens: Ids) -> Floats:
        """-ln of the probability of each token (N,)."""
        history = self.history(tokens)
        probs = np.full(len(history), 1 / self.vocab_size)
        for level, number in self._levels(history, history.everywhere):
            rows = level.rows.find(number)
            known = np.flatnonzero(rows >= 0)
            rows = rows[known]
            counts = level.rows.weight_of(rows, history.tokens[known])
            kept = np.maximum(counts - level.discount, 0)
            probs[known] = (kept + level.left[rows] * probs[known]) / level.total[rows]
        nats: Floats = -np.log(probs)
        return nats

    def predict(self, tokens: Ids) -> Ids:
        """The best guess for each token (N,): that of the longest context which occurred."""
        history = self.history(tokens)
        guess = np.zeros(len(history), np.int64)
        for (level, number), best in zip(
            self._levels(history, history.everywhere), self._best, strict=True
        ):
            rows = level.rows.find(number)
            guess[rows >= 0] = best[rows[rows >= 0]]
        return guess

    @cached_property
    def _best(self) -> list[Ids]:
        """The most probable token of each context, by length.

        It is one of those that followed, or else the best of the context without its oldest token:
        among tokens that did not follow, a longer context changes no order.
        """
        size = self.vocab_size
        shorter = Rows(np.arange(size), np.full(size, 1 / size), size)  # without any context
        best, best_p = np.zeros(1, np.int64), np.full(1, 1 / size)
        best_tokens = []
        for codes, level in zip(self.contexts.codes, self.levels, strict=False):
            rows = level.rows
            parent = shorter.find(codes[rows.keys] // (size + 1))
            entry = rows.row_of_entry()
            less = shorter.weight_of(parent[entry], rows.token)
            kept = np.maximum(rows.weight - level.discount, 0)
            shorter = rows.reweighted((kept + level.left[entry] * less) / level.total[entry])
            own, other = shorter.best(), best[parent]
            own_p = shorter.weight_of(np.arange(len(rows)), own)
            other_p = level.left * best_p[parent] / level.total  # at least: it may have followed
            beaten = (other_p > own_p) | ((other_p == own_p) & (other < own))
            best, best_p = np.where(beaten, other, own), np.maximum(own_p, other_p)
            best_tokens.append(best)
        return best_tokens

    def _levels(self, history: History, at: Ids) -> list[tuple[_Level, Ids]]:
        numbers = self.contexts.find(history, at, self.order)
        return list(zip(self.levels, numbers, strict=True))


def witten_bell(counts: NgramCounts, order: int) -> Interpolated:
    """Smooth by interpolated Witten-Bell: a context with T kinds of followers leaves T / (n + T).

    Bell, Witten and Cleary 1990, method C. Raises InputError where `order` was not counted.
    """
    counts.require(order)
    levels = [
        _Level(rows, 0.0, rows.kinds.astype(float), rows.total + rows.kinds)
        for rows in counts.rows[: order + 1]
    ]
    return Interpolated(f"Witten-Bell {order}", counts.contexts, levels)


def kneser_ney(counts: NgramCounts, order: int) -> Interpolated:
    """Smooth by interpolated Kneser-Ney: each count is less by a constant, and shorter contexts
    count after how many different tokens, not how often, a token followed.

    Kneser and Ney 1995, with the discount n1 / (n1 + 2 n2) of each length. Raises InputError for
    an order that was not counted, and for weighted sentences, where counts are not whole.
    """
    counts.require(order)
    if counts.weighted:
        raise InputError(
            "Kneser-Ney smoothing needs the number of counts that are 1 and 2, and these sentences "
            "have weights",
            "use Witten-Bell, or repeat the sentences",
        )
    rows = [_ways(counts, length) for length in range(order)] + [counts.rows[order]]
    levels = []
    for row in rows:
        once, twice = (int((row.weight == n).sum()) for n in (1, 2))
        discount = once / (once + 2 * twice) if once and twice else 0.5
        levels.append(_Level(row, discount, discount * row.kinds.astype(float), row.total))
    return Interpolated(f"Kneser-Ney {order}", counts.contexts, levels)


def _ways(counts: NgramCounts, length: int) -> Rows:
    """Count, for each context of that length and each token, the older tokens before both."""
    longer = counts.rows[length + 1]
    parent = counts.contexts.codes[length + 1] // (counts.vocab_size + 1)
    keys = parent[longer.keys[longer.row_of_entry()]]
    return Rows.count([(keys, longer.token, np.ones(longer.entries))], counts.vocab_size)
