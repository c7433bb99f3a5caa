"""What defines an encoder, or an encoder with a decoder; known without NumPy, so help is fast."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Self

from tinygrad_tf.errors import InputError

CHOICES = {
    "activation": ("relu", "gelu", "gelu_tanh"),
    "norm": ("post", "pre"),
    "positions": ("sinusoidal", "learned"),
    "pooling": ("mean", "cls"),
}


@dataclass(frozen=True, kw_only=True)
class SequenceConfig:
    """What the encoder-only model and the encoder-decoder have in common.

    d_ff: width inside the feed-forward, by default 4 d_model. d_k, d_v: widths of one head, by
    default d_model / n_heads. norm: "post" (Vaswani et al. 2017), or "pre" with a norm at the end
    of each stack. max_length: the positions that there are, of the source and of the target.
    scale_embedding: multiply token vectors by √d_model (section 3.4). src_features: the source is
    not ids but vectors of this width, projected to d_model. init_std: of tables and matrices at the
    start, by default 0.7 / √d_model.
    """

    d_model: int = 128
    n_heads: int = 4
    d_ff: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    norm: str = "post"
    activation: str = "relu"
    positions: str = "sinusoidal"
    max_length: int = 64
    dropout: float = 0.0
    bias: bool = True
    qkv_bias: bool = False
    scale_embedding: bool = False
    src_features: int | None = None
    pad_id: int = 0
    layer_norm_eps: float = 1e-5
    init_std: float | None = None

    SIZES: ClassVar[tuple[str, ...]] = ("d_model", "n_heads", "max_length")
    OPTIONAL_SIZES: ClassVar[tuple[str, ...]] = ("d_ff", "d_k", "d_v", "src_features")
    FLAGS: ClassVar[tuple[str, ...]] = ("bias", "qkv_bias", "scale_embedding")

    def __post_init__(self) -> None:
        for name in self.SIZES + self.OPTIONAL_SIZES:
            value = getattr(self, name)
            if value is None and name in self.OPTIONAL_SIZES:
                continue
            if type(value) is not int or value < 1:
                raise InputError(f"{name} is {value!r}", "give a whole number of at least 1")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.n_heads:
            fitting = max(1, self.d_model // self.n_heads) * self.n_heads
            raise InputError(
                f"d_model is {self.d_model}, which {self.n_heads} heads cannot share equally",
                f"make it {fitting}, or give both d_k and d_v",
            )
        for name, choices in CHOICES.items():
            if getattr(self, name, choices[0]) not in choices:
                raise InputError(
                    f"{name} {getattr(self, name)!r} is not known",
                    f"choose one of {', '.join(choices)}",
                )
        for name in self.FLAGS:
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}", "give true or false")
        self._check_fraction("dropout")
        for name in ("layer_norm_eps", "init_std"):
            value = getattr(self, name)
            if value is None and name == "init_std":
                continue
            if not _is_number(value) or not 0.0 < value < math.inf:
                raise InputError(f"{name} is {value!r}", "give a small positive number")

    def _check_fraction(self, name: str) -> None:
        value = getattr(self, name)
        if not _is_number(value) or not 0.0 <= value < 1.0:
            raise InputError(f"{name} is {value!r}", "give a number from 0 up to below 1")

    def _check_ids(self, names: tuple[str, ...], vocab_size: int) -> None:
        """The ids that mean something must be in the vocabulary, and differ."""
        ids = {name: getattr(self, name) for name in names}
        for name, value in ids.items():
            if type(value) is not int or not 0 <= value < vocab_size:
                raise InputError(
                    f"{name} is {value!r} in a vocabulary of {vocab_size}",
                    f"give a whole number from 0 to {vocab_size - 1}",
                )
        if len(set(ids.values())) < len(ids):
            told = ", ".join(f"{name}={value}" for name, value in ids.items())
            raise InputError(f"special tokens share an id: {told}", "give each its own")

    @property
    def feed_forward_width(self) -> int:
        """The width inside the feed-forward."""
        return self.d_ff or 4 * self.d_model

    @property
    def std(self) -> float:
        """The standard deviation of tables and matrices at the start."""
        return self.init_std or 0.7 / math.sqrt(self.d_model)

    def as_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """The reverse of `as_dict`; raises InputError for unknown or missing fields."""
        known = {f.name: f for f in fields(cls)}
        unknown = sorted(set(given) - set(known))
        missing = [n for n, f in known.items() if f.default is MISSING and n not in given]
        if unknown or missing:
            fault = f"unknown fields {', '.join(unknown)}" if unknown else f"no {missing[0]}"
            raise InputError(f"this model configuration has {fault}", "was it written by tt?")
        return cls(**given)


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(SequenceConfig):
    """The shape of an encoder-decoder; raises InputError where the numbers do not fit together.

    src_vocab_size: None where `src_features` makes the source dense. share_embeddings: one table
    for source and target tokens. tie_output: the logits use the target's table (section 3.4).
    pad_id is the same on both sides; start_id and end_id are the target's. label_smoothing: the
    probability that training spreads over all tokens (section 5.4).
    """

    tgt_vocab_size: int
    src_vocab_size: int | None = None
    n_encoder_layers: int = 2
    n_decoder_layers: int = 2
    share_embeddings: bool = False
    tie_output: bool = False
    start_id: int = 1
    end_id: int = 2
    label_smoothing: float = 0.0

    SIZES: ClassVar[tuple[str, ...]] = (
        *SequenceConfig.SIZES,
        "tgt_vocab_size",
        "n_encoder_layers",
        "n_decoder_layers",
    )
    OPTIONAL_SIZES: ClassVar[tuple[str, ...]] = (*SequenceConfig.OPTIONAL_SIZES, "src_vocab_size")
    FLAGS: ClassVar[tuple[str, ...]] = (*SequenceConfig.FLAGS, "share_embeddings", "tie_output")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_source(self.src_vocab_size, self.src_features, "src_vocab_size")
        if self.share_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise InputError(
                f"{self.src_vocab_size} source and {self.tgt_vocab_size} target tokens cannot "
                "share one table of embeddings",
                "train one tokenizer on both sides, or leave share_embeddings out",
            )
        self._check_ids(("pad_id", "start_id", "end_id"), self.tgt_vocab_size)
        if self.src_vocab_size is not None:
            self._check_ids(("pad_id",), self.src_vocab_size)
        self._check_fraction("label_smoothing")


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(SequenceConfig):
    """The shape of an encoder-only model; raises InputError where the numbers do not fit together.

    n_outputs: the classes of a classifier, or the numbers that a regressor gives. pooling: "mean"
    over real positions, or "cls", the vector of a token cls_id that is put before each source
    (Devlin et al. 2019). mask_id: what stands for a hidden token in masked-token training.
    """

    vocab_size: int | None = None
    n_layers: int = 2
    n_outputs: int = 1
    pooling: str = "mean"
    cls_id: int | None = None
    mask_id: int | None = None

    SIZES: ClassVar[tuple[str, ...]] = (*SequenceConfig.SIZES, "n_layers", "n_outputs")
    OPTIONAL_SIZES: ClassVar[tuple[str, ...]] = (*SequenceConfig.OPTIONAL_SIZES, "vocab_size")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_source(self.vocab_size, self.src_features, "vocab_size")
        if self.pooling == "cls" and (self.cls_id is None or self.vocab_size is None):
            raise InputError(
                "pooling is cls, which needs a vocabulary and the id of its CLS token",
                "give cls_id, or choose mean",
            )
        if self.vocab_size is not None:
            special = ("cls_id", "mask_id")
            given = tuple(name for name in special if getattr(self, name) is not None)
            self._check_ids(("pad_id", *given), self.vocab_size)


def check_source(vocab_size: int | None, src_features: int | None, name: str) -> None:
    """Raise InputError unless the source is either of ids or of vectors."""
    if (vocab_size is None) == (src_features is None):
        fault = "neither" if vocab_size is None else "both"
        raise InputError(
            f"of {name} and src_features {fault} is given",
            f"give {name} for token ids, src_features for vectors",
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
