"""The public functions on Tensors, named and spelled as in NumPy and PyTorch.

Every function takes Tensors, arrays or numbers and returns a Tensor. `np.exp(t)` and the like
arrive here too, through NumPy's protocols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import attention as attention_rules
from tinygrad_tf.engine import fused, rules
from tinygrad_tf.engine.tensor import Tensor

_record = Tensor.record


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


# --- arithmetic ---
def add(a: Any, b: Any) -> Tensor:
    """a + b."""
    return _record(rules.add, a, b)


def subtract(a: Any, b: Any) -> Tensor:
    """a - b."""
    return _record(rules.subtract, a, b)


def multiply(a: Any, b: Any) -> Tensor:
    """a · b, entry by entry."""
    return _record(rules.multiply, a, b)


def divide(a: Any, b: Any) -> Tensor:
    """a / b."""
    return _record(rules.divide, a, b)


def power(a: Any, b: Any) -> Tensor:
    """a to the power b; the gradient at 0**b is 0 for b >= 0, as in PyTorch."""
    if isinstance(b, int | float) and isinstance(a, Tensor):
        # NumPy's float32 power is some twenty times as slow as a product.
        if b == 2:
            return _record(rules.square, a)
        if b == 0.5:
            return _record(rules.sqrt, a)
    return _record(rules.power, a, b)


def negative(x: Any) -> Tensor:
    """-x."""
    return _record(rules.negative, x)


def maximum(a: Any, b: Any) -> Tensor:
    """The larger, entry by entry; at a tie each side receives half of the gradient."""
    return _record(rules.maximum, a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller, entry by entry; at a tie each side receives half of the gradient."""
    return _record(rules.minimum, a, b)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition holds, else b; the branch not taken receives gradient 0."""
    return _record(rules.where, condition, a, b)


# --- elementwise functions ---
def exp(x: Any) -> Tensor:
    """e to the power x."""
    return _record(rules.exp, x)


def log(x: Any) -> Tensor:
    """The natural logarithm."""
    return _record(rules.log, x)


def sqrt(x: Any) -> Tensor:
    """The square root; its derivative at 0 is infinite."""
    return _record(rules.sqrt, x)


def square(x: Any) -> Tensor:
    """x · x."""
    return _record(rules.square, x)


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return _record(rules.tanh, x)


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""
    return _record(rules.sigmoid, x)


def erf(x: Any) -> Tensor:
    """The error function."""
    return _record(rules.erf, x)


def relu(x: Any) -> Tensor:
    """max(x, 0); the derivative at 0 is 0."""
    return _record(rules.relu, x)


def gelu(x: Any, approximate: str = "none") -> Tensor:
    """x Φ(x) (Hendrycks & Gimpel 2016), exact, or with `approximate="tanh"` their tanh form."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {approximate!r}; give 'none' or 'tanh'")
    return _record(fused.gelu, _tensor(x), approximate=approximate == "tanh")


def absolute(x: Any) -> Tensor:
    """|x|; the derivative at 0 is 0."""
    return _record(rules.absolute, x)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0."""
    return _record(rules.sign, x)


def astype(x: Any, dtype: Any) -> Tensor:
    """The same numbers in another dtype; the gradient comes back in the old one."""
    return _record(rules.astype, x, dtype=np.dtype(dtype))


# --- reductions ---
def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    """An axis argument as non-negative ints: None is all, () is none."""
    if axis is None:
        return tuple(range(x.ndim))
    given = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    axes = tuple(int(a) + x.ndim * (a < 0) for a in given)
    for a, asked in zip(axes, given, strict=True):
        if not 0 <= a < x.ndim:
            raise np.exceptions.AxisError(int(asked), x.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names an axis twice")
    return axes


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over all entries, or over the axis or axes given."""
    x = _tensor(x)
    return _record(rules.sum, x, axes=_axes(x, axis), keepdims=keepdims, shape=x.shape)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over all entries, or over the axis or axes given."""
    x = _tensor(x)
    count = math.prod(x.shape[a] for a in _axes(x, axis))
    return sum(x, axis, keepdims) * (1.0 / count if count else math.nan)


def var(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, divided by n - ddof."""
    x = _tensor(x)
    count = math.prod(x.shape[a] for a in _axes(x, axis)) - ddof
    total = sum(square(x - mean(x, axis, keepdims=True)), axis, keepdims)
    return total * (1.0 / count if count > 0 else math.nan)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest entry; entries that tie share its gradient equally (as torch.amax)."""
    x = _tensor(x)
    return _record(rules.max, x, axes=_axes(x, axis), keepdims=keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the largest entry, the first among equals; it has no gradient."""
    return Tensor(np.argmax(_tensor(x).data, axis=axis, keepdims=keepdims))


def softmax(x: Any, axis: int = -1) -> Tensor:
    """exp(x) / Σ exp(x) along an axis; where all of it is -inf the result is 0, never nan."""
    return _record(rules.softmax, x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """log of the softmax along an axis, in nats, computed stably."""
    return _record(rules.log_softmax, x, axis=axis)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Tensor:
    """log Σ exp(x) along an axis, computed stably."""
    result = _record(rules.logsumexp, x, axis=axis)
    return result if keepdims else squeeze(result, axis)


# --- shape ---
def reshape(x: Any, shape: Any) -> Tensor:
    """The same entries in another shape; one length may be -1."""
    x = _tensor(x)
    return _record(rules.reshape, x, shape=shape, old=x.shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order, by default reversed."""
    x = _tensor(x)
    order = tuple(range(x.ndim - 1, -1, -1)) if axes is None else _axes(x, axes)
    return _record(rules.transpose, x, axes=order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = _tensor(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _record(rules.transpose, x, axes=tuple(order))


def expand_dims(x: Any, axis: Any) -> Tensor:
    """New axes of length 1 at the places given."""
    x = _tensor(x)
    return reshape(x, np.expand_dims(x.data, axis).shape)


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Without the axes of length 1, or without those given."""
    x = _tensor(x)
    return reshape(x, np.squeeze(x.data, axis).shape)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Tensor:
    """Repeated along new axes and axes of length 1 until it has the shape."""
    return _record(rules.broadcast_to, x, shape=shape)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Joined along an axis that they have."""
    tensors = [_tensor(x) for x in xs]
    if not tensors:
        raise ValueError("concatenate needs at least one array")
    (at,) = _axes(tensors[0], axis)
    ends = tuple(int(n) for n in np.cumsum([t.shape[at] for t in tensors]))
    return _record(rules.concatenate, *tensors, axis=at, ends=ends)


def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Joined along a new axis."""
    return concatenate([expand_dims(x, axis) for x in xs], axis)


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut along an axis into equal parts, or at the places given."""
    x = _tensor(x)
    (at,) = _axes(x, axis)
    length, lead = x.shape[at], (slice(None),) * at
    if isinstance(sections, int | np.integer):
        if sections < 1 or length % sections:
            raise ValueError(
                f"an axis of length {length} does not split into {sections} equal parts"
            )
        step = length // sections
        places = [step * i for i in range(1, int(sections))]
    else:
        places = [int(p) for p in sections]
    cuts = zip([0, *places], [*places, length], strict=True)
    return [x[(*lead, slice(start, end))] for start, end in cuts]


def getitem(x: Any, index: Any) -> Tensor:
    """x[index], as in NumPy; an entry taken several times receives all its gradients."""
    x = _tensor(x)
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(p.data if isinstance(p, Tensor) else p for p in parts)
    chosen = plain if isinstance(index, tuple) else plain[0]
    return _record(rules.getitem, x, index=chosen, shape=x.shape)


# --- matrices and layers ---
def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product, for every pair of ranks that NumPy multiplies."""
    return _record(rules.matmul, a, b)


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x W + b: x (..., in), weight (in, out), bias (out,)."""
    return _record(fused.linear, x, weight, bias)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last axis, then gain and bias (Ba et al. 2016)."""
    return _record(fused.layer_norm, x, weight, bias, eps=eps)


def embedding(table: Any, ids: Any) -> Tensor:
    """The rows of `table` (V, C) that integer `ids` name; raises IndexError beyond its ends."""
    table = _tensor(table)
    rows = np.asarray(ids.data if isinstance(ids, Tensor) else ids)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding looks up integers, not {rows.dtype}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < table.shape[0]:
        raise IndexError(
            f"ids run from {rows.min()} to {rows.max()}, but the table has {table.shape[0]} rows"
        )
    return _record(fused.embedding, table, ids=rows)


def dropout(x: Any, rate: float, rng: np.random.Generator) -> Tensor:
    """Entries set to 0 with probability `rate`, the others scaled by 1 / (1 - rate)."""
    entries = _tensor(x)
    if rate <= 0:
        return entries
    return multiply(entries, dropout_mask(entries.shape, rate, rng, entries.dtype))


def dropout_mask(
    shape: tuple[int, ...], rate: float, rng: np.random.Generator, dtype: Any = np.float32
) -> Any:
    """0 with probability `rate`, else 1 / (1 - rate)."""
    keep = rng.random(shape, np.float32) >= rate
    return keep * np.dtype(dtype).type(1.0 / (1.0 - rate) if rate < 1 else 0.0)


def cross_entropy(logits: Any, targets: Any, ignore_index: int = -100) -> Tensor:
    """The mean of -ln softmax(logits)[target], in nats.

    logits (..., V), integer targets (...). Targets equal to `ignore_index` do not count; where
    none counts the loss is 0. Raises IndexError for a target outside the vocabulary.
    """
    logits = _tensor(logits)
    ids = np.asarray(targets.data if isinstance(targets, Tensor) else targets)
    if ids.shape != logits.shape[:-1]:
        raise ValueError(f"targets of shape {ids.shape} for logits of shape {logits.shape}")
    counted = ids[ids != ignore_index]
    if counted.size and not 0 <= int(counted.min()) <= int(counted.max()) < logits.shape[-1]:
        raise IndexError(
            f"targets run from {counted.min()} to {counted.max()}, "
            f"but there are {logits.shape[-1]} logits"
        )
    return _record(fused.cross_entropy, logits, targets=ids, ignore_index=ignore_index)


def attention(
    query: Any,
    key: Any,
    value: Any,
    n_head: int = 1,
    *,
    causal: bool = False,
    mask: Any = None,
    drop: Any = None,
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + mask) V in each of `n_head` heads (Vaswani et al. 2017, eq. 1).

    query (B, T, H·d_k), key (B, S, H·d_k), value (B, S, H·d_v) -> context (B, T, H·d_v).
    mask: broadcastable to (B, H, T, S); boolean (True is kept) or additive. A query whose keys
    are all masked receives 0. drop: a dropout mask for the weights, of shape (B, H, T, S).
    """
    return _record(
        attention_rules.attention,
        query,
        key,
        value,
        n_head=n_head,
        causal=causal,
        mask=additive_mask(mask),
        drop=drop,
    )


def self_attention(
    qkv: Any, n_head: int, *, causal: bool = False, mask: Any = None, drop: Any = None
) -> Tensor:
    """`attention` of a sequence to itself; Q, K and V are the thirds of qkv (B, T, 3C)."""
    return _record(
        attention_rules.self_attention,
        qkv,
        n_head=n_head,
        causal=causal,
        mask=additive_mask(mask),
        drop=drop,
    )


def additive_mask(mask: Any) -> Any:
    """A boolean mask (True is kept) as 0 and -inf; an additive one as it is."""
    if mask is None:
        return None
    array = np.asarray(mask.data if isinstance(mask, Tensor) else mask)
    if array.dtype == np.bool_:
        return np.where(array, np.float32(0.0), np.float32(-np.inf))
    return array
