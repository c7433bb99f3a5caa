"""Writing a target for a source: greedy, sampling, and beam search with a length penalty.

The encoder runs once. The decoder runs once per token, on a cache, or on all tokens so far with
use_cache=False, which gives the same. PAD and START are never chosen. A hypothesis ends with END,
or unfinished at the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models.sampling import check_sampling, choose
from tinygrad_tf.models.seq2seq import Transformer
from tinygrad_tf.models.stacks import DecoderCache
from tinygrad_tf.models.targets import never_chosen
from tinygrad_tf.types import Array

LENGTH_PENALTY = 0.6  # Vaswani et al. 2017, section 6.1


@dataclass(frozen=True)
class Hypothesis:
    """A target that was written, without START and END.

    log_prob: ln of its probability given the source, in nats, that of END included if it is
    finished. score: log_prob over the length penalty; what beam search compares.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    finished: bool


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, the length counting END (Wu et al. 2016, eq. 14)."""
    return math.pow((5.0 + length) / 6.0, alpha)


class Source:
    """What is answered, encoded once, and how: the limit of tokens, with a cache or without."""

    def __init__(
        self, model: Transformer, src: Any, lengths: Any, limit: int, use_cache: bool
    ) -> None:
        self.model, self.limit, self.use_cache = model, limit, use_cache
        self.src = np.asarray(src)
        self.lengths = None if lengths is None else np.asarray(lengths)
        self.memory = model.encode(src, lengths)

    def __len__(self) -> int:
        return len(self.src)


class Prefixes:
    """The beginnings of targets, one a row, each for a row of the source; at first START alone."""

    def __init__(self, source: Source) -> None:
        self.source, self.model = source, source.model
        self.answers = np.arange(len(source))  # which row of the source each row answers
        self.ids = np.full((len(source), 1), self.model.config.start_id, np.int64)
        self.cache: DecoderCache | None = None
        if source.use_cache:
            self.cache = self.model.new_cache(
                source.memory, source.src, source.lengths, capacity=source.limit
            )

    def next_logits(self) -> Array:
        """Logits (N, V) of the token after each row, float64; raises FailedError for nan or inf."""
        if self.cache is not None:
            logits = self.model.decode_next(self.ids[:, -1:], self.cache)
        else:
            lengths, rows = self.source.lengths, self.answers
            logits = self.model.decode(
                self.ids,
                self.source.memory[rows],
                self.source.src[rows],
                None if lengths is None else lengths[rows],
                last_only=True,
            )
        if not np.isfinite(logits.data).all():
            raise FailedError("the model's logits are not finite", "did its training diverge?")
        return np.asarray(logits.data[:, -1], np.float64)

    def extend(self, parents: Array, tokens: Array) -> None:
        """The new rows: each one of the old with one more token."""
        self.answers = self.answers[parents]
        self.ids = np.concatenate([self.ids[parents], tokens[:, None]], axis=1)
        if self.cache is not None:
            self.cache.select(parents)


def greedy(
    model: Transformer,
    src: Any,
    limit: int | None = None,
    *,
    src_lengths: Any = None,
    length_penalty: float = LENGTH_PENALTY,
    use_cache: bool = True,
) -> list[Hypothesis]:
    """The most probable token at every step, of equals the lower id: one hypothesis per source.

    limit: how many tokens to write at most, END included; by default max_length. The length
    penalty changes the score that is told, not the choice. Raises InputError for a limit beyond
    max_length, and for a source that the model cannot read.
    """
    limit = _check(model, limit, 1, 1, length_penalty)
    with _inferring(model):
        source = Source(model, src, src_lengths, limit, use_cache)
        return [best for (best,) in _search(source, 1, length_penalty)]


def beam_search(
    model: Transformer,
    src: Any,
    limit: int | None = None,
    *,
    beam: int = 4,
    n_best: int = 1,
    src_lengths: Any = None,
    length_penalty: float = LENGTH_PENALTY,
    use_cache: bool = True,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses with the highest scores for each source, the best first.

    Each step keeps the `beam` most probable prefixes; those that end leave the beam, which becomes
    narrower by as many. Unfinished ones count at the limit. The greedy hypothesis is always among
    the candidates, so that no beam is worse than beam 1, which is greedy. Raises InputError as
    `greedy` does.
    """
    limit = _check(model, limit, beam, n_best, length_penalty)
    with _inferring(model):
        source = Source(model, src, src_lengths, limit, use_cache)
        found = _search(source, beam, length_penalty)
        first = _search(source, 1, length_penalty) if beam > 1 else found
    return [_ranked(own + one)[:n_best] for own, one in zip(found, first, strict=True)]


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
    use_cache: bool = True,
) -> list[Hypothesis]:
    """One drawn hypothesis per source; temperature, top_k and top_p as in `token_probs`.

    log_prob is the model's own, at temperature 1 and uncut. Raises InputError as `greedy` does.
    """
    limit = _check(model, limit, 1, 1, length_penalty)
    check_sampling(limit, temperature, top_k, top_p)
    rng = rng or np.random.default_rng()
    with _inferring(model):
        source = Source(model, src, src_lengths, limit, use_cache)
        found = _sample(source, rng, (temperature, top_k, top_p), length_penalty)
    return [found[row] for row in range(len(source))]


def _search(source: Source, width: int, alpha: float) -> list[list[Hypothesis]]:
    """What a beam of this width finds for each row of the source."""
    prefixes, end = Prefixes(source), source.model.config.end_id
    found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    totals = np.zeros(len(source))  # ln of the probability of each prefix
    for _ in range(source.limit):
        reached = totals[:, None] + _log_probs(prefixes)
        kept: list[tuple[int, int, float]] = []
        for answered, done in enumerate(found):
            rows = np.flatnonzero(prefixes.answers == answered)
            for place, token in _most_probable(reached[rows], width - len(done)):
                parent = int(rows[place])
                total = float(reached[parent, token])
                if token == end:
                    done.append(_hypothesis(prefixes.ids[parent], total, alpha, finished=True))
                else:
                    kept.append((parent, token, total))
        if not kept:
            return found
        parents, tokens, sums = (np.array(column) for column in zip(*kept, strict=True))
        prefixes.extend(parents, tokens)
        totals = sums
    for row, ids, total in zip(prefixes.answers, prefixes.ids, totals, strict=True):
        found[row].append(_hypothesis(ids, float(total), alpha, finished=False))
    return found


def _sample(
    source: Source,
    rng: np.random.Generator,
    options: tuple[float, int | None, float | None],
    alpha: float,
) -> dict[int, Hypothesis]:
    """What is drawn, by row of the source."""
    prefixes, end = Prefixes(source), source.model.config.end_id
    found: dict[int, Hypothesis] = {}
    totals = np.zeros(len(source))
    for _ in range(source.limit):
        log_probs = _log_probs(prefixes)
        tokens = choose(log_probs, rng, *options)
        totals = totals + log_probs[np.arange(len(tokens)), tokens]
        for at in np.flatnonzero(tokens == end):
            ids, total = prefixes.ids[at], float(totals[at])
            found[int(prefixes.answers[at])] = _hypothesis(ids, total, alpha, finished=True)
        live = np.flatnonzero(tokens != end)
        if not live.size:
            return found
        prefixes.extend(live, tokens[live])
        totals = totals[live]
    for row, ids, total in zip(prefixes.answers, prefixes.ids, totals, strict=True):
        found[int(row)] = _hypothesis(ids, float(total), alpha, finished=False)
    return found


def _log_probs(prefixes: Prefixes) -> Array:
    """ln of the probability of each next token, (N, V); -inf for what is never chosen."""
    logits = prefixes.next_logits()
    logits -= logits.max(axis=-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    logits[:, never_chosen(prefixes.model.config)] = -np.inf
    return logits


def _most_probable(log_probs: Array, count: int) -> list[tuple[int, int]]:
    """The `count` highest entries as (row, token), of equals the earlier row and lower token."""
    order = np.argsort(-log_probs, axis=None, kind="stable")[:count]
    rows, tokens = np.unravel_index(order, log_probs.shape)
    pairs = zip(rows.tolist(), tokens.tolist(), strict=True)
    return [pair for pair in pairs if log_probs[pair] > -np.inf]


def _hypothesis(ids: Array, log_prob: float, alpha: float, *, finished: bool) -> Hypothesis:
    tokens = tuple(ids[1:].tolist())
    score = log_prob / penalty(len(tokens) + finished, alpha)
    return Hypothesis(tokens, log_prob, score, finished)


def _ranked(candidates: list[Hypothesis]) -> list[Hypothesis]:
    """By falling score; of one found twice, whose scores differ by rounding, the higher."""
    ranked: dict[tuple[tuple[int, ...], bool], Hypothesis] = {}
    for h in sorted(candidates, key=lambda h: -h.score):
        ranked.setdefault((h.tokens, h.finished), h)
    return list(ranked.values())


def _check(
    model: Transformer, limit: int | None, beam: int, n_best: int, length_penalty: float
) -> int:
    longest = model.config.max_length
    limit = longest if limit is None else limit
    if not 1 <= limit <= longest:
        raise InputError(
            f"a limit of {limit} tokens", f"the model can write 1 to {longest} (its max_length)"
        )
    if beam < 1:
        raise InputError(f"a beam of {beam}", "give a whole number of at least 1")
    if not 1 <= n_best <= beam:
        raise InputError(f"the {n_best} best of a beam of {beam}", f"ask for 1 to {beam}")
    if not 0.0 <= length_penalty < math.inf:
        raise InputError(f"length penalty {length_penalty}", "give 0 for none, or more")
    return limit


@contextmanager
def _inferring(model: Transformer) -> Iterator[None]:
    """No graph and no dropout; afterwards the model is as it was."""
    training = model.training
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        model.train(training)
