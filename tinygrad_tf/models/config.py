"""The configurations of all models, in the field's names; imported without NumPy for fast help."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Self

from tinygrad_tf.errors import InputError

CHOICES = {
    "activation": ("relu", "gelu", "gelu_tanh"),
    "norm": ("pre", "post"),
    "positions": ("learned", "sinusoidal"),
    "pooling": ("mean", "cls"),
}
FRACTIONS = ("dropout", "label_smoothing")


class ModelConfig:
    """The checks that all configurations share, and their way to and from JSON.

    The type of a field says what it may hold: `int` a whole number of at least 1 (token ids are
    compared with the vocabulary instead), `bool` true or false, `str` one of CHOICES, `float` a
    positive number, or a number from 0 up to below 1 for FRACTIONS.
    """

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is None and str(field.type).endswith("None"):
                continue
            if not field.name.endswith("_id"):
                self._check(field.name, str(field.type).split(" ")[0], value)

    def _check(self, name: str, kind: str, value: Any) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if kind == "str" and value not in CHOICES[name]:
            choices = ", ".join(CHOICES[name])
            raise InputError(f"{name} {value!r} is not known", f"choose one of {choices}")
        if kind == "int" and (type(value) is not int or value < 1):
            raise InputError(f"{name} is {value!r}", "give a whole number of at least 1")
        if kind == "bool" and type(value) is not bool:
            raise InputError(f"{name} is {value!r}", "give true or false")
        if kind == "float" and name in FRACTIONS:
            if not is_number or not 0.0 <= value < 1.0:
                raise InputError(f"{name} is {value!r}", "give a number from 0 up to below 1")
        elif kind == "float" and (not is_number or not 0.0 < value < math.inf):
            raise InputError(f"{name} is {value!r}", "give a small positive number")

    def _check_heads(self, width: str, heads: str, otherwise: str) -> None:
        """Raise InputError unless the heads share the width equally."""
        channels, count = getattr(self, width), getattr(self, heads)
        if channels % count:
            fitting = max(1, channels // count) * count
            raise InputError(
                f"{width} is {channels}, which {count} heads cannot share equally",
                f"use `{width}={fitting}`, or {otherwise}",
            )

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a configuration from `as_dict`; InputError for unknown or missing fields."""
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(values) - set(known))
        missing = [n for n, f in known.items() if f.default is MISSING and n not in values]
        if unknown or missing:
            fault = f"unknown fields {', '.join(unknown)}" if unknown else f"no {missing[0]}"
            raise InputError(f"this model configuration has {fault}", "was the file edited?")
        return cls(**values)


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """The shape of a GPT; raises InputError where the numbers do not fit together.

    d_ff: width inside the feed-forward, by default 4 n_embd. qkv_bias: by default as `bias`.
    positions: "learned" (GPT-2) or "sinusoidal" (Vaswani et al. 2017). norm: "pre" with a norm
    at the end (GPT-2), or "post" (2017). tie_weights: the output uses the token table.
    init_std: standard deviation of the initial weights; hidden_std: the same for the matrices in
    the blocks, by default init_std. GPT-2's 0.02 suits its width of 768; a narrow model learns
    faster from about 0.7 / √n_embd.
    """

    vocab_size: int
    block_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    d_ff: int | None = None
    dropout: float = 0.0
    bias: bool = True
    qkv_bias: bool | None = None
    activation: str = "gelu"
    norm: str = "pre"
    positions: str = "learned"
    tie_weights: bool = True
    head_bias: bool = False
    layer_norm_eps: float = 1e-5
    init_std: float = 0.02
    hidden_std: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_heads("n_embd", "n_head", f"an `n_head` that divides {self.n_embd}")

    @property
    def feed_forward_width(self) -> int:
        """The width inside the feed-forward."""
        return self.d_ff or 4 * self.n_embd

    def block_options(self) -> dict[str, Any]:
        """Return the arguments of `Block` that this configuration decides."""
        return {
            "d_model": self.n_embd,
            "n_head": self.n_head,
            "d_ff": self.feed_forward_width,
            "norm": self.norm,
            "activation": self.activation,
            "bias": self.bias,
            "qkv_bias": self.qkv_bias,
            "eps": self.layer_norm_eps,
        }

    def parameter_count(self) -> int:
        """Return the number of parameters of a GPT of this shape, without building it."""
        c, inner, bias = self.n_embd, self.feed_forward_width, int(self.bias)
        qkv_bias = bias if self.qkv_bias is None else int(self.qkv_bias)
        norm = c * (1 + bias)
        attention = 3 * c * (c + qkv_bias) + c * (c + bias)
        feed_forward = inner * (c + bias) + c * (inner + bias)
        tables = self.vocab_size * c + self.block_size * c * (self.positions == "learned")
        head = 0 if self.tie_weights else self.vocab_size * c
        head += self.vocab_size * int(self.head_bias)
        blocks = self.n_layer * (attention + feed_forward + 2 * norm)
        return tables + blocks + norm * (self.norm == "pre") + head

    def flops_per_token(self) -> int:
        """Return the FLOPs to train on one token: 6 N + 12 L C T, with N without positions."""
        counted = self.parameter_count()
        if self.positions == "learned":
            counted -= self.block_size * self.n_embd
        return 6 * counted + 12 * self.n_layer * self.n_embd * self.block_size

    def memory_bytes(self, batch_size: int) -> int:
        """Estimate the memory of float32 training: parameters, optimizer, activations, logits."""
        tokens = batch_size * self.block_size
        scores = 3 * batch_size * self.n_head * self.block_size**2
        activations = self.n_layer * (16 * tokens * self.n_embd + scores)
        return 16 * self.parameter_count() + 4 * (activations + 3 * tokens * self.vocab_size)


@dataclass(frozen=True, kw_only=True)
class SequenceConfig(ModelConfig):
    """The fields that the encoder-only model and the encoder-decoder share.

    d_ff: width inside the feed-forward, by default 4 d_model. d_k, d_v: widths of one head, by
    default d_model / n_heads. norm: "post" (Vaswani et al. 2017), or "pre" with a norm at the end
    of each stack. max_length: the largest number of positions, of the source and of the target.
    scale_embedding: multiply token vectors by √d_model (section 3.4). src_features: the width
    of the source's vectors, where it is not ids; they are projected to d_model. init_std: standard
    deviation of the initial tables and matrices, by default 0.7 / √d_model.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_k is None or self.d_v is None:
            self._check_heads("d_model", "n_heads", "give both `d_k` and `d_v`")

    def _check_ids(self, names: tuple[str, ...], vocab_size: int) -> None:
        """Raise InputError unless the special ids are in the vocabulary and differ."""
        ids = {name: getattr(self, name) for name in names}
        for name, value in ids.items():
            if type(value) is not int or not 0 <= value < vocab_size:
                raise InputError(
                    f"{name} is {value!r} in a vocabulary of {vocab_size}",
                    f"give a whole number from 0 to {vocab_size - 1}",
                )
        if len(set(ids.values())) < len(ids):
            listed = ", ".join(f"{name}={value}" for name, value in ids.items())
            raise InputError(f"special tokens share an id: {listed}", "give each its own")

    @property
    def feed_forward_width(self) -> int:
        """The width inside the feed-forward."""
        return self.d_ff or 4 * self.d_model

    @property
    def std(self) -> float:
        """The standard deviation of the initial tables and matrices."""
        return self.init_std or 0.7 / math.sqrt(self.d_model)

    def block_options(self) -> dict[str, Any]:
        """Return the arguments of `Block` that this configuration decides."""
        return {
            "d_model": self.d_model,
            "n_head": self.n_heads,
            "d_ff": self.feed_forward_width,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "norm": self.norm,
            "activation": self.activation,
            "bias": self.bias,
            "qkv_bias": self.qkv_bias,
            "eps": self.layer_norm_eps,
        }


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_source(self.src_vocab_size, self.src_features, "src_vocab_size")
        if self.share_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise InputError(
                f"{self.src_vocab_size} source and {self.tgt_vocab_size} target tokens cannot "
                "share one table of embeddings",
                "train one tokenizer on both sides, or leave out `share_embeddings`",
            )
        self._check_ids(("pad_id", "start_id", "end_id"), self.tgt_vocab_size)
        if self.src_vocab_size is not None:
            self._check_ids(("pad_id",), self.src_vocab_size)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(SequenceConfig):
    """The shape of an encoder-only model; raises InputError where the numbers do not fit together.

    n_outputs: the classes of a classifier, or the numbers that a regressor gives. pooling: "mean"
    over real positions, or "cls", the vector of a token cls_id that is put before each source
    (Devlin et al. 2019). mask_id: the id that replaces a hidden token in masked-token training.
    """

    vocab_size: int | None = None
    n_layers: int = 2
    n_outputs: int = 1
    pooling: str = "mean"
    cls_id: int | None = None
    mask_id: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_source(self.vocab_size, self.src_features, "vocab_size")
        if self.pooling == "cls" and (self.cls_id is None or self.vocab_size is None):
            raise InputError(
                "pooling is cls, which needs a vocabulary and the id of its CLS token",
                "give `cls_id`, or use `pooling=mean`",
            )
        if self.vocab_size is not None:
            special = tuple(n for n in ("cls_id", "mask_id") if getattr(self, n) is not None)
            self._check_ids(("pad_id", *special), self.vocab_size)


def check_source(vocab_size: int | None, src_features: int | None, name: str) -> None:
    """Raise InputError unless the source is either ids or vectors."""
    if (vocab_size is None) == (src_features is None):
        fault = "neither" if vocab_size is None else "both"
        raise InputError(
            f"of {name} and src_features {fault} is given",
            f"give `{name}` for token ids, `src_features` for vectors",
        )
