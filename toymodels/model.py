"""The interface that all models share, so that they can be compared.

A model gives the probability of each token of the vocabulary at any place of a text, given the
tokens before it. Everything else follows: the cost of a text, the best guess, a continuation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import random_generator
from tinygrad_tf.types import Floats, Ids
from toymodels.text import History, checked_tokens

_CELLS = 1 << 22  # numbers in memory at a time where distributions are written out


@dataclass(frozen=True)
class Step:
    """A token of a continuation: the scores of all tokens (V,), and the token chosen."""

    scores: Floats
    token: int


@dataclass(frozen=True)
class Score:
    """Results on a text: the nats (N,) of each token, and whether the best guess was right (N,)."""

    nats: Floats
    right: NDArray[np.bool_]

    @property
    def mean_nats(self) -> float:
        """Cross-entropy in nats per token."""
        return float(self.nats.mean())

    @property
    def accuracy(self) -> float:
        """Share of tokens that were the model's best guess (top 1)."""
        return float(self.right.mean())


class LanguageModel(ABC):
    """A distribution over the next of `vocab_size` tokens, given those before it in the sentence.

    Of equally good tokens the first of the vocabulary is taken, everywhere. Where a model gives 0
    to every token, a continuation stops.
    """

    name: str
    vocab_size: int
    end: int | None

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of stored numbers."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """Bytes of its arrays."""

    @property
    @abstractmethod
    def reach(self) -> int | None:
        """The number of tokens back that it can see; None for all of the sentence."""

    @abstractmethod
    def probs(self, history: History, at: Ids) -> Floats:
        """Return the distributions (n, V) at the places (n,)."""

    def scores(self, history: History, at: Ids) -> Floats:
        """Return the scores (n, V) that choose a token: probabilities, unless a model votes."""
        return self.probs(history, at)

    def history(self, tokens: Ids) -> History:
        """Make the history of a text. Raises InputError for tokens outside the vocabulary."""
        return History(checked_tokens(tokens, self.vocab_size), self.vocab_size, self.end)

    def nats(self, tokens: Ids) -> Floats:
        """Return -ln of the probability of each token (N,); infinite where that is 0."""
        history = self.history(tokens)
        cost = np.empty(len(history))
        with np.errstate(divide="ignore"):
            for at in self._portions(history):
                taken = self.probs(history, at)[np.arange(len(at)), history.tokens[at]]
                cost[at] = -np.log(taken)
        return cost

    def predict(self, tokens: Ids) -> Ids:
        """Return the best guess for each token (N,), from those before it."""
        history = self.history(tokens)
        guess = np.empty(len(history), np.int64)
        for at in self._portions(history):
            guess[at] = self.scores(history, at).argmax(axis=1)
        return guess

    def next_probs(self, prompt: Ids) -> Floats:
        """Return the distribution (V,) of the token after a prompt."""
        history = self.history(prompt)
        probs: Floats = self.probs(history, np.array([len(history)]))[0]
        return probs

    def next_scores(self, prompt: Ids) -> Floats:
        """Return the scores (V,) that choose the token after a prompt."""
        history = self.history(prompt)
        scores: Floats = self.scores(history, np.array([len(history)]))[0]
        return scores

    def walk(self, prompt: Ids, length: int, seed: int | None = None) -> Iterator[Step]:
        """Continue a prompt token by token: greedily, or drawing with a `seed`.

        Stops after `length` tokens, after the end token, or where every probability is 0.
        """
        tokens = list(checked_tokens(prompt, self.vocab_size))
        draw = None if seed is None else random_generator(seed)
        for _ in range(length):
            so_far = np.array(tokens, np.int64)
            scores = self.next_scores(so_far)
            weights = scores if draw is None else self.next_probs(so_far)
            if not weights.sum() > 0:
                return
            if draw is None:
                token = int(scores.argmax())
            else:
                ends = np.cumsum(weights)
                token = int(np.searchsorted(ends[:-1], draw.random() * ends[-1], side="right"))
            yield Step(scores, token)
            if token == self.end:
                return
            tokens.append(token)

    def continue_(self, prompt: Ids, length: int, seed: int | None = None) -> Ids:
        """Return the tokens of `walk`, without the prompt and the end token."""
        taken = [step.token for step in self.walk(prompt, length, seed)]
        return np.array([token for token in taken if token != self.end], np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.parameters:,} numbers)"

    def _portions(self, history: History) -> Iterator[Ids]:
        size = max(1, _CELLS // self.vocab_size)
        for start in range(0, len(history), size):
            yield np.arange(start, min(start + size, len(history)))


def score(model: LanguageModel, tokens: Ids, first: int = 0) -> Score:
    """Measure cost and best guesses of a model on a held-out text, for its tokens from `first` on.

    Models are compared on the same tokens, each with as much before it as any of them can see.
    Raises InputError where no token is left.
    """
    tokens = checked_tokens(tokens, model.vocab_size)
    if len(tokens) <= first:
        raise InputError(
            f"the held-out split has {len(tokens)} tokens, and none is left to predict"
            + (f" after the first {first}" if first else ""),
            "hold out a larger fraction, or give a longer text",
        )
    nats, guess = model.nats(tokens), model.predict(tokens)
    return Score(nats[first:], (guess == tokens)[first:])
