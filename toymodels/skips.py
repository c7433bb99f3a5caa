"""Second order with skips: the current word, paired with each word before it, votes.

A feature is (earlier word, current word). Its vote is the shares of the tokens that followed it,
and the votes of all features that are there are added up (source document S4). So a word far back
counts at the cost of one row a pair, and not of one row for every way to fill the distance. But
the words that decide nothing vote too. A mask removes their votes; `masks.py` learns it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids
from toymodels.counts import NgramCounts, Rows
from toymodels.markov import LARGEST_MATRIX, matrix_size
from toymodels.model import LanguageModel
from toymodels.ngrams import witten_bell
from toymodels.text import History, Text, normalised

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0)
MIXED_IN = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
_CALIBRATED_ON = 5000  # places of the training text
_SMALL_VOCAB = 1024  # beyond it most tokens of a line of V get no vote
_PLACES = 512  # whose votes are in memory at a time, without zeros


class Skips(LanguageModel):
    """Votes of the features (earlier word, context), the context being the last `order` words.

    Order 1 is that of source document S4; with order 2 a feature has the last two words.
    An earlier word counts once, however often it occurs there, and at most `window` tokens back if
    it is not None. Where no feature votes, n-grams up to `order` (Witten-Bell) rate the tokens.

    Votes become probabilities by raising them to the power `sharpness`, dividing them by their sum,
    and mixing in a share `mixed_in` of those n-grams, so that nothing is impossible. Both numbers
    are those, of `SHARPNESS` and `MIXED_IN`, with the lowest cost of the training text.
    """

    sharpness, mixed_in = SHARPNESS[0], MIXED_IN[0]

    def __init__(
        self,
        name: str,
        counts: NgramCounts,
        rows: Rows,
        order: int,
        window: int | None,
    ) -> None:
        self.name = name
        self.vocab_size, self.end = counts.vocab_size, counts.contexts.end
        self.counts, self.rows, self.shares = counts, rows, rows.shares()
        self.order, self.window = order, window
        self.without_votes = witten_bell(counts, order)

    @classmethod
    def fit(cls, text: Text, order: int = 1, window: int | None = None) -> Skips:
        """Count the tokens after each feature: each row is (context, earlier word).

        Raises InputError for a text that is not made of sentences and has no `window`.
        """
        if order < 1:
            raise InputError(f"the current context has {order} words", "give an order from 1 up")
        if window is None and text.end is None:
            raise InputError(
                "a text that is not made of sentences has no beginning to look back to",
                "give a window, as 32 tokens",
            )
        if window is not None and window <= order:
            raise InputError(
                f"a window of {window} tokens holds no word before the last {order}",
                f"give a window from {order + 1} up",
            )
        counts = NgramCounts.count(text, order)
        at = text.history.everywhere
        features = _features(counts, text.history, at, order, window)
        portions = ((keys, text.tokens[at[i]], text.weight[at[i]]) for i, keys in features)
        rows = Rows.count(portions, text.vocab_size)
        model = cls(f"skips {order}", counts, rows, order, window)
        model.calibrate(text)
        return model

    def keep(self, kept: Ids, name: str) -> Skips:
        """Return a model with the votes of only these rows: the same votes under a mask."""
        return Skips(name, self.counts, self.rows.select(kept), self.order, self.window)

    def calibrate(self, text: Text) -> None:
        """Choose how votes become probabilities, on places evenly spread over the text."""
        places = np.linspace(0, len(text) - 1, min(len(text), _CALIBRATED_ON)).astype(np.int64)
        history, plain = text.history, np.exp(-self.without_votes.nats(text.tokens))
        costs = dict.fromkeys(product(SHARPNESS, MIXED_IN), 0.0)
        for at in np.split(places, range(_PLACES, len(places), _PLACES)):
            votes = self._sparse_votes(history, at)
            for way in costs:
                probs = _prob_of(votes, text.tokens[at], plain[at], *way)
                costs[way] -= float(text.weight[at] @ np.log(probs))
        self.sharpness, self.mixed_in = min(costs, key=costs.__getitem__)

    @property
    def parameters(self) -> int:
        """The number of stored votes, and of the counts of the n-grams for places without votes."""
        return self.rows.entries + self.without_votes.parameters

    @property
    def memory_bytes(self) -> int:
        """Bytes of both."""
        votes = self.rows.memory_bytes + self.shares.weight.nbytes
        return votes + self.without_votes.memory_bytes

    @property
    def reach(self) -> int | None:
        """The window; None for the whole sentence."""
        return self.window

    def features(self, history: History, at: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Yield the features at places (n,) that have a vote, a portion at a time.

        Each portion is (index of the place, row) of each feature, the nearer words first.
        """
        for places, keys in _features(self.counts, history, at, self.order, self.window):
            rows = self.rows.find(keys)
            yield places[rows >= 0], rows[rows >= 0]

    def votes(self, history: History, at: Ids) -> Floats:
        """Return the votes for each token (n, V) at the places (n,)."""
        votes = np.zeros((len(at), self.vocab_size))
        for places, rows in self.features(history, at):
            votes_of = np.full(len(at), -1)
            votes_of[places] = rows
            self.shares.add_to(votes, votes_of)
        return votes

    def scores(self, history: History, at: Ids) -> Floats:
        """Return the votes (n, V), or the probabilities of the n-grams where there are none."""
        votes = self.votes(history, at)
        silent = np.flatnonzero(~votes.any(axis=1))
        votes[silent] = self.without_votes.probs(history, at[silent])
        return votes

    def probs(self, history: History, at: Ids) -> Floats:
        """The distributions (n, V) made of the votes."""
        plain = self.without_votes.probs(history, at)
        return _as_probs(self.votes(history, at), plain, self.sharpness, self.mixed_in)

    def nats(self, tokens: Ids) -> Floats:
        """-ln of the probability of each token (N,)."""
        if self.vocab_size <= _SMALL_VOCAB:
            return super().nats(tokens)
        history, plain = self.history(tokens), np.exp(-self.without_votes.nats(tokens))
        parts = [np.empty(0)]
        for at in np.split(history.everywhere, range(_PLACES, len(history), _PLACES)):
            votes, came = self._sparse_votes(history, at), history.tokens[at]
            parts.append(_prob_of(votes, came, plain[at], self.sharpness, self.mixed_in))
        nats: Floats = -np.log(np.concatenate(parts))
        return nats

    def predict(self, tokens: Ids) -> Ids:
        """Return the token with most votes at each place (N,)."""
        if self.vocab_size <= _SMALL_VOCAB:
            return super().predict(tokens)
        history, guess = self.history(tokens), self.without_votes.predict(tokens)
        for at in np.split(history.everywhere, range(_PLACES, len(history), _PLACES)):
            votes = self._sparse_votes(history, at)
            guess[at[votes.keys]] = votes.best()
        return guess

    def _sparse_votes(self, history: History, at: Ids) -> Rows:
        """Return the votes at places (n,) without the zeros: row i is at place i."""
        portions = []
        for places, rows in self.features(history, at):
            which, entries = self.shares.spread(rows)
            entry = self.shares.token[entries], self.shares.weight[entries]
            portions.append((places[which], *entry))
        return Rows.count(portions, self.vocab_size)

    def activities(self, prompt: Ids) -> Floats:
        """Return 1 for each word that occurs before the current one (V,), else 0."""
        history = self.history(prompt)
        there = np.zeros(self.vocab_size)
        there[history.tokens[history.starts[-1] : max(0, len(history) - self.order)]] = 1
        return there

    def mask(self, context: Ids) -> Floats:
        """Return 1 for each earlier word (V,) that votes after this context of `order` tokens."""
        mask = np.zeros(self.vocab_size)
        mask[self._earlier(context) % self.vocab_size] = 1
        return mask

    def masks(self) -> Floats:
        """Return the masks of all current words (V, V), one a row, for order 1.

        A one-hot vector of the current word pulls its mask out. Raises InputError for other orders,
        and where the vocabulary is too large for it.
        """
        if self.order != 1:
            raise InputError(
                f"contexts are of {self.order} words, and these masks are of single words",
                "take the mask of one context",
            )
        self._require_dense()
        return np.stack([self.mask(np.array([word])) for word in range(self.vocab_size)])

    def table(self, context: Ids) -> Floats:
        """Return the votes (V, V) after this context: row u holds those of the earlier word u.

        Raises InputError where the vocabulary is too large for it.
        """
        self._require_dense()
        keys = self._earlier(context)
        table = np.zeros((self.vocab_size, self.vocab_size))
        rows = np.full(self.vocab_size, -1)
        rows[keys % self.vocab_size] = self.rows.find(keys)
        self.shares.add_to(table, rows)
        return table

    def pairs(self) -> Iterator[tuple[int, tuple[int, ...], dict[int, float]]]:
        """Yield each feature with a vote: the earlier word, the context, and the votes by token."""
        for row, key in enumerate(self.shares.keys):
            number, earlier = divmod(int(key), self.vocab_size)
            entries = slice(self.shares.first[row], self.shares.first[row + 1])
            tokens, shares = self.shares.token[entries], self.shares.weight[entries]
            votes = {int(t): float(s) for t, s in zip(tokens, shares, strict=True)}
            yield earlier, self.counts.contexts.tokens(self.order, number), votes

    def _require_dense(self) -> None:
        size = matrix_size(self.vocab_size, 1)
        if size.numbers > LARGEST_MATRIX:
            raise InputError(
                f"a matrix of {size.rows:,} rows and columns takes {size.memory_bytes / 1e9:,.1f} "
                f"GB; {len(self.rows):,} features have a vote",
                "go through the pairs, or take the mask of one context",
            )

    def _earlier(self, context: Ids) -> Ids:
        """Return the keys of the rows of a context; none for one that never occurred."""
        history = self.history(context)
        number = self.counts.contexts.find(history, np.array([len(history)]), self.order)[-1]
        keys: Ids = self.rows.keys[self.rows.keys // self.vocab_size == number[0]]
        return keys


def _as_probs(votes: Floats, plain: Floats, sharpness: float, mixed_in: float) -> Floats:
    """Return votes (n, V) as distributions; `plain` are those of the n-grams."""
    shares = normalised(normalised(votes) ** sharpness)
    silent = ~votes.any(axis=1)
    shares[silent] = plain[silent]
    return (1 - mixed_in) * shares + mixed_in * plain


def _prob_of(votes: Rows, tokens: Ids, plain: Floats, sharpness: float, mixed_in: float) -> Floats:
    """Return the same for one token at each of n places, from sparse votes; plain is (n,)."""
    powers = votes.shares().weight ** sharpness
    sharp = votes.reweighted(powers).shares()
    rows = sharp.find(np.arange(len(tokens)))
    shares = np.where(rows >= 0, sharp.weight_of(rows, tokens), plain)
    return (1 - mixed_in) * shares + mixed_in * plain


def _features(
    counts: NgramCounts, history: History, at: Ids, order: int, window: int | None
) -> Iterator[tuple[Ids, Ids]]:
    """Yield the features of all places: (index of the place, context * V + earlier word).

    They come by distance. A word that occurs several times counts at its nearest place only.
    """
    context = counts.contexts.find(history, at, order)[-1]
    again = _next_same(history.tokens)
    furthest = int((at - history.starts[at]).max(initial=0))
    for lag in range(order + 1, min(furthest, window or furthest) + 1):
        there = np.flatnonzero(history.is_there(lag, at) & (context >= 0))
        word = at[there] - lag
        nearest = again[word] >= at[there] - order
        there, word = there[nearest], word[nearest]
        yield there, context[there] * counts.vocab_size + history.tokens[word]


def _next_same(tokens: Ids) -> Ids:
    """Return the next place of each token, (N,); N where there is none."""
    order = np.argsort(tokens, kind="stable")
    following = np.full(len(tokens), len(tokens))
    same = tokens[order[1:]] == tokens[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following
