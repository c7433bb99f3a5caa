"""The encoder alone, with a head for classes, for numbers, or for hidden tokens (BERT)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import EncoderConfig
from tinygrad_tf.models.stacks import EncoderStack
from tinygrad_tf.nn.layers import Dropout, LayerNorm, Linear
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.types import IGNORE, Array

__all__ = [
    "Classifier",
    "Encoder",
    "EncoderConfig",
    "MaskedLanguageModel",
    "Regressor",
    "mask_tokens",
]


class Encoder(Module):
    """An encoder: token ids (B, S), or dense vectors (B, S, F) -> (B, S, C).

    With pooling="cls" a CLS token is put before each source, and S grows by 1.
    """

    def __init__(self, config: EncoderConfig, seed: int = 0) -> None:
        self.config = config
        self._rng = np.random.default_rng([seed, 0])
        self.dropout_rng = np.random.default_rng([seed, 1])
        self.dropout = Dropout(config.dropout, self.dropout_rng)
        self.encoder = EncoderStack(
            config, config.n_layers, config.vocab_size, self.dropout, self._rng, name="encoder"
        )

    def encode(self, src: Any, src_lengths: Any = None) -> Tensor:
        """Return one vector for each position: (B, S) or (B, S, F) -> (B, S, C)."""
        return self._encode(src, src_lengths)[0]

    def pool(self, src: Any, src_lengths: Any = None) -> Tensor:
        """Return one vector per source, (B, C): the mean over real positions, or the one of CLS.

        The mean over no position is 0.
        """
        x, mask = self._encode(src, src_lengths)
        if self.config.pooling == "cls":
            return x[:, 0]
        real = mask[:, 0, 0, :, None]
        share = real / np.maximum(1, real.sum(axis=1, keepdims=True))
        return ops.sum(x * share.astype(x.dtype), axis=1)

    def _encode(self, src: Any, src_lengths: Any) -> tuple[Tensor, Array]:
        if self.config.pooling == "cls" and np.ndim(src) == 2:
            src = np.concatenate([np.full((len(src), 1), self.config.cls_id), src], axis=1)
            src_lengths = None if src_lengths is None else np.asarray(src_lengths) + 1
        mask = self.encoder.mask(src, src_lengths)
        return self.encoder(src, mask=mask), mask

    def forward(self, src: Any, src_lengths: Any = None) -> Tensor:
        """Encode a source; the subclasses return the prediction of their head instead."""
        return self.encode(src, src_lengths)

    def _head(self, width: int, outputs: int) -> Linear:
        return Linear(width, outputs, rng=self._rng, std=self.config.std)


class PooledEncoder(Encoder):
    """An encoder with a linear head on one vector per source: outputs (B, n_outputs)."""

    def __init__(self, config: EncoderConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self.head = self._head(config.d_model, config.n_outputs)

    def forward(self, src: Any, src_lengths: Any = None) -> Tensor:
        """Return the logits of a classifier, or the predictions of a regressor: (B, K)."""
        return self.head(self.dropout(self.pool(src, src_lengths)))  # type: ignore[no-any-return]


class Classifier(PooledEncoder):
    """A classifier: logits (B, K) of `n_outputs` classes for each source."""

    def loss(self, src: Any, labels: Any, src_lengths: Any = None) -> Tensor:
        """Return the mean cross-entropy in nats per source; labels (B,) are class numbers."""
        return ops.cross_entropy(self.forward(src, src_lengths), labels)


class Regressor(PooledEncoder):
    """A regressor: `n_outputs` numbers for each source, (B, K)."""

    def loss(self, src: Any, numbers: Any, src_lengths: Any = None) -> Tensor:
        """Return the mean squared error; numbers are (B, K), or (B,) where K is 1."""
        predicted = self.forward(src, src_lengths)
        targets = np.asarray(numbers, predicted.dtype)
        if targets.shape not in (predicted.shape, predicted.shape[:1]) or (
            targets.ndim == 1 and predicted.shape[1] > 1
        ):
            raise InputError(
                f"numbers of shape {targets.shape} for predictions of shape {predicted.shape}",
                "give one row for each source",
            )
        return ops.mean(ops.square(predicted - targets.reshape(predicted.shape)))


class MaskedLanguageModel(Encoder):
    """A model of hidden tokens: logits (B, S, V) (Devlin et al. 2019, section 3.1).

    The head is a layer with activation and norm, then the table of tokens and a bias.
    """

    def __init__(self, config: EncoderConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        if config.vocab_size is None or config.mask_id is None:
            raise InputError(
                "a masked-token model needs a vocabulary and the id of its MASK token",
                "give `vocab_size` and `mask_id`",
            )
        self.transform = self._head(config.d_model, config.d_model)
        self.ln_head = LayerNorm(config.d_model, eps=config.layer_norm_eps, name="ln_head")
        self.output_bias = Parameter(np.zeros(config.vocab_size, np.float32))

    def forward(self, src: Any, src_lengths: Any = None) -> Tensor:
        """Return logits (B, S, V) for the positions of the source, without CLS."""
        x = self.encode(src, src_lengths)
        if self.config.pooling == "cls":
            x = x[:, 1:]
        x = self.ln_head(ops.gelu(self.transform(x)))
        table = self.encoder.input.embedding
        assert table is not None  # by the constructor, it reads ids
        return ops.linear(x, table.weight.T, self.output_bias)

    def loss(self, src: Any, labels: Any, src_lengths: Any = None) -> Tensor:
        """Return the mean cross-entropy in nats per hidden token; see `mask_tokens` for labels."""
        return ops.cross_entropy(self.forward(src, src_lengths), labels, ignore_index=IGNORE)

    def hide(self, ids: Any, rng: np.random.Generator, rate: float = 0.15) -> tuple[Array, Array]:
        """Apply `mask_tokens` with the special ids of this model."""
        config = self.config
        assert config.vocab_size is not None and config.mask_id is not None
        special = {config.pad_id, config.mask_id, config.cls_id} - {None}
        return mask_tokens(
            ids,
            rng,
            mask_id=config.mask_id,
            vocab_size=config.vocab_size,
            special_ids=sorted(i for i in special if i is not None),
            rate=rate,
        )


def mask_tokens(
    ids: Any,
    rng: np.random.Generator,
    *,
    mask_id: int,
    vocab_size: int,
    special_ids: list[int],
    rate: float = 0.15,
) -> tuple[Array, Array]:
    """Hide a share of the tokens (B, S); returns the input, and labels with -1 elsewhere.

    In each row `rate` of the tokens that are not special are chosen, rounded, but at least one.
    Of these 80 % become MASK, 10 % a token drawn from all that are not special, and 10 % stay as
    they are (Devlin et al. 2019, appendix A.1).
    """
    ids = np.asarray(ids)
    ordinary = np.setdiff1d(np.arange(vocab_size), special_ids)
    if not ordinary.size:
        raise InputError(f"all {vocab_size} tokens are special", "there is nothing to hide")
    # The tokens with the lowest draws are chosen; special ones come last.
    draws = np.where(np.isin(ids, special_ids), np.inf, rng.random(ids.shape))
    real = np.isfinite(draws).sum(axis=1, keepdims=True)
    count = np.minimum(real, np.maximum(1, np.rint(rate * real)))
    chosen = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1) < count
    labels = np.where(chosen, ids, IGNORE)
    fate = rng.random(ids.shape)
    others = rng.choice(ordinary, ids.shape)
    hidden = np.where(chosen & (fate < 0.8), mask_id, ids)
    hidden = np.where(chosen & (fate >= 0.8) & (fate < 0.9), others, hidden)
    return hidden, labels
