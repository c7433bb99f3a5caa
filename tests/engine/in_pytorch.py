"""PyTorch's counterparts of ops, where a lambda would not do: they take the module torch first."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_tf.types import Array


def linear(torch: Any, x: Any, weight: Any, bias: Any = 0.0) -> Any:
    return x @ weight + bias


def norm(torch: Any, x: Any, *gains: Any, eps: float) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], *gains, eps=eps)


def reduce(name: str) -> Callable[..., Any]:
    def call(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        if axis == ():
            return x * 1.0
        axis = tuple(range(x.ndim)) if axis is None else axis
        return getattr(torch, name)(x, dim=axis, keepdim=keepdims) if x.ndim else x * 1.0

    return call


def spread(name: str) -> Callable[..., Any]:
    def call(torch: Any, x: Any, axis: Any, keepdims: bool = False) -> Any:
        if axis == ():
            return x * 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty result, without degrees of freedom
            return getattr(torch, name)(x, dim=axis, correction=0, keepdim=keepdims)

    return call


def loss(torch: Any, logits: Any, targets: Array, **options: Any) -> Any:
    rows = logits.reshape(-1, logits.shape[-1])
    ids = torch.from_numpy(targets.reshape(-1))
    loss = torch.nn.functional.cross_entropy(rows, ids, **options)
    return loss.reshape(targets.shape) if options["reduction"] == "none" else loss


def rms(torch: Any, x: Any, *gain: Any, eps: float) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], *gain, eps=eps)


def prod(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for a in sorted((a % x.ndim for a in axes), reverse=True):
        x = torch.prod(x, a, keepdim=keepdims)
    return x * 1.0


def scan(name: str) -> Callable[..., Any]:
    def call(torch: Any, x: Any, axis: int | None) -> Any:
        return getattr(torch, name)(x.flatten() if axis is None else x, axis or 0)

    return call


def norm_of(torch: Any, x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    return torch.linalg.vector_norm(x, 2 if ord is None else ord, axis, keepdim=keepdims)


def roll(torch: Any, x: Any, shift: Any, axis: Any) -> Any:
    return torch.roll(x, shift) if axis is None else torch.roll(x, shift, axis)


def pad(torch: Any, x: Any, pad_width: Any, constant_values: float) -> Any:
    if not x.ndim:
        return x * 1.0
    widths = [n for pair in reversed(pad_width) for n in pair]
    return torch.nn.functional.pad(x, widths, value=constant_values)


def flip(torch: Any, x: Any, axis: Any) -> Any:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return torch.flip(x, tuple(axes))


def repeat(torch: Any, x: Any, repeats: Any, axis: Any) -> Any:
    times = repeats if isinstance(repeats, int) else torch.tensor(repeats, dtype=torch.int64)
    return torch.repeat_interleave(x, times, axis)


def take(torch: Any, x: Any, indices: Array, axis: int | None) -> Any:
    places = torch.from_numpy(indices)
    if axis is None:
        return x.flatten()[places]
    return x[(slice(None),) * (axis % x.ndim) + (places,)]


def embedding(torch: Any, table: Any, ids: Array) -> Any:
    return table[torch.from_numpy(ids.astype(np.int64))]


def attention(
    torch: Any, q: Any, k: Any, v: Any, n_head: int, causal: bool, mask: Any, drop: Any
) -> Any:
    q, k, v = (
        x.reshape(*x.shape[:2], n_head, x.shape[-1] // n_head).transpose(1, 2) for x in (q, k, v)
    )
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    keep = np.ones(scores.shape, bool)
    if causal:
        keep &= np.tri(*scores.shape[-2:], k=scores.shape[-1] - scores.shape[-2], dtype=bool)
    if mask is not None and mask.dtype == bool:
        keep &= mask
    elif mask is not None:
        scores = scores + torch.from_numpy(mask).to(scores.dtype)
    # Where no key is left PyTorch's softmax is nan; here the context is 0.
    some = torch.from_numpy(keep.any(-1, keepdims=True))
    kept = torch.from_numpy(keep)
    weights = torch.softmax(scores.masked_fill(~kept & some, -np.inf), -1) * some
    if drop is not None:
        weights = weights * torch.from_numpy(drop).to(weights.dtype)
    return (weights @ v).transpose(1, 2).flatten(2)


def packed(torch: Any, qkv: Any, **options: Any) -> Any:
    return attention(torch, *qkv.chunk(3, -1), **options)


def same(name: str) -> Callable[..., Any]:
    """PyTorch's function of that name."""

    def call(torch: Any, *xs: Any, **options: Any) -> Any:
        home = torch if hasattr(torch, name) else torch.nn.functional
        return getattr(home, name)(*xs, **options)

    return call
