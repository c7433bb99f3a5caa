"""The transformer block: attention and feed-forward, each with a residual and a norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.attention import MultiHeadAttention
from tinygrad_tf.nn.cache import LayerCache, ProjectedMemory
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, FeedForward, LayerNorm
from tinygrad_tf.nn.module import Module


class Block(Module):
    """Self-attention, with `cross` also attention to the memory, then the feed-forward.

    (B, T, C) -> (B, T, C); each part is added to its input. norm="pre" normalises the input of
    each part (GPT-2), norm="post" each sum (Vaswani et al. 2017). A GPT's block is `causal`; a
    decoder's block has `cross`, and its caller gives the mask. d_k and d_v are the widths of one
    head, by default d_model / n_head. Raises InputError for an unknown norm.
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
        self.cross_attn: MultiHeadAttention | None = None
        if cross:
            self.ln_cross = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln_cross")
            self.cross_attn = MultiHeadAttention(
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
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Return the block's output (B, T, C); a decoder's block also reads a memory (B, S, C).

        With a cache, x continues the positions in it, and the memory is taken from it.
        """
        source: Tensor | ProjectedMemory | None = memory
        if cache is not None and cache.memory is not None:
            source = cache.memory
        x = tap(self.name, "hook_resid_pre", x)
        x = self._add(x, self.ln_1, "hook_attn_out", self.attn, mask=mask, cache=cache)
        x = tap(self.name, "hook_resid_mid", x)
        if self.cross_attn is not None and self.ln_cross is not None:
            x = self._add(
                x,
                self.ln_cross,
                "hook_cross_attn_out",
                self.cross_attn,
                memory=source,
                mask=memory_mask,
            )
            x = tap(self.name, "hook_resid_mid_cross", x)
        x = self._add(x, self.ln_2, "hook_mlp_out", self.mlp)
        return tap(self.name, "hook_resid_post", x)

    def _add(self, x: Tensor, norm: LayerNorm, hook: str, part: Module, **options: Any) -> Tensor:
        """Return x + part(norm(x)) where norm is "pre", norm(x + part(x)) where it is "post"."""
        if self.norm == "pre":
            return x + tap(self.name, hook, part(norm(x), **options))
        return norm(x + tap(self.name, hook, part(x, **options)))  # type: ignore[no-any-return]

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> LayerCache:
        """Make an empty cache for `capacity` positions; a decoder's block projects the memory."""
        if self.cross_attn is None or memory is None:
            return LayerCache(capacity)
        return LayerCache(capacity, self.cross_attn.project(memory))
