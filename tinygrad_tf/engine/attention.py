"""Scaled dot-product attention with several heads (Vaswani et al. 2017, eq. 1), fused.

weights = softmax(Q Kᵀ / √d_k + mask), context = weights V. Queries come from one sequence, keys
and values from another; self-attention is the case where they are the same, and has a packed
form in which Q, K and V are the thirds of one array, so that nothing is cut up or copied.

Shapes: B batch, T positions of queries, S of keys, H heads, d channels of a head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Fused, Gradients, mode
from tinygrad_tf.engine.linalg import matmul
from tinygrad_tf.engine.reductions import softmax
from tinygrad_tf.engine.table import as_array, as_tensor, public, record
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array


def split_heads(x: Any, n_head: int) -> Any:
    """Reshape (B, T, H*d) to (B, H, T, d), as a view."""
    shape = (*x.shape[:-1], n_head, x.shape[-1] // n_head)
    return np.swapaxes(np.reshape(x, shape), -2, -3)


def merge_heads(x: Any) -> Any:
    """Reshape (B, H, T, d) to (B, T, H*d)."""
    x = np.swapaxes(x, -2, -3)
    return np.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


@lru_cache(maxsize=64)
def causal_mask(queries: int, keys: int) -> Array:
    """Return the additive mask (T, S): 0 where key s is not after query t, -inf elsewhere.

    The last query is at the last key, so T < S occurs with a cache of earlier keys.
    """
    later = np.triu(np.ones((queries, keys), bool), k=keys - queries + 1)
    mask = np.where(later, -np.inf, 0.0).astype(np.float32)
    mask.flags.writeable = False
    return mask


def _weights(q: Array, k: Array, causal: bool, mask: Array | None) -> Array:
    """Return the softmax (B, H, T, S) of the scaled and masked scores; 0 in fully masked rows."""
    scores: Array = np.matmul(q * (1.0 / math.sqrt(q.shape[-1])), np.swapaxes(k, -1, -2))
    if causal:
        scores += causal_mask(q.shape[-2], k.shape[-2])
    if mask is not None:
        scores += mask
    # Rows that are masked throughout: by the mask, or queries of more than there are keys.
    bare = mask is not None or not k.shape[-2] or (causal and q.shape[-2] > k.shape[-2])
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    if bare:
        np.copyto(top, 0.0, where=np.isneginf(top))
    scores -= top
    np.exp(scores, out=scores)
    total = np.add.reduce(scores, axis=-1, keepdims=True)
    if bare:
        np.copyto(total, 1.0, where=total == 0.0)
    scores *= np.reciprocal(total)
    return scores


def _attend_backward(
    g: Array,
    weights: Array,
    parts: Gradients,
    into: Gradients,
    *,
    n_head: int,
    drop: Array | None,
    **_masking: Any,
) -> None:
    """Write the gradients of `parts`, the q, k and v of all heads, to the arrays of `into`."""
    g = split_heads(g, n_head)
    q, k, v = (split_heads(x, n_head) for x in parts)
    dq, dk, dv = (split_heads(x, n_head) for x in into)
    dropped = weights if drop is None else weights * drop
    np.matmul(np.swapaxes(dropped, -1, -2), g, out=dv)
    dscores = np.matmul(g, np.swapaxes(v, -1, -2))
    if drop is not None:
        dscores *= drop
    # dS = P (dP - rowsum(P dP))
    dscores -= np.vecdot(dscores, weights)[..., None]
    dscores *= weights
    dscores *= 1.0 / math.sqrt(q.shape[-1])
    np.matmul(dscores, k, out=dq)
    np.matmul(np.swapaxes(dscores, -1, -2), q, out=dk)


# --- queries, keys and values apart: (B, T, H*d_k), (B, S, H*d_k), (B, S, H*d_v) ---
def _attention_forward(
    q: Array, k: Array, v: Array, *, n_head: int, drop: Array | None, **masking: Any
) -> tuple[Array, Gradients]:
    q, k, v = (split_heads(x, n_head) for x in (q, k, v))
    weights = _weights(q, k, **masking)
    context = np.empty((*q.shape[::2], n_head * v.shape[-1]), q.dtype)
    np.matmul(weights if drop is None else weights * drop, v, out=split_heads(context, n_head))
    return context, (weights,)


def _attention_backward(
    g: Array, inputs: Gradients, extras: Gradients, _needs: Sequence[bool], **options: Any
) -> Gradients:
    gradients = tuple(np.empty_like(x) for x in inputs)
    _attend_backward(g, extras[0], inputs, gradients, **options)
    return gradients


def plain_scores(
    q: Any, k: Any, *, n_head: int, causal: bool = False, mask: Array | None = None
) -> Any:
    """Return scaled and masked scores, (B, H, T, S), computed by ops that are recorded."""
    q, k = split_heads(q, n_head), split_heads(k, n_head)
    scores = matmul(q, np.swapaxes(k, -1, -2)) * (1.0 / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores + causal_mask(q.shape[-2], k.shape[-2])
    if mask is not None:
        scores = scores + mask.astype(scores.dtype, copy=False)
    return scores


def _attention_composite(
    q: Any, k: Any, v: Any, *, n_head: int, drop: Array | None, **masking: Any
) -> Any:
    scores = plain_scores(q, k, n_head=n_head, **masking)
    weights = softmax(scores, axis=-1)
    if drop is not None:
        weights = weights * drop
    return merge_heads(matmul(weights, split_heads(v, n_head)))


_attention = Fused("attention", _attention_forward, _attention_backward, _attention_composite)


@public(_attention)
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
    """Compute softmax(Q Kᵀ / √d_k + mask) V in each of `n_head` heads (Vaswani et al. 2017, eq. 1).

    query (B, T, H·d_k), key (B, S, H·d_k), value (B, S, H·d_v) -> context (B, T, H·d_v).
    mask: broadcastable to (B, H, T, S); boolean (True is kept) or additive. A query whose keys
    are all masked receives 0. drop: a dropout mask for the weights, of shape (B, H, T, S).
    Raises ValueError for shapes that do not go together.
    """
    query, key, value = as_tensor(query), as_tensor(key), as_tensor(value)
    _require_heads(n_head, query=query, key=key, value=value)
    if key.shape[:2] != value.shape[:2] or query.shape[::2] != key.shape[::2]:
        raise ValueError(
            f"query {query.shape}, key {key.shape} and value {value.shape} do not go together: "
            f"give (B, T, H*d_k), (B, S, H*d_k) and (B, S, H*d_v)"
        )
    options = {"n_head": n_head, "causal": causal, "mask": additive_mask(mask), "drop": drop}
    return record(_attention, query, key, value, **options)


# --- packed self-attention: (B, T, 3C), the columns being Q, K and V ---
def _thirds(qkv: Any) -> tuple[Any, Any, Any]:
    width = qkv.shape[-1] // 3
    return qkv[..., :width], qkv[..., width : 2 * width], qkv[..., 2 * width :]


def _self_attention_backward(
    g: Array, inputs: Gradients, extras: Gradients, _needs: Sequence[bool], **options: Any
) -> Gradients:
    dqkv = np.empty_like(inputs[0])
    _attend_backward(g, extras[0], _thirds(inputs[0]), _thirds(dqkv), **options)
    return (dqkv,)


_self_attention = Fused(
    "self_attention",
    lambda qkv, **options: _attention_forward(*_thirds(qkv), **options),
    _self_attention_backward,
    lambda qkv, **options: _attention_composite(*_thirds(qkv), **options),
)


@public(_self_attention)
def self_attention(
    qkv: Any, n_head: int, *, causal: bool = False, mask: Any = None, drop: Any = None
) -> Tensor:
    """Compute `attention` of a sequence to itself; Q, K and V are the thirds of qkv (B, T, 3C)."""
    qkv = as_tensor(qkv)
    _require_heads(3 * n_head, qkv=qkv)
    options = {"n_head": n_head, "causal": causal, "mask": additive_mask(mask), "drop": drop}
    return record(_self_attention, qkv, **options)


# --- arguments ---
@public()
def additive_mask(mask: Any) -> Any:
    """Convert a boolean mask (True is kept) to 0 and -inf; return an additive mask as it is.

    Raises TypeError for a mask that requires a gradient, which it would not receive, and for one
    of whole numbers, which could mean either kind.
    """
    if mask is None:
        return None
    if isinstance(mask, Tensor) and mask.requires_grad and mode.recording:
        raise TypeError("a mask receives no gradient here; write mask.detach()")
    array = as_array(mask)
    if array.dtype == np.bool_:
        return np.where(array, np.float32(0.0), np.float32(-np.inf))
    if array.dtype.kind != "f":
        raise TypeError(f"a mask of {array.dtype}; give booleans (True is kept) or floats to add")
    return array


def _require_heads(parts: int, **arrays: Tensor) -> None:
    for name, x in arrays.items():
        if x.ndim != 3 or parts < 1 or x.shape[-1] % parts:
            raise ValueError(
                f"{name} has shape {x.shape}; its axes are batch, time and channels, and the "
                f"channels are divided into {parts} parts"
            )
