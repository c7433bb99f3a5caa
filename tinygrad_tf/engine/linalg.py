"""Public functions that multiply and add: matrix products and Einstein's sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine import rules
from tinygrad_tf.engine.arguments import as_tensor
from tinygrad_tf.engine.einsum import einsum as einsum_record
from tinygrad_tf.engine.einsum import lengths, parse
from tinygrad_tf.engine.elementwise import multiply, where
from tinygrad_tf.engine.manipulation import moveaxis, reshape, squeeze
from tinygrad_tf.engine.reductions import sum
from tinygrad_tf.engine.tensor import Tensor


def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product, for every pair of ranks that NumPy multiplies."""
    for x in (a, b):
        if not isinstance(x, Tensor) and not np.ndim(x):
            raise ValueError("a single number is no matrix; multiply by it with *")
    return Tensor.record(rules.matmul, a, b)


def dot(a: Any, b: Any) -> Tensor:
    """The sum over the last axis of a and the last but one of b (the only one of a vector)."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    rows = moveaxis(b, -2, 0)
    flat = matmul(a, reshape(rows, (rows.shape[0], math.prod(rows.shape[1:]))))
    return reshape(flat, a.shape[:-1] + rows.shape[1:])


def outer(a: Any, b: Any) -> Tensor:
    """Every entry of a times every entry of b: (n, m) for n and m entries."""
    return multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Einstein's sum, with subscripts such as "bij,bjk->bik", as in NumPy.

    A letter twice in one operand takes its diagonal, "..." stands for any further axes, an axis
    of length 1 goes with any length, and without "->" the letters that occur once remain. Raises
    ValueError for subscripts that do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError("einsum takes its subscripts as a string first: einsum('ij,j->i', a, b)")
    xs = [as_tensor(x) for x in operands]
    inputs, output = parse(subscripts, [x.ndim for x in xs])
    sizes = lengths(inputs, [x.shape for x in xs])
    pairs = [_distinct(*_full(x, labels, sizes)) for x, labels in zip(xs, inputs, strict=True)]
    for i, (x, labels) in enumerate(pairs):
        # What nobody else asks for is summed at once.
        elsewhere = {*output, *(c for j, (_, other) in enumerate(pairs) if j != i for c in other)}
        alone = tuple(a for a, label in enumerate(labels) if label not in elsewhere)
        if alone:
            kept = "".join(label for label in labels if label in elsewhere)
            pairs[i] = (sum(x, axis=alone), kept)
    names = tuple(labels for _, labels in pairs)
    return Tensor.record(einsum_record, *(x for x, _ in pairs), inputs=names, output=output)


def _full(x: Tensor, labels: str, sizes: dict[str, int]) -> tuple[Tensor, str]:
    """Without the axes of length 1 that are to go with another length."""
    thin = [a for a, label in enumerate(labels) if x.shape[a] != sizes[label]]
    kept = "".join(label for a, label in enumerate(labels) if a not in thin)
    return (squeeze(x, tuple(thin)) if thin else x), kept


def _distinct(x: Tensor, labels: str) -> tuple[Tensor, str]:
    """Diagonals taken, until no label occurs twice."""
    for label in labels:
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.rindex(label)
            x = moveaxis(x, (first, second), (-2, -1))
            # Chosen, not multiplied by 0, which would let infinities through.
            x = sum(where(np.eye(x.shape[-1], dtype=bool), x, 0.0), axis=-1)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return x, labels
