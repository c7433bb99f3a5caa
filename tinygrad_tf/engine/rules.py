"""THE TABLE: every primitive, its forward and the derivative rule of each input.

A rule reads (g, y, inputs...): upstream gradient, output, inputs; an underscore marks what it
does not need. Un-broadcasting, casting, shape checks and accumulation happen elsewhere, once.
Rules are plain NumPy, so on Tensors they are themselves recorded and can be differentiated.
Shapes and indices are in shape_rules.py, running products in scan_rules.py, Einstein's sums in
einsum.py, and the hot operations in fused.py and attention.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine.backward import column_sum
from tinygrad_tf.engine.erf import erf_forward
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.shape_rules import (  # noqa: F401  # the table goes on there
    broadcast_to,
    concatenate,
    getitem,
    pad,
    reaches_once,
    reshape,
    roll,
    scatter,
    transpose,
)

TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)

# --- arithmetic ---
add = Op("add", np.add, (lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g))
subtract = Op("subtract", np.subtract, (lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: -g))
multiply = Op("multiply", np.multiply, (lambda g, _y, _a, b: g * b, lambda g, _y, a, _b: g * a))
# g·y/b and not g·a/b²: the square underflows first.
divide = Op("divide", np.true_divide, (lambda g, _y, _a, b: g / b, lambda g, y, _a, b: -g * y / b))
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
expm1 = Op("expm1", np.expm1, (lambda g, y, _x: g * (y + 1.0),))
log = Op("log", np.log, (lambda g, _y, x: g / x,))
log1p = Op("log1p", np.log1p, (lambda g, _y, x: g / (x + 1.0),))
sqrt = Op("sqrt", np.sqrt, (lambda g, y, _x: g * 0.5 / y,))
# The square root that norms and deviations take: at 0 its derivative is 0.
root = Op("root", np.sqrt, (lambda g, y, _x: g * 0.5 / np.where(y == 0.0, np.inf, y),))
sin = Op("sin", np.sin, (lambda g, _y, x: g * np.cos(x),))
cos = Op("cos", np.cos, (lambda g, _y, x: -g * np.sin(x),))
tan = Op("tan", np.tan, (lambda g, y, _x: g * (1.0 + y * y),))
arcsin = Op("arcsin", np.arcsin, (lambda g, _y, x: g / np.sqrt(1.0 - x * x),))
arccos = Op("arccos", np.arccos, (lambda g, _y, x: -g / np.sqrt(1.0 - x * x),))
arctan = Op("arctan", np.arctan, (lambda g, _y, x: g / (1.0 + x * x),))
arctan2 = Op(
    "arctan2",
    np.arctan2,
    (
        lambda g, _y, a, b: g * b / (a * a + b * b),
        lambda g, _y, a, b: -g * a / (a * a + b * b),
    ),
)
sinh = Op("sinh", np.sinh, (lambda g, _y, x: g * np.cosh(x),))
cosh = Op("cosh", np.cosh, (lambda g, _y, x: g * np.sinh(x),))
tanh = Op("tanh", np.tanh, (lambda g, y, _x: g * (1.0 - y * y),))
erf = Op("erf", erf_forward, (lambda g, _y, x: g * (TWO_OVER_ROOT_PI * np.exp(-(x * x))),))
absolute = Op("absolute", np.absolute, (lambda g, _y, x: g * np.sign(x),))
# Flat wherever they are differentiable, and taken as flat where they are not.
sign = Op("sign", np.sign, (lambda g, _y, _x: g * 0.0,))
floor = Op("floor", np.floor, (lambda g, _y, _x: g * 0.0,))
ceil = Op("ceil", np.ceil, (lambda g, _y, _x: g * 0.0,))
trunc = Op("trunc", np.trunc, (lambda g, _y, _x: g * 0.0,))
round = Op(
    "round", lambda x, decimals: np.round(x, decimals), (lambda g, _y, _x, decimals: g * 0.0,)
)


def _masked(g: Any, keep: Any) -> Any:
    """g where it is kept, else 0, even where g is infinite."""
    # A product is many times as fast as a choice where the mask is irregular.
    if g.size > 1024 and np.all(np.isfinite(g)):
        return g * keep
    return np.where(keep, g, 0.0)


def _sigmoid(x: Any) -> Any:
    # exp never sees a positive argument, so it never overflows.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _silu_rule(g: Any, _y: Any, x: Any) -> Any:
    s = sigmoid(x)
    return g * (s * (1.0 + x * (1.0 - s)))


sigmoid = Op("sigmoid", _sigmoid, (lambda g, y, _x: g * (y * (1.0 - y)),))
softplus = Op("softplus", lambda x: np.logaddexp(x, 0.0), (lambda g, _y, x: g * sigmoid(x),))
logsigmoid = Op("logsigmoid", lambda x: -np.logaddexp(-x, 0.0), (lambda g, _y, x: g * sigmoid(-x),))
silu = Op("silu", lambda x: x * _sigmoid(x), (_silu_rule,))
relu = Op("relu", lambda x: np.maximum(x, 0), (lambda g, y, _x: _masked(g, y > 0),))
leaky_relu = Op(
    "leaky_relu",
    lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
    (lambda g, _y, x, negative_slope: np.where(x > 0, g, g * negative_slope),),
)
elu = Op(
    "elu",
    lambda x, alpha: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)) * alpha),
    (lambda g, y, x, alpha: np.where(x > 0, g, g * (y + alpha)),),
)


# --- choices between two ---
def _winner(g: Any, lost: Any, tied: Any) -> Any:
    # At a tie both sides receive half, and beside a nan both receive all, as in PyTorch.
    share = np.where(tied, g * 0.5, g) if np.any(tied) else g
    return _masked(share, np.logical_not(lost))


maximum = Op(
    "maximum",
    np.maximum,
    (
        lambda g, _y, a, b: _winner(g, a < b, a == b),
        lambda g, _y, a, b: _winner(g, b < a, a == b),
    ),
)
minimum = Op(
    "minimum",
    np.minimum,
    (
        lambda g, _y, a, b: _winner(g, a > b, a == b),
        lambda g, _y, a, b: _winner(g, b > a, a == b),
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


def _between(x: Any, low: Any, high: Any) -> Any:
    above = True if low is None else x >= low
    return above if high is None else (x <= high) & above


# A bound may be None; what lies on a bound still moves, and beyond it the bound does.
clip = Op(
    "clip",
    np.clip,
    (
        lambda g, _y, x, low, high: _masked(g, _between(x, low, high)),
        lambda g, _y, x, low, high: np.where(
            (x < low) & (True if high is None else low < high), g, 0.0
        ),
        lambda g, _y, x, low, high: np.where(
            (x > high) | (False if low is None else high < low), g, 0.0
        ),
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


def _extreme_rule(g: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    # Entries that tie share the gradient equally; an extreme that is nan belongs to the nan.
    top = _kept(y, axes, keepdims)
    hit = ((x == top) | (np.isnan(x) & np.isnan(top))).astype(g.dtype)
    return _kept(g, axes, keepdims) * (hit / np.sum(hit, axis=axes, keepdims=True))


sum = Op("sum", _sum, (_sum_rule,))
max = Op("max", lambda x, axes, keepdims: np.max(x, axis=axes, keepdims=keepdims), (_extreme_rule,))
min = Op("min", lambda x, axes, keepdims: np.min(x, axis=axes, keepdims=keepdims), (_extreme_rule,))


# --- softmax and kin, along one axis or several ---
def _peak(x: Any, axis: Any) -> Any:
    """The maximum, made finite: what a row of nothing but -inf is measured from."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0).astype(top.dtype)


def _softmax(x: Any, axis: Any) -> Any:
    weights = np.exp(x - _peak(x, axis))
    total = np.add.reduce(weights, axis=axis, keepdims=True)
    # A row that is masked everywhere gives zeros, never nan.
    weights /= np.where(total == 0.0, 1.0, total).astype(total.dtype)
    return weights


def _logsumexp(x: Any, axis: Any) -> Any:
    top = _peak(x, axis)
    with np.errstate(divide="ignore", over="ignore"):
        return top + np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True))


def _logsumexp_rule(g: Any, y: Any, x: Any, *, axis: Any) -> Any:
    with np.errstate(invalid="ignore"):  # of infinity by infinity, which is nan, as in PyTorch
        return g * np.exp(x - np.where(y == -np.inf, 0.0, y))


def _log_softmax(x: Any, axis: Any) -> Any:
    total = _logsumexp(x, axis)
    # A row of nothing but -inf stays that.
    return x - np.where(np.isfinite(total), total, 0.0)


def _softmax_rule(g: Any, y: Any, _x: Any, *, axis: Any) -> Any:
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


def _log_softmax_rule(g: Any, y: Any, _x: Any, *, axis: Any) -> Any:
    return g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)


softmax = Op("softmax", _softmax, (_softmax_rule,))
logsumexp = Op("logsumexp", _logsumexp, (_logsumexp_rule,))  # keeps its axis, of length 1
log_softmax = Op("log_softmax", _log_softmax, (_log_softmax_rule,))


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
