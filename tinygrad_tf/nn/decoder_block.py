"""The blocks of the encoder-decoder: d_k and d_v free, the decoder's with cross-attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.attention import LayerCache, MultiHeadAttention
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, FeedForward, LayerNorm
from tinygrad_tf.nn.module import Module

Array = npt.NDArray[Any]


class ProjectedMemory(NamedTuple):
    """The keys (B, S, H·d_k) and values (B, S, H·d_v) that one layer makes of the memory."""

    key: Tensor
    value: Tensor


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder (Vaswani et al. 2017, 3.2.3).

    The memory may be given as `project` made it, so that decoding step by step makes it once.
    """

    def project(self, memory: Tensor) -> ProjectedMemory:
        """The keys and values of the memory (B, S, C)."""
        k = self.key_width
        weight, bias = self.c_attn.weight, self.c_attn.bias
        both = ops.linear(memory, weight[:, k:], None if bias is None else bias[k:])
        return ProjectedMemory(both[..., :k], both[..., k:])

    def _project(
        self, x: Tensor, memory: Tensor | ProjectedMemory | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(memory, ProjectedMemory):
            return super()._project(x, memory)
        k = self.key_width
        weight, bias = self.c_attn.weight, self.c_attn.bias
        query = ops.linear(x, weight[:, :k], None if bias is None else bias[:k])
        return query, memory.key, memory.value


@dataclass
class DecoderLayerCache:
    """What one decoder layer keeps between steps: its own keys and values, and the memory's."""

    own: LayerCache
    memory: ProjectedMemory

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if self.own.arrays is not None:
            key, value = self.own.arrays
            self.own.arrays = key[rows], value[rows]
        self.memory = ProjectedMemory(*(Tensor(part.data[rows]) for part in self.memory))


class TransformerBlock(Module):
    """Self-attention, with `cross` attention to the memory, feed-forward: (B, T, C) -> (B, T, C).

    Each part has a residual and a norm: norm="post" normalises each sum (Vaswani et al. 2017),
    norm="pre" what goes into each part. d_k and d_v are the widths of one head, by default
    d_model / n_heads. Without `cross` it is the encoder's block, with it the decoder's.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        cross: bool = False,
        d_k: int | None = None,
        d_v: int | None = None,
        norm: str = "post",
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
        self.attn = MultiHeadAttention(d_model, n_heads, name=f"{name}.attn", **heads, **drawn)
        self.ln_cross: LayerNorm | None = None
        self.cross_attn: CrossAttention | None = None
        if cross:
            self.ln_cross = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln_cross")
            self.cross_attn = CrossAttention(
                d_model, n_heads, name=f"{name}.cross_attn", **heads, **drawn
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
        cache: DecoderLayerCache | None = None,
    ) -> Tensor:
        """(B, T, C), and of a decoder the memory (B, S, C) -> (B, T, C).

        With a cache, x continues the positions that it holds, and it stands for the memory.
        """
        own = None if cache is None else cache.own
        x = tap(self.name, "hook_resid_pre", x)
        x = self._add(x, self.ln_1, "hook_attn_out", self.attn, mask=mask, cache=own)
        x = tap(self.name, "hook_resid_mid", x)
        if self.cross_attn is not None and self.ln_cross is not None:
            given = memory if cache is None else cache.memory
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
