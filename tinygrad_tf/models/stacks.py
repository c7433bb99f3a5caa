"""Stacks of blocks: the one that all models share, and the encoder and decoder with their input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig, SequenceConfig
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.cache import Cache
from tinygrad_tf.nn.hooks import tap
from tinygrad_tf.nn.layers import Dropout, Embedding, LayerNorm, Linear
from tinygrad_tf.nn.masks import length_mask, padding_mask, target_mask
from tinygrad_tf.nn.module import Module
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.types import Mask


class Stack(Module):
    """Blocks that are applied in turn, and a norm at the end where norm="pre".

    Initialised as in GPT-2: the projections that add to the residual stream have the smaller
    standard deviation `proj_std`, since many of them add up.
    """

    h: list[Block]
    ln_f: LayerNorm | None

    def add_blocks(
        self,
        config: GPTConfig | SequenceConfig,
        count: int,
        *,
        names: str,
        final_name: str,
        **options: Any,
    ) -> None:
        """Make the blocks; their names in `record` are `names` with a number.

        The options are further arguments of `Block`, which the configuration does not decide.
        """
        shared = config.block_options()
        self.h = [Block(**shared, **options, name=f"{names}.{i}") for i in range(count)]
        self.ln_f = None
        if config.norm == "pre":
            self.ln_f = LayerNorm(
                shared["d_model"], config.bias, eps=config.layer_norm_eps, name=final_name
            )

    def apply_blocks(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        cache: Cache | None = None,
        first: int = 0,
    ) -> Tensor:
        """Apply every block, then the final norm: (B, T, C) -> (B, T - first, C).

        The result begins at position `first`; a negative one counts from the end.
        """
        for i, block in enumerate(self.h):
            layer = None if cache is None else cache.layers[i]
            x = block(x, memory, mask=mask, memory_mask=memory_mask, cache=layer)
        if first:
            x = x[:, first:]
        return x if self.ln_f is None else self.ln_f(x)


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

    def forward(self, source: Any, start: int = 0) -> Tensor:
        """Return embeddings plus positions, which begin at `start`.

        Raises InputError for invalid ids or vectors, and for more positions than max_length.
        """
        x = self._vectors(source)
        end = start + x.shape[1]
        if end > self.config.max_length:
            raise InputError(
                f"a sequence of {end} positions in the {self.name}, "
                f"but the model knows {self.config.max_length}",
                "shorten it, or train with a larger `max_length`",
            )
        x = tap(self.name, "hook_embed", x)
        if self.positions is not None:
            positions = self.positions.weight[start:end]
        else:
            positions = Tensor(self.position_table[start:end].astype(x.dtype))
        return self.dropout(  # type: ignore[no-any-return]
            x + tap(self.name, "hook_pos_embed", positions)
        )

    def _vectors(self, source: Any) -> Tensor:
        if self.projection is not None:
            features = self.config.src_features
            shape = np.shape(source)
            if len(shape) != 3 or 0 in shape or shape[2] != features:
                raise InputError(
                    f"vectors of shape {shape} in the {self.name}",
                    f"give them as (batch, time, {features})",
                )
            dtype = self.projection.weight.dtype
            x = source if isinstance(source, Tensor) else Tensor(np.asarray(source, dtype))
            return self.projection(x)  # type: ignore[no-any-return]
        assert self.embedding is not None
        ids = np.asarray(source)
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


class SequenceStack(Stack):
    """The stack of an encoder or a decoder, with its input."""

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
        self.add_blocks(
            config,
            n_layers,
            names=name,
            final_name=f"{name}.ln_final",
            cross=cross,
            dropout=dropout,
            rng=rng,
            std=config.std,
            proj_std=config.std / math.sqrt(parts),
        )


class EncoderStack(SequenceStack):
    """Every position attends to every real one: ids (B, S) or vectors (B, S, F) -> (B, S, C)."""

    def forward(self, src: Any, *, mask: Any = None) -> Tensor:
        """Encode a source; mask (B, 1, 1, S) is True for the keys that are real."""
        return self.apply_blocks(self.input(src), mask=mask)

    def mask(self, src: Any, lengths: Any = None) -> Mask:
        """Return which positions of the source are real: (B, 1, 1, S).

        Ids are real where they are not PAD; of vectors all, or the first `lengths` (B,) of each
        row. Raises InputError for lengths that do not fit the source.
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


class DecoderStack(SequenceStack):
    """Each position attends to those before it and to the memory: ids (B, T) -> (B, T, C)."""

    def forward(
        self,
        tgt: Any,
        memory: Tensor | None = None,
        *,
        memory_mask: Any = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Decode tgt (B, T) with a memory (B, S, C) and its mask.

        With a cache, tgt continues the ids in it, and the cache holds the memory and its mask.
        """
        ids = np.asarray(tgt)
        x = self.input(ids, start=0 if cache is None else cache.length)
        if cache is not None:
            ids, memory_mask = cache.append(ids), cache.memory_mask
        mask = target_mask(ids, self.config.pad_id)[:, :, -x.shape[1] :]
        return self.apply_blocks(x, memory, mask=mask, memory_mask=memory_mask, cache=cache)

    def new_cache(self, memory: Tensor, memory_mask: Mask, capacity: int) -> Cache:
        """Make an empty cache for `capacity` positions of each row of the memory."""
        return Cache([block.new_cache(capacity, memory) for block in self.h], memory_mask)
