"""The functions that layers are made of: linear, normalisation, embedding, dropout, cross-entropy.

Each fused op has a backward pass worked out by hand and, beside it, the plain definition.

Shapes: B batch, T positions, C channels, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine.backward import column_sum
from tinygrad_tf.engine.elementwise import multiply
from tinygrad_tf.engine.graph import Fused, Gradients
from tinygrad_tf.engine.linalg import matmul
from tinygrad_tf.engine.reductions import log_softmax
from tinygrad_tf.engine.table import as_array, as_real, as_tensor, public, record
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array


def _rows(x: Array) -> Array:
    """Reshape (..., C) to (rows, C), also where C is 0."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


# --- linear: y = x W + b, W stored [in, out] ---
def _linear_forward(x: Array, weight: Array, bias: Array | None) -> tuple[Array, tuple[()]]:
    y = _rows(x) @ weight
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], weight.shape[1]), ()


def _linear_backward(
    g: Array, inputs: Gradients, _extras: Gradients, needs: Sequence[bool]
) -> Gradients:
    x, weight, _ = inputs
    rows = _rows(g)
    return (
        (rows @ weight.T).reshape(x.shape) if needs[0] else None,
        _rows(x).T @ rows if needs[1] else None,
        column_sum(rows) if needs[2] else None,
    )


def _linear_composite(x: Any, weight: Any, bias: Any) -> Any:
    y = matmul(x, weight)
    return y if bias is None else y + bias


_linear = Fused("linear", _linear_forward, _linear_backward, _linear_composite)


@public(_linear)
def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return x W + b: x (..., in), weight (in, out), bias (out,)."""
    return record(_linear, x, weight, bias)


# --- normalisation over the last axis ---
def _reciprocal_root(x: Array, eps: float) -> Array:
    """Return 1 / √(mean(x²) + eps) of each row, (..., 1)."""
    result: Array = np.vecdot(x, x)[..., None]
    result *= 1.0 / x.shape[-1]
    result += eps
    np.sqrt(result, out=result)
    return np.reciprocal(result, out=result)


def _times_mean_product(normal: Array, h: Array) -> Array:
    """Multiply each row of x̂ by mean(h x̂), in place."""
    along = np.vecdot(h, normal)[..., None]
    along *= 1.0 / normal.shape[-1]
    normal *= along
    return normal


# --- layer normalisation (Ba et al. 2016), biased variance ---
def _layer_norm_forward(
    x: Array, weight: Array | None, bias: Array | None, *, eps: float
) -> tuple[Array, Gradients]:
    width = x.shape[-1]
    mean = np.add.reduce(x, axis=-1, keepdims=True)
    mean *= 1.0 / width
    y = x - mean
    rstd = _reciprocal_root(y, eps)
    y *= rstd
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias
    return y, (mean, rstd)


def _layer_norm_backward(
    g: Array, inputs: Gradients, extras: Gradients, needs: Sequence[bool], *, eps: float
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
    centre = np.add.reduce(h, axis=-1, keepdims=True)
    centre *= 1.0 / width
    dx = h - centre
    dx -= _times_mean_product(normal, h)
    dx *= rstd
    return dx, dweight, dbias


def _layer_norm_composite(x: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    width = 1.0 / x.shape[-1]
    centred = x - np.sum(x, axis=-1, keepdims=True) * width
    variance = np.sum(centred * centred, axis=-1, keepdims=True) * width
    y = centred / np.sqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


_layer_norm = Fused("layer_norm", _layer_norm_forward, _layer_norm_backward, _layer_norm_composite)


@public(_layer_norm)
def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis to mean 0 and variance 1; apply gain and bias (Ba et al. 2016)."""
    return record(_layer_norm, _normalised(x, "layer_norm"), weight, bias, eps=eps)


def _normalised(x: Any, name: str) -> Tensor:
    """Return x as a Tensor; raises ValueError where it has no last axis, or an empty one."""
    rows = as_real(x)
    if not rows.ndim or not rows.shape[-1]:
        raise ValueError(f"{name} of an array of shape {rows.shape}: its last axis has no entries")
    return rows


# --- root mean square normalisation (Zhang & Sennrich 2019) ---
def _rms_norm_forward(x: Array, weight: Array | None, *, eps: float) -> tuple[Array, Gradients]:
    rstd = _reciprocal_root(x, eps)
    y = x * rstd
    if weight is not None:
        y *= weight
    return y, (rstd,)


def _rms_norm_backward(
    g: Array, inputs: Gradients, extras: Gradients, needs: Sequence[bool], *, eps: float
) -> Gradients:
    x, weight = inputs
    rstd, width = extras[0], x.shape[-1]
    normal = x * rstd
    dweight = column_sum((g * normal).reshape(-1, width)) if needs[1] else None
    if not needs[0]:
        return None, dweight
    # dx = rstd (h - x̂ mean(h x̂)), h = g γ
    h = g if weight is None else g * weight
    dx = np.subtract(h, _times_mean_product(normal, h), out=normal)
    dx *= rstd
    return dx, dweight


def _rms_norm_composite(x: Any, weight: Any, *, eps: float) -> Any:
    mean = np.sum(x * x, axis=-1, keepdims=True) * (1.0 / x.shape[-1])
    y = x / np.sqrt(mean + eps)
    return y if weight is None else y * weight


_rms_norm = Fused("rms_norm", _rms_norm_forward, _rms_norm_backward, _rms_norm_composite)


@public(_rms_norm)
def rms_norm(x: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """Divide x by its root mean square along the last axis, then gain (Zhang & Sennrich 2019).

    eps is added to the mean square; None is the smallest step of x's dtype from 1, as in PyTorch.
    """
    x = _normalised(x, "rms_norm")
    small = float(np.finfo(x.dtype).eps) if eps is None else eps
    return record(_rms_norm, x, weight, eps=small)


# --- embedding: rows of a table ---
def _embedding_backward(
    g: Array, inputs: Gradients, _extras: Gradients, _needs: Sequence[bool], *, ids: Array
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


_embedding = Fused(
    "embedding",
    lambda table, ids: (np.take(table, ids, axis=0), ()),
    _embedding_backward,
    lambda table, ids: table[ids],
    reads_inputs=False,
)


@public(_embedding)
def embedding(table: Any, ids: Any) -> Tensor:
    """Return the rows `ids` of `table` (V, C); raises IndexError for ids outside 0 to V-1."""
    table = as_tensor(table)
    rows = as_array(ids)
    if table.ndim != 2:
        raise ValueError(f"the table has shape {table.shape}; it is rows of numbers, (V, C)")
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding looks up integers, not {rows.dtype}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < table.shape[0]:
        raise IndexError(
            f"ids run from {rows.min()} to {rows.max()}, but the table has {table.shape[0]} rows"
        )
    return record(_embedding, table, ids=rows)


# --- dropout ---
@public()
def dropout(x: Any, rate: float, rng: np.random.Generator) -> Tensor:
    """Set entries to 0 with probability `rate`; scale the others by 1 / (1 - rate).

    Raises ValueError for a rate outside 0 to 1.
    """
    entries = as_tensor(x)
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a dropout rate of {rate}; give a number from 0 to 1")
    if rate == 0:
        return entries
    return multiply(entries, dropout_mask(entries.shape, rate, rng, entries.dtype))


@public()
def dropout_mask(
    shape: tuple[int, ...], rate: float, rng: np.random.Generator, dtype: Any = np.float32
) -> Any:
    """Draw a mask: 0 with probability `rate`, else 1 / (1 - rate)."""
    keep = rng.random(shape, np.float32) >= rate
    return keep * np.dtype(dtype).type(1.0 / (1.0 - rate) if rate < 1 else 0.0)


# --- cross-entropy from logits, in nats, of the targets that count ---
# With label smoothing ε the target is 1 - ε on its own class and ε / V on every class
# (Szegedy et al. 2016, section 7).
def _cross_entropy_forward(
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
    """Return which targets count, a column for each (0 for those that do not), and their number."""
    flat = targets.reshape(-1)
    kept = flat != ignore_index
    return kept, np.where(kept, flat, 0), max(1, int(np.count_nonzero(kept)))


def _cross_entropy_backward(
    g: Array,
    inputs: Gradients,
    extras: Gradients,
    _needs: Sequence[bool],
    *,
    targets: Array,
    ignore_index: int,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Gradients:
    """Return (softmax - target) times the upstream gradient, divided by the count for a mean."""
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
    log_probs = log_softmax(rows, axis=-1)
    index = (np.arange(columns.size), columns)
    aim = log_probs[index]
    if label_smoothing:
        even = np.sum(log_probs, axis=-1) * (label_smoothing / rows.shape[-1])
        aim = aim * (1.0 - label_smoothing) + even
    nats = np.where(kept, -aim, 0.0)
    if reduction == "none":
        return np.reshape(nats, targets.shape)
    return np.sum(nats) * (1.0 / count if reduction == "mean" else 1.0)


_cross_entropy = Fused(
    "cross_entropy", _cross_entropy_forward, _cross_entropy_backward, _cross_entropy_composite
)


@public(_cross_entropy)
def cross_entropy(
    logits: Any,
    targets: Any,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of -ln softmax(logits)[target], in nats.

    logits (..., V), integer targets (...). Targets equal to `ignore_index` do not count; where
    none counts the loss is 0. label_smoothing ε takes 1 - ε for the target's probability and
    spreads ε over all V classes (Szegedy et al. 2016, section 7). reduction: "mean" over the
    targets that count, "sum", or "none", of the shape of targets. Raises IndexError for a target
    outside the vocabulary, TypeError for targets that are no integers.
    """
    logits, ids = as_real(logits), as_array(targets)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r}; give 'mean', 'sum' or 'none'")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing is {label_smoothing}; give a number from 0 to 1")
    if ids.dtype.kind not in "iu" and ids.size:
        raise TypeError(f"targets are integers, not {ids.dtype}")
    if ids.shape != logits.shape[:-1]:
        raise ValueError(f"targets of shape {ids.shape} for logits of shape {logits.shape}")
    counted = ids[ids != ignore_index]
    if counted.size and not 0 <= int(counted.min()) <= int(counted.max()) < logits.shape[-1]:
        raise IndexError(
            f"targets run from {counted.min()} to {counted.max()}, "
            f"but there are {logits.shape[-1]} logits"
        )
    return record(
        _cross_entropy,
        logits,
        targets=ids,
        ignore_index=ignore_index,
        label_smoothing=float(label_smoothing),
        reduction=reduction,
    )
