"""THE TABLE: every primitive, its forward and the derivative rule of each input.

A rule reads (g, y, inputs...): upstream gradient, output, inputs; an underscore marks what it
does not need. Un-broadcasting, casting, shape checks and accumulation happen elsewhere, once.
Rules are plain NumPy, so on Tensors they are themselves recorded and can be differentiated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine.erf import erf_forward
from tinygrad_tf.engine.graph import Op, column_sum

TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)

# --- arithmetic ---
add = Op("add", np.add, (lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g))
subtract = Op("subtract", np.subtract, (lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: -g))
multiply = Op("multiply", np.multiply, (lambda g, _y, a, b: g * b, lambda g, _y, a, b: g * a))
# g·y/b and not g·a/b²: the square underflows first.
divide = Op("divide", np.true_divide, (lambda g, y, _a, b: g / b, lambda g, y, _a, b: -g * y / b))
negative = Op("negative", np.negative, (lambda g, _y, _x: -g,))
square = Op("square", np.square, (lambda g, _y, x: g * (x * 2.0),))


def _power_base(g: Any, _y: Any, x: Any, p: Any) -> Any:
    # 0**0 does not move with its base, and 0**-1 must not be asked.
    base = np.where(np.logical_and(x == 0.0, p == 0.0), 1.0, x)
    return g * (p * base ** (p - 1.0))


def _power_exponent(g: Any, y: Any, x: Any, p: Any) -> Any:
    # 0**p does not move with p >= 0, and the logarithm of 0 must not be asked.
    still = np.logical_and(x == 0.0, p >= 0.0)
    return np.where(still, 0.0, g * y * np.log(np.where(still, 1.0, x)))


power = Op("power", np.power, (_power_base, _power_exponent))

# --- elementwise functions ---
exp = Op("exp", np.exp, (lambda g, y, _x: g * y,))
log = Op("log", np.log, (lambda g, _y, x: g / x,))
sqrt = Op("sqrt", np.sqrt, (lambda g, y, _x: g * 0.5 / y,))
tanh = Op("tanh", np.tanh, (lambda g, y, _x: g * (1.0 - y * y),))
erf = Op("erf", erf_forward, (lambda g, _y, x: g * (TWO_OVER_ROOT_PI * np.exp(-(x * x))),))
relu = Op("relu", lambda x: np.maximum(x, 0), (lambda g, y, _x: g * (y > 0),))
absolute = Op("absolute", np.absolute, (lambda g, _y, x: g * np.sign(x),))
sign = Op("sign", np.sign, (lambda g, _y, x: g * 0.0,))


def _sigmoid(x: Any) -> Any:
    # exp never sees a positive argument, so it never overflows.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


sigmoid = Op("sigmoid", _sigmoid, (lambda g, y, _x: g * (y * (1.0 - y)),))

# At a tie both sides receive half, as in PyTorch.
maximum = Op(
    "maximum",
    np.maximum,
    (
        lambda g, _y, a, b: g * ((a > b) + 0.5 * (a == b)),
        lambda g, _y, a, b: g * ((b > a) + 0.5 * (a == b)),
    ),
)
minimum = Op(
    "minimum",
    np.minimum,
    (
        lambda g, _y, a, b: g * ((a < b) + 0.5 * (a == b)),
        lambda g, _y, a, b: g * ((b < a) + 0.5 * (a == b)),
    ),
)
where = Op(
    "where",
    np.where,
    (
        None,
        lambda g, _y, c, _a, _b: np.where(c, g, 0.0),
        lambda g, _y, c, _a, _b: np.where(c, 0.0, g),
    ),
)
astype = Op("astype", lambda x, dtype: x.astype(dtype), (lambda g, _y, _x, dtype: g,))


# --- reductions: `axes` is a tuple of non-negative ints, `keepdims` as in NumPy ---
def _kept(g: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Give a reduced gradient back its axes, of length 1."""
    return g if keepdims or not axes else np.expand_dims(g, axes)


def _sum_rule(
    g: Any, _y: Any, _x: Any, *, axes: tuple[int, ...], keepdims: bool, shape: tuple[int, ...]
) -> Any:
    return np.broadcast_to(_kept(g, axes, keepdims), shape)


def _sum(x: Any, axes: tuple[int, ...], keepdims: bool, shape: tuple[int, ...]) -> Any:
    lead = len(axes)
    if x.dtype.kind == "f" and 0 < lead < x.ndim and sorted(axes) == list(range(lead)):
        total = column_sum(x.reshape(math.prod(shape[:lead]), *shape[lead:]))
        return np.expand_dims(total, axes) if keepdims else total
    return np.add.reduce(x, axis=axes, keepdims=bool(keepdims))  # type: ignore[call-overload]


def _max(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return np.max(x, axis=axes, keepdims=keepdims)


def _max_rule(g: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    # Entries that tie share the gradient equally; a maximum that is nan belongs to the nan.
    top = _kept(y, axes, keepdims)
    hit = (x == top) | (np.isnan(x) & np.isnan(top))
    return _kept(g, axes, keepdims) * (hit / np.sum(hit, axis=axes, keepdims=True))


sum = Op("sum", _sum, (_sum_rule,))
max = Op("max", _max, (_max_rule,))


# --- softmax and kin, along one axis ---
def _peak(x: Any, axis: int) -> Any:
    """The maximum, made finite: what a row of nothing but -inf is measured from."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0).astype(top.dtype)


def _softmax(x: Any, axis: int) -> Any:
    weights = np.exp(x - _peak(x, axis))
    total = np.add.reduce(weights, axis=axis, keepdims=True)
    # A row that is masked everywhere gives zeros, never nan.
    weights /= np.where(total == 0.0, 1.0, total).astype(total.dtype)
    return weights


def _logsumexp(x: Any, axis: int) -> Any:
    top = _peak(x, axis)
    with np.errstate(divide="ignore"):
        return top + np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True))


def _logsumexp_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    return g * np.exp(x - np.where(np.isfinite(y), y, 0.0))


def _softmax_rule(g: Any, y: Any, _x: Any, *, axis: int) -> Any:
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


def _log_softmax_rule(g: Any, y: Any, _x: Any, *, axis: int) -> Any:
    return g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)


softmax = Op("softmax", _softmax, (_softmax_rule,))
logsumexp = Op("logsumexp", _logsumexp, (_logsumexp_rule,))  # keeps its axis, of length 1
log_softmax = Op("log_softmax", lambda x, axis: x - _logsumexp(x, axis), (_log_softmax_rule,))


# --- matrix multiplication ---
def _matmul(a: Any, b: Any) -> Any:
    if b.ndim == 2 and a.ndim > 2 and a.size:
        # One large product; NumPy would make one small product per leading index.
        return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b)


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


matmul = Op("matmul", _matmul, (_matmul_left, _matmul_right))


# --- shape ---
# The old shape comes as a parameter, so that the input itself need not be kept.
reshape = Op(
    "reshape",
    lambda x, shape, old: np.reshape(x, shape),
    (lambda g, _y, _x, shape, old: np.reshape(g, old),),
)
transpose = Op(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    (lambda g, _y, _x, axes: np.transpose(g, np.argsort(axes)),),
)
broadcast_to = Op(
    "broadcast_to", lambda x, shape: np.broadcast_to(x, shape), (lambda g, _y, _x, shape: g,)
)


def _concatenate_rule(
    g: Any, _y: Any, *_inputs: Any, axis: int, ends: tuple[int, ...], which: int
) -> Any:
    start = ends[which - 1] if which else 0
    return g[(slice(None),) * axis + (slice(start, ends[which]),)]


concatenate = Op(
    "concatenate",
    lambda *xs, axis, ends: np.concatenate(xs, axis=axis),
    (_concatenate_rule,),
    variadic=True,
)


# --- indexing ---
def is_basic(index: Any) -> bool:
    """Whether an index reaches every entry at most once: ints, slices, None and Ellipsis."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, int | np.integer) and not isinstance(part, bool | np.bool_))
        for part in parts
    )


def _scatter(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    if is_basic(index):
        out[index] = g
    else:
        np.add.at(out, index, g)
    return out


def _getitem_rule(g: Any, _y: Any, _x: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
    return scatter(g, index=index, shape=shape)


getitem = Op("getitem", lambda x, index, shape: x[index], (_getitem_rule,))
# The transpose of getitem: its own derivative is getitem again.
scatter = Op("scatter", _scatter, (lambda g, _y, _x, index, shape: g[index],))
