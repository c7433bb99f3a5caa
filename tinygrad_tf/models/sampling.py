"""Choosing the next token: greedy, temperature, top-k, top-p."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

if TYPE_CHECKING:
    from tinygrad_tf.models.gpt import GPT
    from tinygrad_tf.models.soft_prompt import PromptedGPT


def token_probs(
    logits: Array, temperature: float, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """The distribution to draw from: logits (B, V) -> probs (B, V), float64.

    Logits are divided by the temperature; then all but the `top_k` most probable tokens are cut,
    then all but the fewest whose probabilities reach `top_p` (Holtzman et al. 2020). At least
    one token always remains; of equals the lower id is kept first.
    """
    logits = np.asarray(logits, np.float64)
    # Of a tiny temperature: everything below the maximum goes to -inf, as it should.
    with np.errstate(over="ignore"):
        probs: Array = np.exp((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    probs /= probs.sum(axis=-1, keepdims=True)
    if top_k is None and top_p is None:
        return probs
    order = np.argsort(-probs, axis=-1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=-1)
    if top_k is not None:
        ranked[:, top_k:] = 0.0
    if top_p is not None:
        ranked /= ranked.sum(axis=-1, keepdims=True)
        before = np.cumsum(ranked, axis=-1) - ranked
        ranked[before >= top_p] = 0.0
    kept: Array = np.zeros_like(probs)
    np.put_along_axis(kept, order, ranked, axis=-1)
    kept /= kept.sum(axis=-1, keepdims=True)
    return kept


def choose(
    logits: Array,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Array:
    """One token id per row of logits (B, V): the argmax at temperature 0, else a draw."""
    if temperature == 0.0:
        return np.asarray(np.argmax(logits, axis=-1))
    cumulative = np.cumsum(token_probs(logits, temperature, top_k, top_p), axis=-1)
    drawn = rng.random((logits.shape[0], 1)) * cumulative[:, -1:]
    return np.asarray(np.argmax(cumulative > drawn, axis=-1))


def check_sampling(
    max_new_tokens: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    """Raise InputError for a number of tokens, temperature, top_k or top_p that means nothing."""
    if max_new_tokens < 0:
        raise InputError(f"{max_new_tokens} new tokens", "give 0 or more")
    if not 0.0 <= temperature < math.inf:
        raise InputError(
            f"temperature is {temperature}", "give 0 for the most probable token, or more"
        )
    if top_k is not None and top_k < 1:
        raise InputError(f"top-k is {top_k}", "give a whole number of at least 1")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise InputError(f"top-p is {top_p}", "give a number above 0, up to 1")


def generate_tokens(
    model: GPT | PromptedGPT,
    ids: Array,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None = None,
    use_cache: bool = True,
    banned: Array | None = None,
) -> Iterator[Array]:
    """Yield the next token of each row, (B,), `max_new_tokens` times, as they are chosen.

    ids (B, T) with T >= 1. Once the text is longer than block_size, each step sees the last
    block_size tokens; their positions shift, so the cache no longer helps and all are computed
    again. `banned` ids are never chosen. Raises InputError for an empty prompt, ids outside the
    vocabulary and bad options.
    """
    check_sampling(max_new_tokens, temperature, top_k, top_p)
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise InputError(f"a prompt of shape {ids.shape}", "give at least one token, as (1, T)")
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < model.config.vocab_size:
        raise InputError(
            f"prompt ids run from {ids.min()} to {ids.max()}",
            f"the model knows 0 to {model.config.vocab_size - 1}",
        )
    return _generate(
        model,
        ids,
        max_new_tokens,
        temperature,
        top_k,
        top_p,
        rng or np.random.default_rng(),
        use_cache,
        banned,
    )


def _generate(
    model: GPT | PromptedGPT,
    ids: Array,
    max_new_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    rng: np.random.Generator,
    use_cache: bool,
    banned: Array | None,
) -> Iterator[Array]:
    context = ids[:, -model.config.block_size :]
    cache = model.new_cache() if use_cache else None
    unseen = context
    for _ in range(max_new_tokens):
        logits = _last_logits(model, unseen, cache)
        if banned is not None and banned.size:
            logits[:, banned] = -np.inf
        chosen = choose(logits, rng, temperature, top_k, top_p)
        yield chosen
        context = np.concatenate([context, chosen[:, None]], axis=1)
        if context.shape[1] > model.config.block_size:
            context, cache = context[:, 1:], None
        unseen = context if cache is None else chosen[:, None]


@no_grad()
def _last_logits(model: GPT | PromptedGPT, ids: Array, cache: Any) -> Array:
    """Logits of the last position, (B, V), without dropout."""
    training = model.training
    model.eval()
    try:
        return model(ids, cache=cache, last_only=True).data[:, -1]  # type: ignore[no-any-return]
    finally:
        model.train(training)
