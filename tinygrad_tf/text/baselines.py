"""Count models: the reference lines of a loss curve, in nats per token."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[Any]  # (N,), any integer type, may be a memory map
Counts = NDArray[np.int64]

_CHUNK = 1 << 20
_DENSE_VOCAB = 2048  # beyond it a table of V * V counts takes more than it saves


def unigram_nats(train: Tokens, val: Tokens, vocab_size: int, *, add: float = 1.0) -> float:
    """Return the cross-entropy of `val`, after its first token, under counts of `train`.

    `add` is added to every count (Laplace smoothing); 0 is maximum likelihood, and gives
    infinity if `val` has a token that `train` lacks. In nats per token, in constant memory.
    """
    seen = _count(train, vocab_size)
    asked = _count(val[1:], vocab_size)
    return _cross_entropy(asked, seen + add, len(train) + add * vocab_size)


def bigram_nats(train: Tokens, val: Tokens, vocab_size: int, *, add: float = 1.0) -> float:
    """Return the cross-entropy of `val`, after its first token, given each previous token.

    Counts of pairs in `train`, smoothed as in `unigram_nats`. Splits made of documents need
    nothing more: their pairs never cross from one document to another, as each shares its
    closing boundary with the next. In nats per token.
    """
    seen_pairs, seen = _count_pairs(train, vocab_size)
    asked_pairs, asked = _count_pairs(val, vocab_size)
    first_of_pair = _count(train[:-1], vocab_size)
    place = np.minimum(np.searchsorted(seen_pairs, asked_pairs), len(seen_pairs) - 1)
    matches = np.where(seen_pairs[place] == asked_pairs, seen[place], 0)
    total = first_of_pair[asked_pairs // vocab_size] + add * vocab_size
    return _cross_entropy(asked, matches + add, total)


def _cross_entropy(asked: Counts, numerator: NDArray[Any], denominator: Any) -> float:
    """Return the mean of -log(numerator / denominator) over outcomes seen `asked` times."""
    if not asked.sum():
        raise ValueError("there is no token to predict")
    used = asked > 0
    with np.errstate(divide="ignore"):
        log_probs = np.log(numerator / denominator)
    return float(-(asked[used] @ log_probs[used]) / asked.sum())


def _count(tokens: Tokens, vocab_size: int) -> Counts:
    counts = np.zeros(vocab_size, dtype=np.int64)
    for start in range(0, len(tokens), _CHUNK):
        counts += np.bincount(tokens[start : start + _CHUNK], minlength=vocab_size)
    return counts


def _pair_codes(tokens: Tokens, vocab_size: int) -> Iterator[Counts]:
    """Yield first * V + second of every pair, in chunks."""
    for start in range(0, len(tokens) - 1, _CHUNK):
        chunk = tokens[start : start + _CHUNK + 1].astype(np.int64)
        yield chunk[:-1] * vocab_size + chunk[1:]


def _count_pairs(tokens: Tokens, vocab_size: int) -> tuple[Counts, Counts]:
    """Return the codes of the pairs that occur, ascending, and how often each does."""
    codes = np.empty(0, dtype=np.int64)
    counts = np.empty(0, dtype=np.int64)
    if vocab_size <= _DENSE_VOCAB:
        table = np.zeros(vocab_size**2, dtype=np.int64)
        for chunk in _pair_codes(tokens, vocab_size):
            table += np.bincount(chunk, minlength=vocab_size**2)
        codes = np.flatnonzero(table)
        return codes, table[codes]
    for chunk in _pair_codes(tokens, vocab_size):
        new, new_counts = np.unique(chunk, return_counts=True)
        codes, inverse = np.unique(np.concatenate([codes, new]), return_inverse=True)
        merged = np.zeros(len(codes), dtype=np.int64)
        np.add.at(merged, inverse, np.concatenate([counts, new_counts]))
        counts = merged
    return codes, counts
