"""Stacks of blocks with their inputs: what the encoder and the decoder are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.sequence_config import SequenceConfig
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.cross_attention import DecoderLayerCache
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, Embedding, LayerNorm, Linear
from tinygrad_tf.nn.masks import length_mask, padding_mask, target_mask
from tinygrad_tf.nn.module import Module
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.types import Array, Mask


class SequenceInput(Module):
    """Token ids (B, S), or dense vectors (B, S, F), with their positions -> (B, S, C)."""

    def __init__(
        self,
        config: SequenceConfig,
        vocab_size: int | None,
        dropout: Dropout,
        rng: np.random.Generator,
        name: str,
        embedding: Embedding | None = None,
    ) -> None:
        width = config.d_model
        self.config, self.name = config, name
        self.dropout = dropout
        self.embedding = embedding
        self.projection: Linear | None = None
        if vocab_size is None:
            std = 0.7 / math.sqrt(config.src_features or 1)
            self.projection = Linear(config.src_features or 1, width, rng=rng, std=std)
        elif embedding is None:
            self.embedding = Embedding(vocab_size, width, rng=rng, std=config.std)
        self.positions: Embedding | None = None
        if config.positions == "learned":
            self.positions = Embedding(config.max_length, width, rng=rng, std=config.std)
        else:
            self.position_table = sinusoidal_positions(config.max_length, width)

    def forward(self, given: Any, start: int = 0) -> Tensor:
        """What stands at the positions from `start` on; raises InputError for what cannot be."""
        x = self._vectors(given)
        end = start + x.shape[1]
        if end > self.config.max_length:
            raise InputError(
                f"a sequence of {end} positions in the {self.name}, "
                f"but the model knows {self.config.max_length}",
                "shorten it, or train with a larger max_length",
            )
        x = tap(self.name, "hook_embed", x)
        if self.positions is not None:
            places = self.positions.weight[start:end]
        else:
            places = Tensor(self.position_table[start:end].astype(x.dtype))
        return self.dropout(  # type: ignore[no-any-return]
            x + tap(self.name, "hook_pos_embed", places)
        )

    def _vectors(self, given: Any) -> Tensor:
        if self.projection is not None:
            features = self.config.src_features
            shape = np.shape(given)
            if len(shape) != 3 or 0 in shape or shape[2] != features:
                raise InputError(
                    f"vectors of shape {shape} in the {self.name}",
                    f"give them as (batch, time, {features})",
                )
            dtype = self.projection.weight.dtype
            x = given if isinstance(given, Tensor) else Tensor(np.asarray(given, dtype))
            return self.projection(x)  # type: ignore[no-any-return]
        assert self.embedding is not None
        ids = np.asarray(given)
        if ids.ndim != 2 or not ids.size or ids.dtype.kind not in "iu":
            raise InputError(
                f"{ids.dtype} ids of shape {ids.shape} in the {self.name}",
                "give whole numbers as (batch, time), at least one",
            )
        rows = self.embedding.weight.shape[0]
        if not 0 <= int(ids.min()) <= int(ids.max()) < rows:
            raise InputError(
                f"ids in the {self.name} run from {ids.min()} to {ids.max()}",
                f"the model knows 0 to {rows - 1}",
            )
        scale = math.sqrt(self.config.d_model) if self.config.scale_embedding else 1.0
        vectors: Tensor = self.embedding(ids)
        return vectors if scale == 1.0 else ops.multiply(vectors, scale)


class Stack(Module):
    """An input, blocks one upon the other, and a norm at the end where norm="pre"."""

    def __init__(
        self,
        config: SequenceConfig,
        n_layers: int,
        vocab_size: int | None,
        dropout: Dropout,
        rng: np.random.Generator,
        *,
        name: str,
        cross: bool = False,
        embedding: Embedding | None = None,
    ) -> None:
        self.config = config
        self.input = SequenceInput(config, vocab_size, dropout, rng, name, embedding)
        # Without a norm on the sums, their variance grows with the number of parts: as in GPT-2.
        parts = (3 if cross else 2) * n_layers if config.norm == "pre" else 1
        self.h = [
            Block(
                config.d_model,
                config.n_heads,
                config.feed_forward_width,
                cross=cross,
                d_k=config.d_k,
                d_v=config.d_v,
                norm=config.norm,
                activation=config.activation,
                bias=config.bias,
                qkv_bias=config.qkv_bias,
                dropout=dropout,
                rng=rng,
                std=config.std,
                proj_std=config.std / math.sqrt(parts),
                eps=config.layer_norm_eps,
                name=f"{name}.{i}",
            )
            for i in range(n_layers)
        ]
        self.ln_f: LayerNorm | None = None
        if config.norm == "pre":
            eps = config.layer_norm_eps
            self.ln_f = LayerNorm(config.d_model, config.bias, eps=eps, name=f"{name}.ln_final")

    def _end(self, x: Tensor) -> Tensor:
        return x if self.ln_f is None else self.ln_f(x)


class EncoderStack(Stack):
    """Every position sees every real one: ids (B, S) or vectors (B, S, F) -> (B, S, C)."""

    def forward(self, src: Any, *, mask: Any = None) -> Tensor:
        """mask: True for the keys that are real, (B, 1, 1, S)."""
        x = self.input(src)
        for block in self.h:
            x = block(x, mask=mask)
        return self._end(x)

    def mask(self, src: Any, lengths: Any = None) -> Mask:
        """Which positions of the source are real: (B, 1, 1, S).

        Ids are where they are not PAD; vectors are all, or the first `lengths` (B,) of each row.
        """
        shape = np.shape(src)
        if len(shape) < 2:
            raise InputError(f"a source of shape {shape}", "give it as (batch, time, ...)")
        lengths = np.full(shape[0], shape[1]) if lengths is None else np.asarray(lengths)
        if lengths.shape != shape[:1] or np.any((lengths < 0) | (lengths > shape[1])):
            raise InputError(
                f"lengths {lengths.tolist()} of a source of shape {shape}",
                f"give one from 0 to {shape[1]} for each row",
            )
        mask = length_mask(lengths, shape[1])
        return mask if len(shape) > 2 else mask & padding_mask(src, self.config.pad_id)


class DecoderCache:
    """What a decoder keeps between steps: ids so far, each layer's keys and values, the source."""

    def __init__(self, layers: list[DecoderLayerCache], memory_mask: Mask) -> None:
        self.layers = layers
        self.memory_mask = memory_mask
        self.ids: Array = np.zeros((memory_mask.shape[0], 0), np.int64)

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if np.array_equal(rows, np.arange(len(self.ids))):
            return
        self.ids, self.memory_mask = self.ids[rows], self.memory_mask[rows]
        for layer in self.layers:
            layer.select(rows)


class DecoderStack(Stack):
    """Each position sees those before it and the whole memory: ids (B, T) -> (B, T, C)."""

    def forward(
        self,
        tgt: Any,
        memory: Tensor | None = None,
        *,
        memory_mask: Any = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """tgt (B, T), memory (B, S, C); with a cache, tgt continues what it holds, and it has both
        the memory and its mask."""
        seen = np.asarray(tgt)
        x = self.input(seen, start=0 if cache is None else cache.ids.shape[1])
        if cache is not None:
            seen = cache.ids = np.concatenate([cache.ids, seen], axis=1)
            memory_mask = cache.memory_mask
        mask = target_mask(seen, self.config.pad_id)[:, :, -x.shape[1] :]
        for i, block in enumerate(self.h):
            layer = None if cache is None else cache.layers[i]
            x = block(x, memory, mask=mask, memory_mask=memory_mask, cache=layer)
        return self._end(x)

    def new_cache(self, memory: Tensor, memory_mask: Mask, capacity: int) -> DecoderCache:
        """A cache for `capacity` positions of each row of the memory."""
        return DecoderCache([block.new_cache(memory, capacity) for block in self.h], memory_mask)
