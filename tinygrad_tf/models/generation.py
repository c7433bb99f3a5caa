"""Generation: the next token is chosen again and again, greedily or by sampling.

Any model continues texts that has `next_logits(ids, cache)`: a GPT, a GPT with a soft prompt, and
an encoder-decoder, whose searches are in `beam_search`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.nn.cache import Cache
from tinygrad_tf.nn.module import Module
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class Sampling:
    """The settings of a draw; raises InputError for values without meaning.

    Logits are divided by the temperature, and 0 takes the most probable token. Then all but the
    `top_k` most probable tokens are removed, then all but the fewest whose probabilities reach
    `top_p` (Holtzman et al. 2020). At least one token always remains; among equals the lower id
    is kept first.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < math.inf:
            raise InputError(
                f"`temperature` is {self.temperature}",
                "give 0 for the most probable token, or more",
            )
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"`top_k` is {self.top_k}", "give a whole number of at least 1")
        if self.top_p is not None and not 0.0 < self.top_p <= 1.0:
            raise InputError(f"`top_p` is {self.top_p}", "give a number above 0, up to 1")

    def probs(self, logits: Array) -> Array:
        """Return the distribution to draw from: logits (B, V) -> probs (B, V), float64."""
        logits = np.asarray(logits, np.float64)
        # With a tiny temperature everything below the maximum goes to -inf, as it should.
        with np.errstate(over="ignore"):
            scaled = (logits - logits.max(axis=-1, keepdims=True)) / self.temperature
        probs: Array = ops.softmax(scaled).data
        if self.top_k is None and self.top_p is None:
            return probs
        order = np.argsort(-probs, axis=-1, kind="stable")
        ranked = np.take_along_axis(probs, order, axis=-1)
        if self.top_k is not None:
            ranked[:, self.top_k :] = 0.0
        if self.top_p is not None:
            ranked /= ranked.sum(axis=-1, keepdims=True)
            before = np.cumsum(ranked, axis=-1) - ranked
            ranked[before >= self.top_p] = 0.0
        kept: Array = np.zeros_like(probs)
        np.put_along_axis(kept, order, ranked, axis=-1)
        kept /= kept.sum(axis=-1, keepdims=True)
        return kept

    def choose(self, logits: Array, rng: np.random.Generator) -> Array:
        """Choose one token id per row of logits (B, V): the argmax at temperature 0, or a draw."""
        if self.temperature == 0.0:
            return np.asarray(np.argmax(logits, axis=-1))
        cumulative = np.cumsum(self.probs(logits), axis=-1)
        drawn = rng.random((logits.shape[0], 1)) * cumulative[:, -1:]
        return np.asarray(np.argmax(cumulative > drawn, axis=-1))


class Continuable(Protocol):
    """A model that continues texts."""

    training: bool

    def eval(self) -> Module:
        """Switch dropout off."""

    def train(self, mode: bool = True) -> Module:
        """Switch dropout on or off."""

    def next_logits(self, ids: Any, cache: Cache | None) -> Tensor:
        """Return logits (N, 1, V) of the token after ids (N, T), which continue the cache."""


class LanguageModel(Continuable, Protocol):
    """A model that continues texts from ids alone."""

    config: Any

    def new_cache(self) -> Cache:
        """Make an empty cache."""


@contextmanager
def inference(model: Continuable) -> Iterator[None]:
    """Within this context there is no graph and no dropout; afterwards the model is as before."""
    training = model.training
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        model.train(training)


class Prefixes:
    """The beginnings of texts, one a row of `ids` (N, T), and the model's cache for them.

    `origins` (N,) holds the row of the first `ids` from which each row comes. The model reads the
    last `window` tokens at most. Once a text is longer, its positions shift with each token, so
    the cache no longer helps and all of them are computed again.
    """

    def __init__(self, model: Continuable, cache: Cache, ids: Array, window: int) -> None:
        self.model, self.window = model, window
        self.cache: Cache | None = cache
        self.ids, self.origins = ids, np.arange(len(ids))
        self.start = max(0, ids.shape[1] - window)  # of the tokens that are not in the cache

    def next_logits(self) -> Array:
        """Return logits (N, V) of the next tokens; FailedError where they are not finite."""
        start = -self.window if self.cache is None else self.start
        with inference(self.model):
            logits: Array = self.model.next_logits(self.ids[:, start:], self.cache).data[:, -1]
        if not np.isfinite(logits).all():
            raise FailedError("the model's logits are not finite", "did its training diverge?")
        self.start = self.ids.shape[1]
        return logits

    def extend(self, parents: Array, tokens: Array) -> None:
        """Replace the rows by those of `parents` (N',), each with one more token (N',)."""
        self.origins = self.origins[parents]
        self.ids = np.concatenate([self.ids[parents], tokens[:, None]], axis=1)
        self.ids = self.ids[:, -self.window - 1 :]
        if self.ids.shape[1] > self.window:
            self.cache = None
        elif self.cache is not None:
            self.cache.select(parents)


def generate_tokens(
    model: LanguageModel,
    ids: Array,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None = None,
    banned: Array | None = None,
) -> Iterator[Array]:
    """Yield the next token of each row, (B,), `max_new_tokens` times, as each is chosen.

    ids: the prompts (B, T) with T >= 1, of which the last block_size tokens count. The other
    settings are those of `Sampling`; `banned` ids are never chosen. Raises InputError for an
    empty prompt, ids outside the vocabulary and bad settings.
    """
    sampling = Sampling(temperature, top_k, top_p)
    if max_new_tokens < 0:
        raise InputError(f"{max_new_tokens} new tokens", "give 0 or more")
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise InputError(f"a prompt of shape {ids.shape}", "give at least one token, as (1, T)")
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < model.config.vocab_size:
        raise InputError(
            f"prompt ids run from {ids.min()} to {ids.max()}",
            f"the model knows 0 to {model.config.vocab_size - 1}",
        )
    prefixes = Prefixes(model, model.new_cache(), ids, model.config.block_size)
    rng = rng or np.random.default_rng()
    return _generate(prefixes, max_new_tokens, sampling, rng, () if banned is None else banned)


def _generate(
    prefixes: Prefixes,
    max_new_tokens: int,
    sampling: Sampling,
    rng: np.random.Generator,
    banned: Any,
) -> Iterator[Array]:
    for _ in range(max_new_tokens):
        logits = prefixes.next_logits()
        if len(banned):
            logits[:, banned] = -np.inf
        tokens = sampling.choose(logits, rng)
        yield tokens
        prefixes.extend(np.arange(len(tokens)), tokens)
