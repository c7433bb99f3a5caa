"""The encoder-decoder transformer of Vaswani et al. 2017."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import Seq2SeqConfig
from tinygrad_tf.models.stacks import DecoderStack, EncoderStack
from tinygrad_tf.models.targets import teacher_forcing
from tinygrad_tf.nn.cache import Cache
from tinygrad_tf.nn.layers import Dropout, Linear
from tinygrad_tf.nn.module import Module

__all__ = ["Seq2SeqConfig", "Transformer"]


class Transformer(Module):
    """Encoder, decoder and output layer: source (B, S), target (B, T) -> logits (B, T, V).

    The source is ids, or with `src_features` dense vectors (B, S, F), such as a sound. The real
    positions of vectors are the first `src_lengths` (B,) of each row, by default all.
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
        """Encode a source: the memory (B, S, C), to which every decoder layer attends."""
        return self.encoder(  # type: ignore[no-any-return]
            src, mask=self.encoder.mask(src, src_lengths)
        )

    def decode(self, tgt: Any, memory: Tensor, src: Any, src_lengths: Any = None) -> Tensor:
        """Return logits (B, T, V) of the token after each position of tgt (B, T).

        tgt begins with START; src and src_lengths tell which positions of the memory are real.
        Raises InputError unless there is one target for each source.
        """
        mask = self.encoder.mask(src, src_lengths)
        if np.shape(tgt)[:1] != mask.shape[:1]:
            count = len(np.atleast_1d(tgt))
            raise InputError(f"{count} targets for {len(mask)} sources", "give one for each")
        return self.logits(self.decoder(tgt, memory, memory_mask=mask))

    def next_logits(self, ids: Any, cache: Cache | None) -> Tensor:
        """Return logits (B, 1, V) of the token after ids (B, T), which continue the cache."""
        return self.logits(self.decoder(ids, cache=cache)[:, -1:])

    def new_cache(
        self, memory: Tensor, src: Any, src_lengths: Any = None, *, capacity: int | None = None
    ) -> Cache:
        """Make an empty cache for `next_logits`, with the memory projected once per layer.

        capacity: the largest number of positions of the target, by default max_length.
        """
        mask = self.encoder.mask(src, src_lengths)
        return self.decoder.new_cache(memory, mask, capacity or self.config.max_length)

    def logits(self, x: Tensor) -> Tensor:
        """Apply the output layer: (B, T, C) -> (B, T, V)."""
        if self.output is not None:
            return self.output(x)  # type: ignore[no-any-return]
        table = self.decoder.input.embedding
        assert table is not None  # a decoder reads ids
        return ops.linear(x, table.weight.T)

    def forward(self, src: Any, tgt: Any, src_lengths: Any = None) -> Tensor:
        """Return logits (B, T, V); tgt begins with START."""
        return self.decode(tgt, self.encode(src, src_lengths), src, src_lengths)

    def loss(self, src: Any, tgt: Any, src_lengths: Any = None) -> Tensor:
        """Return the mean cross-entropy in nats per target token and END; PAD is ignored.

        tgt (B, T) holds the bare tokens, then PAD: START and END are added here. All positions
        take one pass of the decoder (teacher forcing). In training, label smoothing is applied.
        """
        tgt_input, labels = teacher_forcing(tgt, self.config)
        return ops.cross_entropy(
            self.forward(src, tgt_input, src_lengths),
            labels,
            ignore_index=self.config.pad_id,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
        )
