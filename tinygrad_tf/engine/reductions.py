"""Public functions along axes: sums, products, extremes, norms, softmax and kin.

axis: None is all axes, () is none; a negative axis counts from the end; a tuple names several.
keepdims: whether the axes stay, with length 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine import rules, scan_rules
from tinygrad_tf.engine.arguments import as_array, as_axes, as_axis, as_real, as_tensor
from tinygrad_tf.engine.elementwise import absolute, power, square, where
from tinygrad_tf.engine.manipulation import reshape, squeeze, transpose
from tinygrad_tf.engine.tensor import Tensor

_record = Tensor.record


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over all entries, or over the axis or axes given."""
    x = as_tensor(x)
    return _record(rules.sum, x, axes=as_axes(x, axis), keepdims=keepdims, shape=x.shape)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over all entries, or over the axis or axes given."""
    x = as_tensor(x)
    count = math.prod(x.shape[a] for a in as_axes(x, axis))
    return sum(x, axis, keepdims) * (1.0 / count if count else math.nan)


def var(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, divided by n - ddof."""
    x = as_tensor(x)
    count = math.prod(x.shape[a] for a in as_axes(x, axis)) - ddof
    total = sum(square(x - mean(x, axis, keepdims=True)), axis, keepdims)
    return total * (1.0 / count if count > 0 else math.nan)


def std(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The square root of the variance; where all entries are equal its derivative is 0."""
    return _record(rules.root, var(x, axis, ddof, keepdims))


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product of all entries, or over the axis or axes given; zeros have right gradients."""
    x = as_tensor(x)
    axes = as_axes(x, axis)
    left = tuple(a for a in range(x.ndim) if a not in axes)
    if len(axes) == 1:
        result = _record(scan_rules.prod, x, axis=axes[0])
    else:
        rows = transpose(x, left + axes) if axes and left else x
        count = math.prod(x.shape[a] for a in axes)
        shape = tuple(x.shape[a] for a in left)
        result = _record(scan_rules.prod, reshape(rows, (*shape, count)), axis=len(left))
    if not keepdims:
        return result
    return reshape(result, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))


def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """The sums of the first 1, 2, ... entries along an axis; None joins all axes first."""
    x, at = _line(x, axis)
    return _record(scan_rules.cumsum, x, axis=at)


def cumprod(x: Any, axis: int | None = None) -> Tensor:
    """The products of the first 1, 2, ... entries along an axis; None joins all axes first."""
    x, at = _line(x, axis)
    return _record(scan_rules.cumprod, x, axis=at)


def _line(x: Any, axis: int | None) -> tuple[Tensor, int]:
    x = as_tensor(x)
    return (reshape(x, (-1,)), 0) if axis is None else (x, as_axis(x, axis))


def norm(
    x: Any, ord: float | str | None = None, axis: Any = None, keepdims: bool = False
) -> Tensor:
    """(Σ |x|^ord)^(1/ord), by default the square root of the sum of squares; at 0 the slope is 0.

    ord: None, 2 or "fro" is Euclid's length, inf the largest |x|, else a number of at least 1.
    It is the norm of vectors, over all entries where axis is None or several; the other norms of
    matrices are not here. Raises ValueError for another ord.
    """
    x = as_tensor(x)
    if ord in (None, 2, "fro"):
        return _record(rules.root, sum(square(x), axis, keepdims))
    if not isinstance(ord, int | float) or not ord >= 1:
        raise ValueError(f"ord is {ord!r}; give None, a number of at least 1, or inf")
    if len(as_axes(x, axis)) > 1:
        raise ValueError(f"ord {ord} of several axes is a norm of matrices; join the axes first")
    size = absolute(x)
    if ord == math.inf:
        return max(size, axis, keepdims)
    if ord == 1:
        return sum(size, axis, keepdims)
    total = sum(power(size, float(ord)), axis, keepdims)
    empty = total == 0.0
    return where(empty, 0.0, power(where(empty, 1.0, total), 1.0 / ord))


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest entry; entries that tie share its gradient equally (as torch.amax)."""
    x = as_tensor(x)
    return _record(rules.max, x, axes=as_axes(x, axis), keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest entry; entries that tie share its gradient equally (as torch.amin)."""
    x = as_tensor(x)
    return _record(rules.min, x, axes=as_axes(x, axis), keepdims=keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the smallest entry, the first among equals; it has no gradient."""
    return Tensor(np.argmin(as_array(x), axis=axis, keepdims=keepdims))


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the largest entry, the first among equals; it has no gradient."""
    return Tensor(np.argmax(as_array(x), axis=axis, keepdims=keepdims))


amax, amin = max, min


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """exp(x) / Σ exp(x) along the axis; where all of it is -inf the result is 0, never nan."""
    x = as_real(x)
    return _record(rules.softmax, x, axis=_span(x, axis))


def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """log of the softmax along the axis, in nats; where all of it is -inf it stays so."""
    x = as_real(x)
    return _record(rules.log_softmax, x, axis=_span(x, axis))


def logsumexp(x: Any, axis: Any = -1, keepdims: bool = False) -> Tensor:
    """log Σ exp(x) along the axis, computed stably."""
    x = as_real(x)
    axes = _span(x, axis)
    result = _record(rules.logsumexp, x, axis=axes)
    return result if keepdims else squeeze(result, axes)


def _span(x: Tensor, axis: Any) -> Any:
    """One axis as it is, which costs nothing; else a tuple."""
    return axis if type(axis) is int and -x.ndim <= axis < x.ndim else as_axes(x, axis)
