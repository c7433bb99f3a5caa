"""The hot operations, each with a backward worked out by hand and its plain form beside it.

Shapes: B batch, T and S positions of queries and keys, C channels, H heads, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import rules, shape_rules
from tinygrad_tf.engine.backward import column_sum
from tinygrad_tf.engine.erf import tanh_argument
from tinygrad_tf.engine.graph import Fused
from tinygrad_tf.types import Array

Gradients = tuple[Any, ...]

# Entries of a block that a chain of passes should find in the cache, not in memory.
BLOCK = 1 << 15


def _rows(x: Array) -> Array:
    """(..., C) -> (rows, C), also where C is 0."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


# --- linear: y = x W + b, W stored [in, out] ---
def _linear(x: Array, weight: Array, bias: Array | None) -> tuple[Array, tuple[()]]:
    y = _rows(x) @ weight
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), ()


def _linear_backward(
    g: Array, _y: None, inputs: Gradients, _extras: Gradients, needs: Sequence[bool]
) -> Gradients:
    x, weight, _ = inputs
    rows = _rows(g)
    return (
        (rows @ weight.T).reshape(x.shape) if needs[0] else None,
        _rows(x).T @ rows if needs[1] else None,
        column_sum(rows) if needs[2] else None,
    )


def _linear_composite(x: Any, weight: Any, bias: Any) -> Any:
    y = rules.matmul(x, weight)
    return y if bias is None else y + bias


linear = Fused("linear", _linear, _linear_backward, _linear_composite)


# --- layer normalisation over the last axis (Ba et al. 2016), biased variance ---
def _layer_norm(
    x: Array, weight: Array | None, bias: Array | None, *, eps: float
) -> tuple[Array, Gradients]:
    width = x.shape[-1]
    mean = np.add.reduce(x, axis=-1, keepdims=True)
    mean *= 1.0 / width
    y = x - mean
    rstd = np.vecdot(y, y)[..., None]
    rstd *= 1.0 / width
    rstd += eps
    np.sqrt(rstd, out=rstd)
    np.reciprocal(rstd, out=rstd)
    y *= rstd
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias
    return y, (mean, rstd)


def _layer_norm_backward(
    g: Array, _y: None, inputs: Gradients, extras: Gradients, needs: Sequence[bool], *, eps: float
) -> Gradients:
    x, weight, _ = inputs
    mean, rstd = extras
    width = x.shape[-1]
    normal = x - mean
    normal *= rstd
    dweight = column_sum((g * normal).reshape(-1, width)) if needs[1] else None
    dbias = column_sum(g.reshape(-1, width)) if needs[2] else None
    if not needs[0]:
        return None, dweight, dbias
    # dx = rstd (h - mean(h) - x̂ mean(h x̂)), h = g γ
    h = g if weight is None else g * weight
    along = np.vecdot(h, normal)[..., None]
    along *= 1.0 / width
    normal *= along
    centre = np.add.reduce(h, axis=-1, keepdims=True)
    centre *= 1.0 / width
    dx = h - centre
    dx -= normal
    dx *= rstd
    return dx, dweight, dbias


def _layer_norm_composite(x: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    width = 1.0 / x.shape[-1]
    centred = x - np.sum(x, axis=-1, keepdims=True) * width
    variance = np.sum(centred * centred, axis=-1, keepdims=True) * width
    y = centred / np.sqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


layer_norm = Fused("layer_norm", _layer_norm, _layer_norm_backward, _layer_norm_composite)


# --- root mean square normalisation over the last axis (Zhang & Sennrich 2019) ---
def _rms_norm(x: Array, weight: Array | None, *, eps: float) -> tuple[Array, Gradients]:
    rstd = np.vecdot(x, x)[..., None]
    rstd *= 1.0 / x.shape[-1]
    rstd += eps
    np.sqrt(rstd, out=rstd)
    np.reciprocal(rstd, out=rstd)
    y = x * rstd
    if weight is not None:
        y *= weight
    return y, (rstd,)


def _rms_norm_backward(
    g: Array, _y: None, inputs: Gradients, extras: Gradients, needs: Sequence[bool], *, eps: float
) -> Gradients:
    x, weight = inputs
    rstd, width = extras[0], x.shape[-1]
    normal = x * rstd
    dweight = column_sum((g * normal).reshape(-1, width)) if needs[1] else None
    if not needs[0]:
        return None, dweight
    # dx = rstd (h - x̂ mean(h x̂)), h = g γ
    h = g if weight is None else g * weight
    along = np.vecdot(h, normal)[..., None]
    along *= 1.0 / width
    normal *= along
    dx = np.subtract(h, normal, out=normal)
    dx *= rstd
    return dx, dweight


def _rms_norm_composite(x: Any, weight: Any, *, eps: float) -> Any:
    mean = np.sum(x * x, axis=-1, keepdims=True) * (1.0 / x.shape[-1])
    y = x / np.sqrt(mean + eps)
    return y if weight is None else y * weight


rms_norm = Fused("rms_norm", _rms_norm, _rms_norm_backward, _rms_norm_composite)


# --- GELU: x Φ(x) (Hendrycks & Gimpel 2016), exact or with their tanh approximation ---
ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
CUBIC = 0.044715


def _blocks(size: int) -> range:
    return range(0, size, BLOCK)


def _gelu(x: Array, *, approximate: bool) -> tuple[Array, Gradients]:
    """y = x (1 + t) / 2 with t = tanh(u(x)); t is kept for the way back."""
    if not approximate and x.dtype != np.float32:
        t = rules.erf.forward(x * math.sqrt(0.5))
        return x * (0.5 * (1.0 + t)), (t,)
    flat = np.ascontiguousarray(x).reshape(-1)
    t, y = np.empty_like(flat), np.empty_like(flat)
    for start in _blocks(flat.size):
        xs, ts, ys = (a[start : start + BLOCK] for a in (flat, t, y))
        if approximate:
            np.square(xs, out=ts)
            ts *= CUBIC
            ts += 1.0
            ts *= xs
            ts *= ROOT_2_OVER_PI
        else:
            tanh_argument(xs, out=ts)
        np.tanh(ts, out=ts)
        np.add(ts, 1.0, out=ys)
        ys *= xs
        ys *= 0.5
    return y.reshape(x.shape), (t.reshape(x.shape),)


def _gelu_backward(
    g: Array,
    _y: None,
    inputs: Gradients,
    extras: Gradients,
    _needs: Sequence[bool],
    *,
    approximate: bool,
) -> Gradients:
    """dy/dx = (1 + t)/2 + x t'(x)/2, where t' is (1 - t²) u'(x), or the normal density twice."""
    x, g_flat, t = (np.ascontiguousarray(a).reshape(-1) for a in (inputs[0], g, extras[0]))
    dx = np.empty_like(x)
    work = np.empty(min(BLOCK, x.size), x.dtype)
    for start in _blocks(x.size):
        xs, gs, ts, ds = (a[start : start + BLOCK] for a in (x, g_flat, t, dx))
        ws = work[: xs.size]
        np.square(xs, out=ds)
        if approximate:
            ds *= 3.0 * CUBIC
            ds += 1.0
            ds *= ROOT_2_OVER_PI
            np.square(ts, out=ws)
            np.subtract(1.0, ws, out=ws)
            ds *= ws
        else:
            ds *= -0.5
            np.exp(ds, out=ds)
            ds *= ROOT_2_OVER_PI
        ds *= xs
        ds += ts
        ds += 1.0
        ds *= 0.5
        ds *= gs
    return (dx.reshape(g.shape),)


def _gelu_composite(x: Any, *, approximate: bool) -> Any:
    if approximate:
        return 0.5 * x * (1.0 + np.tanh(ROOT_2_OVER_PI * (x + CUBIC * (x * x * x))))
    return 0.5 * x * (1.0 + rules.erf(x * math.sqrt(0.5)))


gelu = Fused("gelu", _gelu, _gelu_backward, _gelu_composite)


# --- cross-entropy from logits, in nats, of the targets that count ---
# With label smoothing ε the target is 1 - ε on its own class and ε / V on every class
# (Szegedy et al. 2016, section 7).
def _cross_entropy(
    logits: Array,
    *,
    targets: Array,
    ignore_index: int,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> tuple[Array, Gradients]:
    rows = logits.reshape(-1, logits.shape[-1])
    kept, columns, count = _counted(targets, ignore_index)
    top = np.max(rows, axis=-1, keepdims=True)
    total = np.log(np.add.reduce(np.exp(rows - top), axis=-1, keepdims=True)) + top
    aim = rows[np.arange(rows.shape[0]), columns]
    if label_smoothing:
        aim *= 1.0 - label_smoothing
        aim += np.add.reduce(rows, axis=-1) * (label_smoothing / rows.shape[-1])
    nats = np.where(kept, total[:, 0] - aim, 0.0)
    if reduction == "none":
        return nats.reshape(targets.shape), (total,)
    # Summed in float64: with many targets the mean would otherwise lose digits.
    loss = np.add.reduce(nats, dtype=np.float64)
    return np.asarray(loss / count if reduction == "mean" else loss, logits.dtype), (total,)


def _counted(targets: Array, ignore_index: int) -> tuple[Array, Array, int]:
    """Which targets count, a harmless column for those that do not, and how many do."""
    flat = targets.reshape(-1)
    kept = flat != ignore_index
    return kept, np.where(kept, flat, 0), max(1, int(np.count_nonzero(kept)))


def _cross_entropy_backward(
    g: Array,
    _y: None,
    inputs: Gradients,
    extras: Gradients,
    _needs: Sequence[bool],
    *,
    targets: Array,
    ignore_index: int,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Gradients:
    """(softmax - target), times the upstream gradient, over the count for a mean."""
    logits, (total,) = inputs[0], extras
    rows = logits.reshape(-1, logits.shape[-1])
    kept, columns, count = _counted(targets, ignore_index)
    dlogits = rows - total
    np.exp(dlogits, out=dlogits)
    dlogits[np.arange(rows.shape[0]), columns] -= 1.0 - label_smoothing
    if label_smoothing:
        dlogits -= label_smoothing / rows.shape[-1]
    share = g.reshape(-1) if reduction == "none" else float(g)
    share = share / count if reduction == "mean" else share
    dlogits *= (kept * share).astype(rows.dtype, copy=False)[:, None]
    return (dlogits.reshape(logits.shape),)


def _cross_entropy_composite(
    logits: Any,
    *,
    targets: Array,
    ignore_index: int,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Any:
    kept, columns, count = _counted(targets, ignore_index)
    rows = np.reshape(logits, (-1, logits.shape[-1]))
    log_probs = rules.log_softmax(rows, axis=-1)
    index = (np.arange(columns.size), columns)
    aim = shape_rules.getitem(log_probs, index=index, shape=tuple(rows.shape))
    if label_smoothing:
        even = np.sum(log_probs, axis=-1) * (label_smoothing / rows.shape[-1])
        aim = aim * (1.0 - label_smoothing) + even
    nats = np.where(kept, -aim, 0.0)
    if reduction == "none":
        return np.reshape(nats, targets.shape)
    return np.sum(nats) * (1.0 / count if reduction == "mean" else 1.0)


cross_entropy = Fused(
    "cross_entropy", _cross_entropy, _cross_entropy_backward, _cross_entropy_composite
)


# --- embedding: rows of a table ---
def _embedding(table: Array, *, ids: Array) -> tuple[Array, tuple[()]]:
    return np.take(table, ids, axis=0), ()


def _embedding_backward(
    g: Array,
    _y: None,
    inputs: Gradients,
    _extras: Gradients,
    _needs: Sequence[bool],
    *,
    ids: Array,
) -> Gradients:
    """Add each row's gradient to the row of the table it came from."""
    table = inputs[0]
    flat, rows = ids.reshape(-1), g.reshape(ids.size, g.shape[-1])
    out = np.zeros_like(table)
    if flat.size:
        # Sorted by row, equal ids lie together and one reduction serves each group.
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        out[ordered[first]] = np.add.reduceat(rows[order], first, axis=0)
    return (out,)


def _embedding_composite(table: Any, *, ids: Array) -> Any:
    return shape_rules.getitem(table, index=ids, shape=tuple(table.shape))


embedding = Fused(
    "embedding", _embedding, _embedding_backward, _embedding_composite, reads_inputs=False
)
