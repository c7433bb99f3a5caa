"""Multi-head attention as a layer: within one sequence, or from one sequence to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.attention import merge_heads, plain_scores, split_heads
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.cache import LayerCache, ProjectedMemory
from tinygrad_tf.nn.hooks import is_recording, tap
from tinygrad_tf.nn.layers import Dropout, Linear
from tinygrad_tf.nn.module import Module


class MultiHeadAttention(Module):
    """Attention in `n_head` heads with projections in and out (Vaswani et al. 2017, 3.2.2).

    The queries come from x (B, T, C). The keys and values come from x too (self-attention), or
    from `memory` (B, S, C), the output of an encoder (cross-attention, 3.2.3). `c_attn` holds
    W_Q, W_K and W_V side by side, `c_proj` is W_O. d_k and d_v are the widths of one head, by
    default C / n_head. Raises InputError where n_head does not divide C and a width is missing.
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
                f"use {d_model // n_head * n_head or n_head} channels, or give `d_k` and `d_v`",
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
        memory: Tensor | ProjectedMemory | None = None,
        *,
        mask: Any = None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Return the context of each query, projected: (B, T, C) -> (B, T, C).

        mask: which keys count, see `nn.masks`. cache: keys and values of earlier positions, which
        x continues. Raises RuntimeError for a cache where gradients are recorded.
        """
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
                        "a cache keeps values without their graph: use it within no_grad()"
                    )
                key, value = map(Tensor, cache.extend(key.data, value.data))
            drop = self.dropout.mask((x.shape[0], self.n_head, x.shape[1], key.shape[1]), x.dtype)
            attend = self._attend_in_steps if is_recording() else self._attend
            context = attend(query, key, value, mask, drop)
        return self.dropout(self.c_proj(context))  # type: ignore[no-any-return]

    def _is_packed(self) -> bool:
        return self.key_width == self.value_width

    def project(self, memory: Tensor) -> ProjectedMemory:
        """Compute the keys and values of a memory (B, S, C), to be used for many queries."""
        k = self.key_width
        weight, bias = self.c_attn.weight, self.c_attn.bias
        both = ops.linear(memory, weight[:, k:], None if bias is None else bias[k:])
        return ProjectedMemory(both[..., :k], both[..., k:])

    def _project(
        self, x: Tensor, memory: Tensor | ProjectedMemory | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Q of x, K and V of the memory: (B, T, H·d_k), (B, S, H·d_k), (B, S, H·d_v)."""
        k = self.key_width
        if memory is None:
            qkv = self.c_attn(x)
            return qkv[..., :k], qkv[..., k : 2 * k], qkv[..., 2 * k :]
        weight, bias = self.c_attn.weight, self.c_attn.bias
        query = ops.linear(x, weight[:, :k], None if bias is None else bias[:k])
        key, value = memory if isinstance(memory, ProjectedMemory) else self.project(memory)
        return query, key, value

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, drop: Any) -> Tensor:
        return ops.attention(
            query, key, value, self.n_head, causal=self.causal, mask=mask, drop=drop
        )

    def _attend_in_steps(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Any, drop: Any
    ) -> Tensor:
        """Compute the same with every intermediate value recorded; heads are (B, T, H, d)."""
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
