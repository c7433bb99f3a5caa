"""Functions along axes: sums, products, extremes, norms, softmax and its relatives.

axis: None is all axes, () is none; a negative axis counts from the end; a tuple names several.
keepdims: whether the reduced axes stay, with length 1.

The gradient of a product for an entry is the product divided by the entry. Where an entry is 0, the
products of the entries before it and after it are multiplied instead: exact, at any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine.backward import column_sum
from tinygrad_tf.engine.elementwise import absolute, power, root, square, where
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.manipulation import as_line, reshape, squeeze, transpose
from tinygrad_tf.engine.table import (
    FUNCTIONS,
    NUMPY,
    as_array,
    as_axes,
    as_real,
    as_tensor,
    public,
    record,
)
from tinygrad_tf.engine.tensor import Tensor


# --- sums; `axes` is a tuple of non-negative ints ---
def _with_axes(g: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Give a reduced gradient its axes back, with length 1."""
    return g if keepdims or not axes else np.expand_dims(g, axes)


def _sum_forward(x: Any, axes: tuple[int, ...], keepdims: bool, shape: tuple[int, ...]) -> Any:
    lead = len(axes)
    if x.dtype.kind == "f" and 0 < lead < x.ndim and sorted(axes) == list(range(lead)):
        total = column_sum(x.reshape(math.prod(shape[:lead]), *shape[lead:]))
        return np.expand_dims(total, axes) if keepdims else total
    return np.add.reduce(x, axis=axes, keepdims=bool(keepdims))  # type: ignore[call-overload]


def _sum_rule(
    g: Any, _y: Any, _x: Any, *, axes: tuple[int, ...], keepdims: bool, shape: tuple[int, ...]
) -> Any:
    return np.broadcast_to(_with_axes(g, axes, keepdims), shape)


_sum = Op("sum", _sum_forward, (_sum_rule,))


@public(_sum, numpy=(np.sum, np.add.reduce), method=True)
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over all axes, or over `axis`."""
    x = as_tensor(x)
    return record(_sum, x, axes=as_axes(x, axis), keepdims=keepdims, shape=x.shape)


@public(numpy=np.mean, method=True)
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Average over all axes, or over `axis`."""
    x = as_tensor(x)
    count = math.prod(x.shape[a] for a in as_axes(x, axis))
    return sum(x, axis, keepdims) * (1.0 / count if count else math.nan)


@public(numpy=np.var, method=True)
def var(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Return the variance: squared distances from the mean, summed and divided by n - ddof."""
    x = as_tensor(x)
    count = math.prod(x.shape[a] for a in as_axes(x, axis)) - ddof
    total = sum(square(x - mean(x, axis, keepdims=True)), axis, keepdims)
    return total * (1.0 / count if count > 0 else math.nan)


@public(numpy=np.std, method=True)
def std(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Return the square root of the variance; where all entries are equal its derivative is 0."""
    return record(root, var(x, axis, ddof, keepdims))


# --- running sums and products, along one axis ---
def _cut(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _reversed(x: Any, axis: int) -> Any:
    return _cut(x, axis, None, None, -1)


def _product_before(x: Any, axis: int) -> Any:
    """Return 1, x0, x0 x1, ...: for each entry, the product of the entries before it."""
    first = _cut(x, axis, 0, 1)
    rest = _cumprod(_cut(x, axis, 0, -1), axis=axis)
    return np.concatenate([np.ones(first.shape, x.dtype), rest], axis=axis)


def _cumsum_rule(g: Any, _y: Any, _x: Any, *, axis: int) -> Any:
    return _reversed(np.cumsum(_reversed(g, axis), axis=axis), axis)


def _cumprod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    if not np.any(x == 0.0):
        return _cumsum_rule(g * y, None, None, axis=axis) / x
    # Entry k changes the products from k on: g_k + x_(k+1) (g_(k+1) + x_(k+2) (...)).
    later = _cut(g, axis, -1, None)
    parts = [later]
    for k in range(x.shape[axis] - 2, -1, -1):
        later = _cut(g, axis, k, k + 1) + _cut(x, axis, k + 1, k + 2) * later
        parts.append(later)
    return _product_before(x, axis) * np.concatenate(parts[::-1], axis=axis)


def _prod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    g, y = np.expand_dims(g, axis), np.expand_dims(y, axis)
    if not np.any(x == 0.0):
        return g * y / x
    after = _reversed(_product_before(_reversed(x, axis), axis), axis)
    return g * _product_before(x, axis) * after


_cumsum = Op("cumsum", lambda x, axis: np.cumsum(x, axis=axis), (_cumsum_rule,))
_cumprod = Op("cumprod", lambda x, axis: np.cumprod(x, axis=axis), (_cumprod_rule,))
_prod = Op("prod", lambda x, axis: np.multiply.reduce(x, axis=axis), (_prod_rule,))


@public(_cumsum, numpy=(np.cumsum, np.add.accumulate), method=True)
def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """Return the sums of the first 1, 2, ... entries along an axis; None flattens x first."""
    x, axis = as_line(x, axis)
    return record(_cumsum, x, axis=axis)


@public(_cumprod, numpy=(np.cumprod, np.multiply.accumulate), method=True)
def cumprod(x: Any, axis: int | None = None) -> Tensor:
    """Return the products of the first 1, 2, ... entries along an axis; None flattens x first."""
    x, axis = as_line(x, axis)
    return record(_cumprod, x, axis=axis)


@public(_prod, numpy=(np.prod, np.multiply.reduce), method=True)
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Multiply over all axes, or over `axis`; the gradient is right also where entries are 0."""
    x = as_tensor(x)
    axes = as_axes(x, axis)
    left = tuple(a for a in range(x.ndim) if a not in axes)
    if len(axes) == 1:
        result = record(_prod, x, axis=axes[0])
    else:
        rows = transpose(x, left + axes) if axes and left else x
        count = math.prod(x.shape[a] for a in axes)
        shape = tuple(x.shape[a] for a in left)
        result = record(_prod, reshape(rows, (*shape, count)), axis=len(left))
    if not keepdims:
        return result
    return reshape(result, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))


# --- extremes ---
def _extreme_rule(g: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    # Entries that tie share the gradient equally; an extreme that is nan belongs to the nans.
    top = _with_axes(y, axes, keepdims)
    hit = ((x == top) | (np.isnan(x) & np.isnan(top))).astype(g.dtype)
    return _with_axes(g, axes, keepdims) * (hit / np.sum(hit, axis=axes, keepdims=True))


_max = Op(
    "max", lambda x, axes, keepdims: np.max(x, axis=axes, keepdims=keepdims), (_extreme_rule,)
)
_min = Op(
    "min", lambda x, axes, keepdims: np.min(x, axis=axes, keepdims=keepdims), (_extreme_rule,)
)


@public(_max, numpy=(np.max, np.maximum.reduce), method=True)
def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest entry; entries that tie share its gradient equally (as torch.amax)."""
    x = as_tensor(x)
    return record(_max, x, axes=as_axes(x, axis), keepdims=keepdims)


@public(_min, numpy=(np.min, np.minimum.reduce), method=True)
def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest entry; entries that tie share its gradient equally (as torch.amin)."""
    x = as_tensor(x)
    return record(_min, x, axes=as_axes(x, axis), keepdims=keepdims)


amax = FUNCTIONS["amax"] = max
amin = FUNCTIONS["amin"] = min


@public(numpy=np.argmin, method=True)
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest entry, the first among equals; it has no gradient."""
    return Tensor(np.argmin(as_array(x), axis=axis, keepdims=keepdims))


@public(numpy=np.argmax, method=True)
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest entry, the first among equals; it has no gradient."""
    return Tensor(np.argmax(as_array(x), axis=axis, keepdims=keepdims))


# --- norms ---
@public()
def norm(
    x: Any, ord: float | str | None = None, axis: Any = None, keepdims: bool = False
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord), by default the Euclidean norm; the derivative at 0 is 0.

    ord: None, 2 or "fro" is the Euclidean norm, inf the largest |x|, else a number of at least 1.
    It is the norm of vectors, over all entries where axis is None or several; the other norms of
    matrices are not implemented. Raises ValueError for another ord.
    """
    x = as_tensor(x)
    if ord in (None, 2, "fro"):
        return record(root, sum(square(x), axis, keepdims))
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


def _numpy_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Answer np.linalg.norm, whose `ord` for two axes means a norm of matrices."""
    axes = np.ndim(x) if axis is None else np.size(axis)
    if axes > 1 and ord not in (None, "fro"):
        raise TypeError(f"np.linalg.norm with ord={ord!r} of a matrix has no derivative here")
    return norm(x, ord, axis, keepdims)


NUMPY[np.linalg.norm] = _numpy_norm


# --- softmax and its relatives, along one axis or several ---
def _peak(x: Any, axis: Any) -> Any:
    """Return the maximum, or 0 for a row that has only -inf: subtracted before exp."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0).astype(top.dtype)


def _softmax_forward(x: Any, axis: Any) -> Any:
    weights = np.exp(x - _peak(x, axis))
    total = np.add.reduce(weights, axis=axis, keepdims=True)
    # A row that is masked everywhere gives zeros, never nan.
    weights /= np.where(total == 0.0, 1.0, total).astype(total.dtype)
    return weights


def _softmax_rule(g: Any, y: Any, _x: Any, *, axis: Any) -> Any:
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


def _logsumexp_forward(x: Any, axis: Any) -> Any:
    top = _peak(x, axis)
    with np.errstate(divide="ignore", over="ignore"):
        return top + np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True))


def _logsumexp_rule(g: Any, y: Any, x: Any, *, axis: Any) -> Any:
    with np.errstate(invalid="ignore"):  # infinity less infinity is nan, as in PyTorch
        return g * np.exp(x - np.where(y == -np.inf, 0.0, y))


def _log_softmax_forward(x: Any, axis: Any) -> Any:
    total = _logsumexp_forward(x, axis)
    # A row that has only -inf stays so.
    return x - np.where(np.isfinite(total), total, 0.0)


def _log_softmax_rule(g: Any, y: Any, _x: Any, *, axis: Any) -> Any:
    return g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)


_softmax = Op("softmax", _softmax_forward, (_softmax_rule,))
_logsumexp = Op("logsumexp", _logsumexp_forward, (_logsumexp_rule,))  # keeps its axis, of length 1
_log_softmax = Op("log_softmax", _log_softmax_forward, (_log_softmax_rule,))


def _span(x: Tensor, axis: Any) -> Any:
    """Return a single axis as it is, which costs nothing; else a tuple."""
    return axis if type(axis) is int and -x.ndim <= axis < x.ndim else as_axes(x, axis)


@public(_softmax, method=True)
def softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return exp(x) / Σ exp(x) along the axis; zeros, never nan, where all entries are -inf."""
    x = as_real(x)
    return record(_softmax, x, axis=_span(x, axis))


@public(_log_softmax)
def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return the logarithm of the softmax, in nats; -inf where all entries are -inf."""
    x = as_real(x)
    return record(_log_softmax, x, axis=_span(x, axis))


@public(_logsumexp)
def logsumexp(x: Any, axis: Any = -1, keepdims: bool = False) -> Tensor:
    """Return log Σ exp(x) along the axis, without overflow."""
    x = as_real(x)
    axes = _span(x, axis)
    result = record(_logsumexp, x, axis=axes)
    return result if keepdims else squeeze(result, axes)
