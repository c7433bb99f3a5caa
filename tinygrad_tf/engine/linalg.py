"""Products of matrices and vectors, and Einstein's summation.

The op `einsum` takes prepared labels: none twice in one operand, none with two lengths, and each in
the output or in another operand. Then the gradient of one operand is the Einstein sum of the
upstream gradient and the other operands.
"""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from tinygrad_tf.engine.elementwise import multiply, where
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.manipulation import moveaxis, reshape, squeeze
from tinygrad_tf.engine.reductions import sum
from tinygrad_tf.engine.table import as_tensor, primitive, public, record
from tinygrad_tf.engine.tensor import Tensor


# --- matrix products ---
def _matmul_left(g: Any, _y: Any, a: Any, b: Any) -> Any:
    if b.ndim == 1:
        return np.expand_dims(g, -1) * b
    if a.ndim == 1:
        return np.matmul(np.expand_dims(g, -2), np.swapaxes(b, -1, -2))[..., 0, :]
    return np.matmul(g, np.swapaxes(b, -1, -2))


def _matmul_right(g: Any, _y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 1:
        return np.expand_dims(g, -2) * np.expand_dims(a, -1) if b.ndim > 1 else g * a
    if b.ndim == 1:
        return np.matmul(np.swapaxes(a, -1, -2), np.expand_dims(g, -1))[..., 0]
    if b.ndim == 2 and a.ndim > 2 and a.size and g.size:
        rows, columns = a.shape[-1], g.shape[-1]
        return np.matmul(np.swapaxes(np.reshape(a, (-1, rows)), 0, 1), np.reshape(g, (-1, columns)))
    return np.matmul(np.swapaxes(a, -1, -2), g)


@primitive(_matmul_left, _matmul_right, numpy=np.matmul, operators=("__matmul__", "__rmatmul__"))
def matmul(a: Any, b: Any) -> Any:
    """Return the matrix product, for every pair of ranks that NumPy multiplies.

    Raises ValueError for a single number.
    """
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        raise ValueError("a single number is no matrix; multiply by it with *")
    if b.ndim == 2 and a.ndim > 2 and a.size:
        # One large product; NumPy would make one small product per leading index.
        return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b)


@public(numpy=np.dot, method=True)
def dot(a: Any, b: Any) -> Tensor:
    """Sum over the last axis of a and the last axis but one of b (the only axis of a vector)."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    rows = moveaxis(b, -2, 0)
    flat = matmul(a, reshape(rows, (rows.shape[0], math.prod(rows.shape[1:]))))
    return reshape(flat, a.shape[:-1] + rows.shape[1:])


@public(numpy=np.outer)
def outer(a: Any, b: Any) -> Tensor:
    """Multiply every entry of a by every entry of b: (n, m) for n and m entries."""
    return multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


# --- Einstein's summation ---
def _einsum_forward(*xs: Any, inputs: tuple[str, ...], output: str) -> Any:
    return np.einsum(f"{','.join(inputs)}->{output}", *xs, optimize=len(xs) > 1)


def _einsum_rule(
    g: Any, _y: Any, *xs: Any, inputs: tuple[str, ...], output: str, which: int
) -> Any:
    others = [i for i in range(len(xs)) if i != which]
    return _einsum(
        g,
        *(xs[i] for i in others),
        inputs=(output, *(inputs[i] for i in others)),
        output=inputs[which],
    )


_einsum = Op("einsum", _einsum_forward, (_einsum_rule,), variadic=True)


@public(_einsum, numpy=np.einsum)
def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Compute an Einstein sum, with subscripts such as "bij,bjk->bik", as in NumPy.

    A letter twice in one operand takes its diagonal, "..." stands for any further axes, an axis
    of length 1 goes with any length, and without "->" the letters that occur once remain. Raises
    ValueError for subscripts that do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError("einsum takes its subscripts as a string first: einsum('ij,j->i', a, b)")
    xs = [as_tensor(x) for x in operands]
    inputs, output = _parse(subscripts, [x.ndim for x in xs])
    sizes = _lengths(inputs, [x.shape for x in xs])
    pairs = [
        _without_repeats(*_without_thin(x, labels, sizes))
        for x, labels in zip(xs, inputs, strict=True)
    ]
    for i, (x, labels) in enumerate(pairs):
        # Labels that occur nowhere else are summed at once.
        elsewhere = {*output, *(c for j, (_, other) in enumerate(pairs) if j != i for c in other)}
        alone = tuple(a for a, label in enumerate(labels) if label not in elsewhere)
        if alone:
            kept = "".join(label for label in labels if label in elsewhere)
            pairs[i] = (sum(x, axis=alone), kept)
    names = tuple(labels for _, labels in pairs)
    return record(_einsum, *(x for x, _ in pairs), inputs=names, output=output)


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return one letter per axis for every operand and for the output; "..." becomes letters.

    Without "->" the output has the letters that occur once, in alphabetical order, after the
    ellipsis, as in NumPy. Raises ValueError for subscripts that do not fit the ranks.
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{subscripts!r} names {len(terms)} operands, but {len(ranks)} are given")
    letters = [_letters(term, subscripts) for term in terms]
    spans = [
        _ellipsis_length(term, names, rank)
        for term, names, rank in zip(terms, letters, ranks, strict=True)
    ]
    free = [c for c in string.ascii_letters if c not in text][: max(spans, default=0)]
    rest = "".join(free)
    inputs = [
        term.replace("...", rest[len(rest) - span :])
        for term, span in zip(terms, spans, strict=True)
    ]
    if arrow:
        _letters(right, subscripts)
        if rest and "..." not in right:
            raise ValueError(f"the output of {subscripts!r} must say where the ellipsis goes")
        output = right.replace("...", rest)
    else:
        every = "".join(letters)
        output = rest + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    known = set("".join(inputs))
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(f"the output of {subscripts!r} must name axes of the inputs, each once")
    return inputs, output


def _letters(term: str, subscripts: str) -> str:
    names = term.replace("...", "", 1)
    if not all(c in string.ascii_letters for c in names):
        raise ValueError(f"{subscripts!r} has something other than letters, commas, -> and ...")
    return names


def _ellipsis_length(term: str, names: str, rank: int) -> int:
    """Count the axes that the ellipsis of a term stands for."""
    if rank < len(names) or (rank > len(names) and "..." not in term):
        raise ValueError(f"{term!r} names {len(names)} axes of an operand that has {rank}")
    return rank - len(names)


def _lengths(inputs: list[str], shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """Return the length of each label; an axis of length 1 goes with any length."""
    lengths: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            known = lengths.get(label, 1)
            if n != 1 and known not in (1, n):
                raise ValueError(f"an axis of the einsum has the lengths {known} and {n}")
            lengths[label] = known if n == 1 else n
    return lengths


def _without_thin(x: Tensor, labels: str, sizes: dict[str, int]) -> tuple[Tensor, str]:
    """Remove the axes of length 1 whose label has another length in other operands."""
    thin = [a for a, label in enumerate(labels) if x.shape[a] != sizes[label]]
    kept = "".join(label for a, label in enumerate(labels) if a not in thin)
    return (squeeze(x, tuple(thin)) if thin else x), kept


def _without_repeats(x: Tensor, labels: str) -> tuple[Tensor, str]:
    """Take diagonals, until no label occurs twice."""
    for label in labels:
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.rindex(label)
            x = moveaxis(x, (first, second), (-2, -1))
            # Chosen, not multiplied by 0, which would let infinities through.
            x = sum(where(np.eye(x.shape[-1], dtype=bool), x, 0.0), axis=-1)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return x, labels
