"""The encoder-decoder transformer of Vaswani et al. 2017."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.sequence_config import Seq2SeqConfig
from tinygrad_tf.models.stacks import DecoderCache, DecoderStack, EncoderStack
from tinygrad_tf.models.targets import teacher_forcing
from tinygrad_tf.nn.layers import Dropout, Linear
from tinygrad_tf.nn.module import Module

__all__ = ["Seq2SeqConfig", "Transformer"]


class Transformer(Module):
    """Source (B, S) and target (B, T) ids -> logits (B, T, V): encoder, decoder, output layer.

    The source may be dense vectors (B, S, F) instead (`src_features`): sounds, for example. Its
    real positions are then the first `src_lengths` (B,) of each row, by default all.
    """

    def __init__(self, config: Seq2SeqConfig, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 0])
        self.config = config
        self.dropout_rng = np.random.default_rng([seed, 1])
        drop = Dropout(config.dropout, self.dropout_rng)
        self.encoder = EncoderStack(
            config, config.n_encoder_layers, config.src_vocab_size, drop, rng, name="encoder"
        )
        self.decoder = DecoderStack(
            config,
            config.n_decoder_layers,
            config.tgt_vocab_size,
            drop,
            rng,
            name="decoder",
            cross=True,
            embedding=self.encoder.input.embedding if config.share_embeddings else None,
        )
        self.output: Linear | None = None
        if not config.tie_output:
            self.output = Linear(config.d_model, config.tgt_vocab_size, rng=rng, std=config.std)

    def encode(self, src: Any, src_lengths: Any = None) -> Tensor:
        """The memory (B, S, C) of a source, which every decoder layer attends to."""
        return self.encoder(  # type: ignore[no-any-return]
            src, mask=self.encoder.mask(src, src_lengths)
        )

    def decode(
        self,
        tgt: Any,
        memory: Tensor,
        src: Any,
        src_lengths: Any = None,
        *,
        last_only: bool = False,
    ) -> Tensor:
        """Logits (B, T, V) for what follows each position of tgt (B, T), which begins with START.

        src and src_lengths tell which positions of the memory are real. With `last_only`, the
        logits of the last position, (B, 1, V).
        """
        mask = self.encoder.mask(src, src_lengths)
        if np.shape(tgt)[:1] != mask.shape[:1]:
            count = len(np.atleast_1d(tgt))
            raise InputError(f"{count} targets for {len(mask)} sources", "give one for each")
        x = self.decoder(tgt, memory, memory_mask=mask)
        return self.logits(x[:, -1:] if last_only else x)

    def decode_next(self, tgt: Any, cache: DecoderCache) -> Tensor:
        """Logits (B, 1, V) after tgt (B, T), which continues what the cache holds."""
        return self.logits(self.decoder(tgt, cache=cache)[:, -1:])

    def new_cache(
        self, memory: Tensor, src: Any, src_lengths: Any = None, *, capacity: int | None = None
    ) -> DecoderCache:
        """An empty cache for `decode_next`: the memory's keys and values, made once per layer.

        capacity: how many positions of the target it can hold, by default max_length.
        """
        mask = self.encoder.mask(src, src_lengths)
        return self.decoder.new_cache(memory, mask, capacity or self.config.max_length)

    def logits(self, x: Tensor) -> Tensor:
        """The output layer: (B, T, C) -> (B, T, V)."""
        if self.output is not None:
            return self.output(x)  # type: ignore[no-any-return]
        table = self.decoder.input.embedding
        assert table is not None  # a decoder reads ids
        return ops.linear(x, table.weight.T)

    def forward(self, src: Any, tgt: Any, src_lengths: Any = None) -> Tensor:
        """Logits (B, T, V); tgt begins with START."""
        return self.decode(tgt, self.encode(src, src_lengths), src, src_lengths)

    def loss(self, src: Any, tgt: Any, src_lengths: Any = None) -> Tensor:
        """Mean cross-entropy in nats per target token and END, by teacher forcing; PAD is ignored.

        tgt (B, T) holds the bare tokens, then PAD: START and END are added here. All positions
        take one pass of the decoder. With label smoothing in training, that of the config.
        """
        given, labels = teacher_forcing(tgt, self.config)
        return ops.cross_entropy(
            self.forward(src, given, src_lengths),
            labels,
            ignore_index=self.config.pad_id,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
        )
