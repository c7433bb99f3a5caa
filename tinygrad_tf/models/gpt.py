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
from tinygrad_tf.models.generation import generate_tokens
from tinygrad_tf.models.huggingface import config_from_json, from_gpt2, to_gpt2
from tinygrad_tf.models.stacks import Stack
from tinygrad_tf.nn.cache import Cache
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, Embedding, normal
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.types import IGNORE, Array


class GPT(Stack):
    """A GPT: token ids (B, T) -> logits (B, T, V). Parameters have the names of GPT-2's.

    Initialised as GPT-2 (Radford et al. 2019): N(0, init_std²), and the projections that add to
    the residual stream are smaller by 1/√(2 n_layer), since that many of them add up.
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
        self.add_blocks(
            config,
            config.n_layer,
            names="blocks",
            final_name="ln_final",
            causal=True,
            dropout=self.drop,
            rng=rng,
            std=hidden_std,
            proj_std=hidden_std / math.sqrt(2 * config.n_layer),
        )
        self.lm_head: Head | None = None
        if not config.tie_weights:
            self.lm_head = Head(config.vocab_size, width, rng, std)
        self.head_bias: Parameter | None = None
        if config.head_bias:
            self.head_bias = Parameter(np.zeros(config.vocab_size, np.float32))

    def forward(self, ids: Any) -> Tensor:
        """Return logits (B, T, V) for integer ids (B, T).

        Raises InputError for more positions than block_size.
        """
        return self.read(self.embed(ids))

    def next_logits(self, ids: Any, cache: Cache | None = None) -> Tensor:
        """Return logits (B, 1, V) of the token after ids (B, T), which continue the cache."""
        x = self.embed(ids, 0 if cache is None else cache.length)
        if cache is not None:
            cache.append(np.asarray(ids))
        return self.read(x, cache=cache, first=-1)

    def embed(self, ids: Any, start: int = 0) -> Tensor:
        """Return tokens plus positions, which begin at `start`: (B, T) -> (B, T, C).

        Raises InputError for ids of another shape, and for more positions than block_size.
        """
        ids = np.asarray(ids)
        if ids.ndim != 2 or not ids.size:
            raise InputError(f"token ids of shape {ids.shape}", "give them as (batch, time)")
        end = start + ids.shape[1]
        if end > self.config.block_size:
            raise InputError(
                f"{end} positions, but `block_size` is {self.config.block_size}",
                f"give the last {self.config.block_size} tokens",
            )
        x = tap("", "hook_embed", self.wte(ids))
        return self.drop(x + tap("", "hook_pos_embed", self._positions(start, end)))  # type: ignore[no-any-return]

    def read(self, x: Tensor, *, cache: Cache | None = None, first: int = 0) -> Tensor:
        """Return logits (B, T - first, V) for the result of `embed`, from position `first` on.

        A negative `first` counts from the end, so that -1 gives the last position alone.
        """
        x = self.apply_blocks(x, cache=cache, first=first)
        head = self.wte if self.lm_head is None else self.lm_head
        return ops.linear(x, head.weight.T, self.head_bias)

    def _positions(self, start: int, end: int) -> Tensor:
        if self.wpe is not None:
            return self.wpe.weight[start:end]
        return Tensor(self.position_table[start:end].astype(self.wte.weight.dtype, copy=False))

    def loss(self, ids: Any, targets: Any) -> Tensor:
        """Return the mean cross-entropy in nats per target (B, T), except where it is -1."""
        return ops.cross_entropy(self.forward(ids), targets, ignore_index=IGNORE)

    def new_cache(self, extra: int = 0) -> Cache:
        """Make an empty cache for block_size positions, and `extra` that are not of the text."""
        return Cache([block.new_cache(self.config.block_size + extra) for block in self.h])

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

        See `generation.generate_tokens`, which yields each token as it is chosen.
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
        """Return the arrays to write to a file: in GPT-2's layout where this is a GPT-2."""
        table = self.position_table if self.wpe is None else None
        return to_gpt2(self.config, super().file_tensors(), table)

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Load arrays from a file of `file_tensors`, or of Hugging Face."""
        self.load_state_dict(from_gpt2(self.config, tensors, set(self.named_parameters())))

    def summary(self) -> str:
        """Return the shape of the model in one line."""
        c = self.config
        shape = f"{c.n_layer} layers x {c.n_head} heads x {c.n_embd}"
        return f"{shape}, context {c.block_size}, {c.vocab_size} tokens"

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "last") -> GPT:
        """Load the model of a run directory, or of a Hugging Face GPT-2 directory.

        It is in evaluation mode. weights: "last", or "best" by validation loss if one was marked.
        Raises InputError where the directory, its configuration or its weights are not whole.
        """
        run = RunDirectory.open(run_dir)
        model = cls(config_from_json(run.read_config()))
        if weights not in ("last", "best"):
            raise InputError(f"there are no weights {weights!r} of a run", "choose last or best")
        best = weights == "best" and "best" in run.checkpoint_steps()
        model.load_tensors(run.load_model("best" if best else "latest"))
        model.eval()
        return model


class Head(Module):
    """The output table of an untied GPT, (V, C) as in Hugging Face: logits = x Wᵀ."""

    def __init__(self, vocab_size: int, width: int, rng: np.random.Generator, std: float) -> None:
        self.weight = normal(rng, std, vocab_size, width)
