"""Public functions that layers are made of: the fused operations, dropout and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import attention as attention_rules
from tinygrad_tf.engine import fused
from tinygrad_tf.engine.arguments import as_array, as_real, as_tensor
from tinygrad_tf.engine.elementwise import multiply
from tinygrad_tf.engine.graph import mode
from tinygrad_tf.engine.tensor import Tensor

_record = Tensor.record


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x W + b: x (..., in), weight (in, out), bias (out,)."""
    return _record(fused.linear, x, weight, bias)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last axis, then gain and bias (Ba et al. 2016)."""
    return _record(fused.layer_norm, _rows(x, "layer_norm"), weight, bias, eps=eps)


def rms_norm(x: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """x over its root mean square along the last axis, then gain (Zhang & Sennrich 2019).

    eps is added to the mean square; None is the smallest step of x's dtype from 1, as in PyTorch.
    """
    x = _rows(x, "rms_norm")
    small = float(np.finfo(x.dtype).eps) if eps is None else eps
    return _record(fused.rms_norm, x, weight, eps=small)


def _rows(x: Any, name: str) -> Tensor:
    """What a norm is taken of; raises ValueError where it has no last axis, or an empty one."""
    rows = as_real(x)
    if not rows.ndim or not rows.shape[-1]:
        raise ValueError(f"{name} of an array of shape {rows.shape}: its last axis has no entries")
    return rows


def embedding(table: Any, ids: Any) -> Tensor:
    """The rows of `table` (V, C) that integer `ids` name; raises IndexError beyond its ends."""
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
    return _record(fused.embedding, table, ids=rows)


def dropout(x: Any, rate: float, rng: np.random.Generator) -> Tensor:
    """Entries set to 0 with probability `rate`, the others scaled by 1 / (1 - rate).

    Raises ValueError for a rate outside 0 to 1.
    """
    entries = as_tensor(x)
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a dropout rate of {rate}; give a number from 0 to 1")
    if rate == 0:
        return entries
    return multiply(entries, dropout_mask(entries.shape, rate, rng, entries.dtype))


def dropout_mask(
    shape: tuple[int, ...], rate: float, rng: np.random.Generator, dtype: Any = np.float32
) -> Any:
    """0 with probability `rate`, else 1 / (1 - rate)."""
    keep = rng.random(shape, np.float32) >= rate
    return keep * np.dtype(dtype).type(1.0 / (1.0 - rate) if rate < 1 else 0.0)


def cross_entropy(
    logits: Any,
    targets: Any,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """The mean of -ln softmax(logits)[target], in nats.

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
    return _record(
        fused.cross_entropy,
        logits,
        targets=ids,
        ignore_index=ignore_index,
        label_smoothing=float(label_smoothing),
        reduction=reduction,
    )


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
    Raises ValueError for shapes that do not go together.
    """
    query, key, value = as_tensor(query), as_tensor(key), as_tensor(value)
    _require_heads(n_head, query=query, key=key, value=value)
    if key.shape[:2] != value.shape[:2] or query.shape[::2] != key.shape[::2]:
        raise ValueError(
            f"query {query.shape}, key {key.shape} and value {value.shape} do not go together: "
            f"give (B, T, H*d_k), (B, S, H*d_k) and (B, S, H*d_v)"
        )
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
    qkv = as_tensor(qkv)
    _require_heads(3 * n_head, qkv=qkv)
    return _record(
        attention_rules.self_attention,
        qkv,
        n_head=n_head,
        causal=causal,
        mask=additive_mask(mask),
        drop=drop,
    )


def additive_mask(mask: Any) -> Any:
    """A boolean mask (True is kept) as 0 and -inf; an additive one as it is.

    Raises TypeError for a mask that carries a gradient, which it would not receive, and for one
    of whole numbers, of which nobody could say whether it is to be added.
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
