"""The transformer block: attention and feed-forward, each with a residual and a norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.attention import LayerCache, MultiHeadAttention
from tinygrad_tf.nn.cross_attention import CrossAttention, DecoderLayerCache, ProjectedMemory
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, FeedForward, LayerNorm
from tinygrad_tf.nn.module import Module


class Block(Module):
    """x + attention, with `cross` + attention to the memory, then + feed-forward.

    (B, T, C) -> (B, T, C). norm="pre" normalises what goes into each part (GPT-2), norm="post"
    what comes out of each sum (Vaswani et al. 2017). `causal` makes it a GPT's block, `cross` a
    decoder's, which takes its mask from outside. d_k and d_v are the widths of one head, by
    default d_model / n_head.
    """

    def __init__(
        self,
        d_model: int,
        n_head: int,
        d_ff: int,
        *,
        causal: bool = False,
        cross: bool = False,
        d_k: int | None = None,
        d_v: int | None = None,
        norm: str = "pre",
        activation: str = "relu",
        bias: bool = True,
        qkv_bias: bool | None = None,
        dropout: Dropout,
        rng: np.random.Generator,
        std: float = 0.02,
        proj_std: float = 0.02,
        eps: float = 1e-5,
        name: str = "",
    ) -> None:
        if norm not in ("pre", "post"):
            raise InputError(f"norm {norm!r} is not known", "choose pre or post")
        drawn: dict[str, Any] = {"dropout": dropout, "rng": rng, "std": std, "proj_std": proj_std}
        heads: dict[str, Any] = {"d_k": d_k, "d_v": d_v, "bias": bias, "qkv_bias": qkv_bias}
        self.ln_1 = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln1")
        self.attn = MultiHeadAttention(
            d_model, n_head, causal=causal, name=f"{name}.attn", **heads, **drawn
        )
        self.ln_cross: LayerNorm | None = None
        self.cross_attn: CrossAttention | None = None
        if cross:
            self.ln_cross = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln_cross")
            self.cross_attn = CrossAttention(
                d_model, n_head, name=f"{name}.cross_attn", **heads, **drawn
            )
        self.ln_2 = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln2")
        self.mlp = FeedForward(
            d_model, d_ff, activation=activation, bias=bias, name=f"{name}.mlp", **drawn
        )
        self.norm = norm
        self.name = name

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        cache: LayerCache | DecoderLayerCache | None = None,
    ) -> Tensor:
        """(B, T, C), and of a decoder the memory (B, S, C) -> (B, T, C).

        With a cache, x continues the positions that it holds; a decoder's stands for the memory.
        """
        given: Tensor | ProjectedMemory | None = memory
        if isinstance(cache, DecoderLayerCache):
            own: LayerCache | None = cache.own
            given = cache.memory
        else:
            own = cache
        x = tap(self.name, "hook_resid_pre", x)
        x = self._add(x, self.ln_1, "hook_attn_out", self.attn, mask=mask, cache=own)
        x = tap(self.name, "hook_resid_mid", x)
        if self.cross_attn is not None and self.ln_cross is not None:
            x = self._add(
                x,
                self.ln_cross,
                "hook_cross_attn_out",
                self.cross_attn,
                memory=given,
                mask=memory_mask,
            )
            x = tap(self.name, "hook_resid_mid_cross", x)
        x = self._add(x, self.ln_2, "hook_mlp_out", self.mlp)
        return tap(self.name, "hook_resid_post", x)

    def _add(self, x: Tensor, norm: LayerNorm, hook: str, part: Module, **options: Any) -> Tensor:
        """x + part(norm(x)), or norm(x + part(x))."""
        if self.norm == "pre":
            return x + tap(self.name, hook, part(norm(x), **options))
        return norm(x + tap(self.name, hook, part(x, **options)))  # type: ignore[no-any-return]

    def new_cache(self, memory: Tensor, capacity: int) -> DecoderLayerCache:
        """An empty cache for `capacity` positions, with the memory projected; of a decoder only."""
        if self.cross_attn is None:
            raise RuntimeError(f"{self.name} has no cross-attention; its cache is a LayerCache")
        return DecoderLayerCache(LayerCache(capacity), self.cross_attn.project(memory))
