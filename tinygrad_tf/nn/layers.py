"""The basic layers. Weights are stored [in, out] and applied as x @ W + b."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.module import Module, Parameter

ACTIVATIONS = ("relu", "gelu", "gelu_tanh")


def normal(rng: np.random.Generator, std: float, *shape: int) -> Parameter:
    """A float32 parameter drawn from N(0, std²)."""
    return Parameter(rng.standard_normal(shape, np.float32) * np.float32(std))


class Linear(Module):
    """y = x W + b: x (..., in_features) -> (..., out_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        rng: np.random.Generator | None = None,
        std: float = 0.02,
    ) -> None:
        rng = rng or np.random.default_rng()
        self.weight = normal(rng, std, in_features, out_features)
        self.bias = Parameter(np.zeros(out_features, np.float32)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return ops.linear(x, self.weight, self.bias)


class Embedding(Module):
    """A table of vectors: integer ids (...) -> (..., C)."""

    def __init__(
        self,
        count: int,
        width: int,
        *,
        rng: np.random.Generator | None = None,
        std: float = 0.02,
    ) -> None:
        self.weight = normal(rng or np.random.default_rng(), std, count, width)

    def forward(self, ids: Any) -> Tensor:
        """Return the row of each id; raises IndexError for an id outside the table."""
        return ops.embedding(self.weight, ids)


class LayerNorm(Module):
    """Mean 0, variance 1 over the channels of each token, then gain and bias (Ba et al. 2016)."""

    def __init__(self, width: int, bias: bool = True, *, eps: float = 1e-5, name: str = "") -> None:
        self.weight = Parameter(np.ones(width, np.float32))
        self.bias = Parameter(np.zeros(width, np.float32)) if bias else None
        self.eps = eps
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) -> (..., C)."""
        y = ops.layer_norm(x, self.weight, self.bias, self.eps)
        return tap(self.name, "hook_normalized", y)


class _Shard(threading.local):
    rng: np.random.Generator | None = None


_shard = _Shard()


@contextmanager
def dropout_from(rng: np.random.Generator | None) -> Iterator[None]:
    """Take dropout masks from `rng` within this context and thread, unless it is None."""
    before, _shard.rng = _shard.rng, rng
    try:
        yield
    finally:
        _shard.rng = before


class Dropout(Module):
    """Dropout: in training, set entries to 0 with probability `rate` and scale up the others.

    The masks come from `rng`, which all layers of a model share, so that one state fixes
    the sequence of masks.
    """

    def __init__(self, rate: float, rng: np.random.Generator) -> None:
        if not 0.0 <= rate < 1.0:
            raise InputError(f"dropout is {rate}", "give a number from 0 up to, not including, 1")
        self.rate = rate
        self.rng = rng

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return ops.dropout(x, self.rate, _shard.rng or self.rng) if self.training else x

    def mask(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return a mask to multiply with, or None when there is nothing to drop."""
        if not self.training or self.rate == 0.0:
            return None
        return ops.dropout_mask(shape, self.rate, _shard.rng or self.rng, dtype)


class FeedForward(Module):
    """act(x W1 + b1) W2 + b2, position by position (Vaswani et al. 2017, eq. 2)."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        bias: bool = True,
        dropout: Dropout,
        rng: np.random.Generator,
        std: float = 0.02,
        proj_std: float = 0.02,
        name: str = "",
    ) -> None:
        if activation not in ACTIVATIONS:
            raise InputError(
                f"activation {activation!r} is not known", f"choose one of {', '.join(ACTIVATIONS)}"
            )
        self.c_fc = Linear(d_model, d_ff, bias, rng=rng, std=std)
        self.c_proj = Linear(d_ff, d_model, bias, rng=rng, std=proj_std)
        self.dropout = dropout
        self.activation = activation
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, d_ff) -> (B, T, C)."""
        hidden = tap(self.name, "hook_pre", self.c_fc(x))
        if self.activation == "relu":
            hidden = ops.relu(hidden)
        else:
            hidden = ops.gelu(hidden, "tanh" if self.activation == "gelu_tanh" else "none")
        return self.dropout(self.c_proj(tap(self.name, "hook_post", hidden)))  # type: ignore[no-any-return]
