"""Multi-head attention as a layer, and the cache that generation keeps of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.attention import merge_heads, plain_scores, split_heads
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.hooks import is_recording, tap
from tinygrad_tf.nn.layers import Dropout, Linear
from tinygrad_tf.nn.module import Module
from tinygrad_tf.types import Array


class LayerCache:
    """The keys and values of the positions that one layer has seen, in arrays made once."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.arrays: tuple[Array, Array] | None = None

    def extend(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Append (B, T, ·) of new positions; returns those of all positions so far."""
        if self.arrays is None:
            self.arrays = tuple(  # type: ignore[assignment]
                np.empty((x.shape[0], self.capacity, x.shape[2]), x.dtype) for x in (key, value)
            )
        assert self.arrays is not None
        end = self.length + key.shape[1]
        for held, new in zip(self.arrays, (key, value), strict=True):
            held[:, self.length : end] = new
        self.length = end
        return self.arrays[0][:, :end], self.arrays[1][:, :end]


class MultiHeadAttention(Module):
    """Attention in `n_head` heads with projections in and out (Vaswani et al. 2017, 3.2.2).

    x (B, T, C) asks; the keys and values come from `memory` (B, S, C), or from x itself.
    `c_attn` holds W_Q, W_K and W_V side by side, `c_proj` is W_O. d_k and d_v are the widths of
    one head; without them C / n_head, which must then be whole.
    """

    def __init__(
        self,
        d_model: int,
        n_head: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        causal: bool = False,
        bias: bool = True,
        qkv_bias: bool | None = None,
        dropout: Dropout,
        rng: np.random.Generator,
        std: float = 0.02,
        proj_std: float = 0.02,
        name: str = "",
    ) -> None:
        if (d_k is None or d_v is None) and d_model % n_head:
            raise InputError(
                f"{d_model} channels cannot be divided among {n_head} heads",
                f"make n_embd a multiple of n_head, such as {d_model // n_head * n_head or n_head}",
            )
        self.n_head = n_head
        self.key_width = n_head * (d_k or d_model // n_head)
        self.value_width = n_head * (d_v or d_model // n_head)
        self.causal = causal
        self.c_attn = Linear(
            d_model,
            2 * self.key_width + self.value_width,
            bias if qkv_bias is None else qkv_bias,
            rng=rng,
            std=std,
        )
        self.c_proj = Linear(self.value_width, d_model, bias, rng=rng, std=proj_std)
        self.dropout = dropout
        self.name = name

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Any = None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        if memory is None and cache is None and self._is_packed() and not is_recording():
            drop = self.dropout.mask((x.shape[0], self.n_head, x.shape[1], x.shape[1]), x.dtype)
            context = ops.self_attention(
                self.c_attn(x), self.n_head, causal=self.causal, mask=mask, drop=drop
            )
        else:
            query, key, value = self._project(x, memory)
            if cache is not None:
                if key.requires_grad:
                    raise RuntimeError(
                        "a cache keeps numbers without their graph; "
                        "use it within no_grad(), or leave it out"
                    )
                key, value = map(Tensor, cache.extend(key.data, value.data))
            drop = self.dropout.mask((x.shape[0], self.n_head, x.shape[1], key.shape[1]), x.dtype)
            attend = self._attend_in_steps if is_recording() else self._attend
            context = attend(query, key, value, mask, drop)
        return self.dropout(self.c_proj(context))  # type: ignore[no-any-return]

    def _is_packed(self) -> bool:
        return self.key_width == self.value_width

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Q of x, K and V of the memory: (B, T, H·d_k), (B, S, H·d_k), (B, S, H·d_v)."""
        k = self.key_width
        if memory is None:
            qkv = self.c_attn(x)
            return qkv[..., :k], qkv[..., k : 2 * k], qkv[..., 2 * k :]
        weight, bias = self.c_attn.weight, self.c_attn.bias
        query = ops.linear(x, weight[:, :k], None if bias is None else bias[:k])
        both = ops.linear(memory, weight[:, k:], None if bias is None else bias[k:])
        return query, both[..., :k], both[..., k:]

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, drop: Any) -> Tensor:
        return ops.attention(
            query, key, value, self.n_head, causal=self.causal, mask=mask, drop=drop
        )

    def _attend_in_steps(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Any, drop: Any
    ) -> Tensor:
        """The same with every intermediate value named; heads as (B, T, H, d)."""
        n = self.n_head
        by_head = [
            tap(self.name, hook, part.reshape(*part.shape[:-1], n, part.shape[-1] // n))
            for hook, part in (("hook_q", query), ("hook_k", key), ("hook_v", value))
        ]
        query, key, value = (part.reshape(*part.shape[:-2], -1) for part in by_head)
        scores = plain_scores(
            query, key, n_head=n, causal=self.causal, mask=ops.additive_mask(mask)
        )
        scores = tap(self.name, "hook_attn_scores", scores)
        weights = tap(self.name, "hook_pattern", ops.softmax(scores))
        if drop is not None:
            weights = weights * drop
        z = ops.matmul(weights, split_heads(value, n))  # (B, H, T, d_v)
        z = tap(self.name, "hook_z", z.swapaxes(1, 2)).swapaxes(1, 2)
        return merge_heads(z)  # type: ignore[no-any-return]
