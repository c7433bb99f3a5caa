"""The GPT: a decoder-only transformer that predicts the next token at every position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.huggingface import config_from_json, file_tensors, load_tensors
from tinygrad_tf.models.sampling import generate_tokens
from tinygrad_tf.nn.attention import LayerCache
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, Embedding, LayerNorm, normal
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.types import IGNORE, Array


class GPT(Module):
    """Token ids (B, T) -> logits (B, T, V); parameters are named as in Hugging Face's GPT-2.

    Initialised as GPT-2 (Radford et al. 2019): N(0, init_std²), and the projections that add to
    the residual stream smaller by 1/√(2 n_layer), since that many of them add up.
    """

    def __init__(self, config: GPTConfig, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 0])
        self.config = config
        self.dropout_rng = np.random.default_rng([seed, 1])
        width, std = config.n_embd, config.init_std
        hidden_std = std if config.hidden_std is None else config.hidden_std
        self.drop = Dropout(config.dropout, self.dropout_rng)
        self.wte = Embedding(config.vocab_size, width, rng=rng, std=std)
        self.wpe: Embedding | None = None
        if config.positions == "learned":
            self.wpe = Embedding(config.block_size, width, rng=rng, std=std)
        else:
            self.position_table = sinusoidal_positions(config.block_size, width).astype(np.float32)
        self.h = [
            Block(
                width,
                config.n_head,
                config.feed_forward_width,
                norm=config.norm,
                activation=config.activation,
                bias=config.bias,
                qkv_bias=config.qkv_bias,
                causal=True,
                dropout=self.drop,
                rng=rng,
                std=hidden_std,
                proj_std=hidden_std / math.sqrt(2 * config.n_layer),
                eps=config.layer_norm_eps,
                name=f"blocks.{i}",
            )
            for i in range(config.n_layer)
        ]
        self.ln_f: LayerNorm | None = None
        if config.norm == "pre":
            self.ln_f = LayerNorm(width, config.bias, eps=config.layer_norm_eps, name="ln_final")
        self.lm_head: Head | None = None
        if not config.tie_weights:
            self.lm_head = Head(config.vocab_size, width, rng, std)
        self.head_bias: Parameter | None = None
        if config.head_bias:
            self.head_bias = Parameter(np.zeros(config.vocab_size, np.float32))

    def forward(
        self,
        ids: Any,
        *,
        cache: list[LayerCache] | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Logits (B, T, V) for integer ids (B, T); with `last_only`, of the last position.

        cache: what `new_cache` made; then `ids` continue the positions that it holds. Raises
        InputError for more positions than block_size.
        """
        ids = np.asarray(ids)
        if ids.ndim != 2 or not ids.size:
            raise InputError(f"token ids of shape {ids.shape}", "give them as (batch, time)")
        x = self.embed(ids, cache[0].length if cache else 0)
        return self.read(x, cache=cache, first=-1 if last_only else 0)

    def embed(self, ids: Array, start: int = 0) -> Tensor:
        """What enters the blocks, (B, T, C): token plus position, from position `start` on."""
        end = start + ids.shape[1]
        if end > self.config.block_size:
            raise InputError(
                f"{end} positions, but block_size is {self.config.block_size}",
                f"give the last {self.config.block_size} tokens",
            )
        x = tap("", "hook_embed", self.wte(ids))
        return self.drop(x + tap("", "hook_pos_embed", self._positions(start, end)))  # type: ignore[no-any-return]

    def read(self, x: Tensor, *, cache: list[LayerCache] | None = None, first: int = 0) -> Tensor:
        """Logits (B, T - first, V) for vectors (B, T, C) as of `embed`, from position `first` on.

        A negative `first` counts from the end, so that -1 leaves the last position alone.
        """
        for i, block in enumerate(self.h):
            x = block(x, cache=cache[i] if cache else None)
        if first:
            x = x[:, first:]
        if self.ln_f is not None:
            x = self.ln_f(x)
        head = self.wte if self.lm_head is None else self.lm_head
        return ops.linear(x, head.weight.T, self.head_bias)

    def _positions(self, start: int, end: int) -> Tensor:
        if self.wpe is not None:
            return self.wpe.weight[start:end]
        return Tensor(self.position_table[start:end].astype(self.wte.weight.dtype, copy=False))

    def loss(self, ids: Any, targets: Any) -> Tensor:
        """Mean cross-entropy in nats per target; targets (B, T), -1 where none counts."""
        return ops.cross_entropy(self.forward(ids), targets, ignore_index=IGNORE)

    def new_cache(self) -> list[LayerCache]:
        """An empty cache of keys and values, one part per layer."""
        return [LayerCache(self.config.block_size) for _ in self.h]

    def generate(
        self,
        ids: Any,
        max_new_tokens: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Array:
        """Continue each row of integer ids (B, T); returns (B, T + max_new_tokens).

        See `sampling.generate_tokens`, which also streams.
        """
        ids = np.asarray(ids)
        steps = generate_tokens(
            self,
            ids,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            rng=np.random.default_rng(seed),
        )
        return np.concatenate([ids, *(step[:, None] for step in steps)], axis=1)

    def file_tensors(self) -> dict[str, Array]:
        """The arrays to write to a file: in GPT-2's layout where this is a GPT-2."""
        return file_tensors(self)

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """The reverse of `file_tensors`; accepts Hugging Face's files too."""
        load_tensors(self, tensors)

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "last") -> GPT:
        """The model of a run directory, or of a Hugging Face GPT-2 directory, without dropout.

        weights: "last", or "best" by validation loss if one was marked. Raises InputError where
        the directory, its configuration or its weights are not whole.
        """
        run = RunDirectory.open(run_dir)
        model = cls(config_from_json(run.read_config()))
        model.load_tensors(run.load_weights(weights))
        model.eval()
        return model


class Head(Module):
    """The output table of an untied GPT, (V, C) as in Hugging Face: logits = x Wᵀ."""

    def __init__(self, vocab_size: int, width: int, rng: np.random.Generator, std: float) -> None:
        self.weight = normal(rng, std, vocab_size, width)
