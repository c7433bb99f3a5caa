"""The transformer block: attention and feed-forward, each with a residual and a norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.attention import LayerCache, MultiHeadAttention
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, FeedForward, LayerNorm
from tinygrad_tf.nn.module import Module


class Block(Module):
    """x + attention, then + feed-forward: (B, T, C) -> (B, T, C).

    norm="pre" normalises what goes into each part (GPT-2), norm="post" what comes out of each
    sum (Vaswani et al. 2017).
    """

    def __init__(
        self,
        d_model: int,
        n_head: int,
        d_ff: int,
        *,
        norm: str = "pre",
        activation: str = "relu",
        bias: bool = True,
        qkv_bias: bool | None = None,
        causal: bool = False,
        dropout: Dropout,
        rng: np.random.Generator,
        std: float = 0.02,
        proj_std: float = 0.02,
        eps: float = 1e-5,
        name: str = "",
    ) -> None:
        if norm not in ("pre", "post"):
            raise InputError(f"norm {norm!r} is not known", "choose pre or post")
        self.ln_1 = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln1")
        self.attn = MultiHeadAttention(
            d_model,
            n_head,
            causal=causal,
            bias=bias,
            qkv_bias=qkv_bias,
            dropout=dropout,
            rng=rng,
            std=std,
            proj_std=proj_std,
            name=f"{name}.attn",
        )
        self.ln_2 = LayerNorm(d_model, bias, eps=eps, name=f"{name}.ln2")
        self.mlp = FeedForward(
            d_model,
            d_ff,
            activation=activation,
            bias=bias,
            dropout=dropout,
            rng=rng,
            std=std,
            proj_std=proj_std,
            name=f"{name}.mlp",
        )
        self.norm = norm
        self.name = name

    def forward(self, x: Tensor, *, mask: Any = None, cache: LayerCache | None = None) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        pre = self.norm == "pre"
        x = tap(self.name, "hook_resid_pre", x)
        attended = self.attn(self.ln_1(x) if pre else x, mask=mask, cache=cache)
        x = x + tap(self.name, "hook_attn_out", attended)
        x = tap(self.name, "hook_resid_mid", x if pre else self.ln_1(x))
        fed = self.mlp(self.ln_2(x) if pre else x)
        x = x + tap(self.name, "hook_mlp_out", fed)
        return tap(self.name, "hook_resid_post", x if pre else self.ln_2(x))
