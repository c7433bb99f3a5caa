"""Search for the target of a source: greedy, sampling, and beam search with a length penalty.

The encoder runs once, the decoder once per token, on a cache. PAD and START are never chosen. A
hypothesis ends with END, or unfinished at the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.generation import Prefixes, Sampling, inference
from tinygrad_tf.models.seq2seq import Transformer
from tinygrad_tf.types import Array

LENGTH_PENALTY = 0.6  # Vaswani et al. 2017, section 6.1
# What a step of a search does: from the ln probabilities of the next tokens (N, V), those of the
# prefixes with them (N, V), the source of each prefix (N,) and the finished hypotheses of each
# source, it chooses the pairs (prefix, token) that go on.
Choose = Callable[[Array, Array, Array, list[list["Hypothesis"]]], Iterable[tuple[int, int]]]


@dataclass(frozen=True)
class Hypothesis:
    """A decoded target, without START and END.

    log_prob: ln of its probability given the source, in nats, with END if it is finished. score:
    log_prob over the length penalty, which beam search compares.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    finished: bool


def penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, where the length counts END (Wu et al. 2016, eq. 14)."""
    return math.pow((5.0 + length) / 6.0, alpha)


def greedy(
    model: Transformer,
    src: Any,
    limit: int | None = None,
    *,
    src_lengths: Any = None,
    length_penalty: float = LENGTH_PENALTY,
) -> list[Hypothesis]:
    """Take the most probable token at every step, among equals the lower id, for each source.

    limit: the largest number of tokens, END included; by default max_length. The length penalty
    changes only the score. Raises InputError for a limit beyond max_length and for a source that
    the model cannot read, FailedError for logits that are not finite.
    """
    search = Search(model, src, src_lengths, limit, length_penalty)
    return [best for (best,) in search.run(_keep(1))]


def beam_search(
    model: Transformer,
    src: Any,
    limit: int | None = None,
    *,
    beam: int = 4,
    n_best: int = 1,
    src_lengths: Any = None,
    length_penalty: float = LENGTH_PENALTY,
) -> list[list[Hypothesis]]:
    """Find the `n_best` hypotheses with the highest scores for each source, the best first.

    Each step keeps the `beam` most probable prefixes; those that end leave the beam, which becomes
    narrower by as many. Unfinished ones count at the limit. The greedy hypothesis is always among
    the candidates, so that no beam is worse than beam 1, which is greedy. Raises errors as
    `greedy` does.
    """
    if beam < 1:
        raise InputError(f"a beam of {beam}", "give a whole number of at least 1")
    if not 1 <= n_best <= beam:
        raise InputError(
            f"the {n_best} best of a beam of {beam}", f"use an `n_best` from 1 to {beam}"
        )
    search = Search(model, src, src_lengths, limit, length_penalty)
    wide = search.run(_keep(beam))
    narrow = search.run(_keep(1)) if beam > 1 else wide
    return [_ranked(own + one)[:n_best] for own, one in zip(wide, narrow, strict=True)]


def sample(
    model: Transformer,
    src: Any,
    limit: int | None = None,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None = None,
    src_lengths: Any = None,
    length_penalty: float = LENGTH_PENALTY,
) -> list[Hypothesis]:
    """Draw one hypothesis per source; temperature, top_k and top_p are those of `Sampling`.

    log_prob is the model's own, at temperature 1 and over all tokens. Raises errors as `greedy`
    does, and InputError for bad settings.
    """
    sampling, rng = Sampling(temperature, top_k, top_p), rng or np.random.default_rng()
    search = Search(model, src, src_lengths, limit, length_penalty)

    def draw(log_probs: Array, *_: Any) -> Iterable[tuple[int, int]]:
        return enumerate(sampling.choose(log_probs, rng).tolist())

    return [drawn for (drawn,) in search.run(draw)]


class Search:
    """A batch of sources, encoded once, for which hypotheses are searched."""

    def __init__(
        self, model: Transformer, src: Any, src_lengths: Any, limit: int | None, alpha: float
    ) -> None:
        longest = model.config.max_length
        self.limit = longest if limit is None else limit
        if not 1 <= self.limit <= longest:
            raise InputError(
                f"a limit of {limit} tokens", f"the model can write 1 to {longest} (its max_length)"
            )
        if not 0.0 <= alpha < math.inf:
            raise InputError(f"length penalty {alpha}", "give 0 for none, or more")
        self.model, self.alpha = model, alpha
        self.src, self.src_lengths = np.asarray(src), src_lengths
        with inference(model):
            self.memory = model.encode(src, src_lengths)

    def run(self, choose: Choose) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source that this way to choose arrives at."""
        config = self.model.config
        start = np.full((len(self.src), 1), config.start_id, np.int64)
        with inference(self.model):
            cache = self.model.new_cache(
                self.memory, self.src, self.src_lengths, capacity=self.limit
            )
        prefixes = Prefixes(self.model, cache, start, config.max_length)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self.src]
        totals = np.zeros(len(self.src))  # ln of the probability of each prefix
        for _ in range(self.limit):
            log_probs = self._log_probs(prefixes)
            reached = totals[:, None] + log_probs
            kept: list[tuple[int, int, float]] = []
            for row, token in choose(log_probs, reached, prefixes.origins, hypotheses):
                total = float(reached[row, token])
                if token == config.end_id:
                    ended = self._hypothesis(prefixes.ids[row], total, finished=True)
                    hypotheses[int(prefixes.origins[row])].append(ended)
                else:
                    kept.append((row, token, total))
            if not kept:
                return hypotheses
            rows, tokens, totals = (np.array(column) for column in zip(*kept, strict=True))
            prefixes.extend(rows, tokens)
        for source, ids, total in zip(prefixes.origins, prefixes.ids, totals, strict=True):
            hypotheses[source].append(self._hypothesis(ids, float(total), finished=False))
        return hypotheses

    def _log_probs(self, prefixes: Prefixes) -> Array:
        """ln of the probability of each next token, (N, V); -inf for PAD and START."""
        logits = np.asarray(prefixes.next_logits(), np.float64)
        log_probs: Array = ops.log_softmax(logits - logits.max(axis=-1, keepdims=True)).data
        log_probs[:, [self.model.config.pad_id, self.model.config.start_id]] = -np.inf
        return log_probs

    def _hypothesis(self, ids: Array, log_prob: float, *, finished: bool) -> Hypothesis:
        tokens = tuple(ids[1:].tolist())
        score = log_prob / penalty(len(tokens) + finished, self.alpha)
        return Hypothesis(tokens, log_prob, score, finished)


def _keep(width: int) -> Choose:
    """The choice of a beam: the most probable prefixes, `width` of them with the finished."""

    def choose(
        _: Array, reached: Array, origins: Array, hypotheses: list[list[Hypothesis]]
    ) -> Iterator[tuple[int, int]]:
        for source, finished in enumerate(hypotheses):
            rows = np.flatnonzero(origins == source)
            for row, token in _most_probable(reached[rows], width - len(finished)):
                yield int(rows[row]), token

    return choose


def _most_probable(log_probs: Array, count: int) -> list[tuple[int, int]]:
    """The `count` highest entries as (row, token), of equals the earlier row and lower token."""
    order = np.argsort(-log_probs, axis=None, kind="stable")[:count]
    rows, tokens = np.unravel_index(order, log_probs.shape)
    pairs = zip(rows.tolist(), tokens.tolist(), strict=True)
    return [pair for pair in pairs if log_probs[pair] > -np.inf]


def _ranked(candidates: list[Hypothesis]) -> list[Hypothesis]:
    """Sort by falling score; of one found twice, whose scores differ by rounding, the higher."""
    ranked: dict[tuple[tuple[int, ...], bool], Hypothesis] = {}
    for h in sorted(candidates, key=lambda h: -h.score):
        ranked.setdefault((h.tokens, h.finished), h)
    return list(ranked.values())
