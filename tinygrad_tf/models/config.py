"""What defines a GPT, in the field's names; known without NumPy, so that help is fast."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT; raises InputError where the numbers do not fit together.

    d_ff: width inside the feed-forward, by default 4 n_embd. qkv_bias: by default as `bias`.
    positions: "learned" (GPT-2) or "sinusoidal" (Vaswani et al. 2017). norm: "pre" with a norm
    at the end (GPT-2), or "post" (2017). tie_weights: the output uses the token table.
    init_std: of the weights at the start; hidden_std: of the matrices inside the blocks, by
    default the same. GPT-2's 0.02 suits its width of 768; a narrow model learns faster from
    about 0.7 / √n_embd.
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
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is {value!r}", "give a whole number of at least 1")
        if self.d_ff is not None and (type(self.d_ff) is not int or self.d_ff < 1):
            raise InputError(f"d_ff is {self.d_ff!r}", "give a whole number of at least 1")
        if self.n_embd % self.n_head:
            fitting = max(1, self.n_embd // self.n_head) * self.n_head
            raise InputError(
                f"n_embd is {self.n_embd}, which {self.n_head} heads cannot share equally",
                f"use --n-embd {fitting}, or an --n-head that divides {self.n_embd}",
            )
        if not _is_number(self.dropout) or not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout is {self.dropout!r}", "give a number from 0 up to below 1")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{name} {getattr(self, name)!r} is not known",
                    f"choose one of {', '.join(choices)}",
                )
        for name in ("bias", "qkv_bias", "tie_weights", "head_bias"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "qkv_bias" and value is None):
                raise InputError(f"{name} is {value!r}", "give true or false")
        for name in ("layer_norm_eps", "init_std", "hidden_std"):
            value = getattr(self, name)
            if value is None and name == "hidden_std":
                continue
            if not _is_number(value) or not 0.0 < value < float("inf"):
                raise InputError(f"{name} is {value!r}", "give a small positive number")

    @property
    def feed_forward_width(self) -> int:
        """The width inside the feed-forward."""
        return self.d_ff or 4 * self.n_embd

    def parameter_count(self) -> int:
        """How many numbers a GPT of this shape learns, without building it."""
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
        """Floating-point operations to train on one token: 6 N + 12 L C T, N without positions."""
        counted = self.parameter_count()
        if self.positions == "learned":
            counted -= self.block_size * self.n_embd
        return 6 * counted + 12 * self.n_layer * self.n_embd * self.block_size

    def memory_bytes(self, batch_size: int) -> int:
        """A rule of thumb for training in float32: parameters, optimizer, activations, logits."""
        tokens = batch_size * self.block_size
        scores = 3 * batch_size * self.n_head * self.block_size**2
        activations = self.n_layer * (16 * tokens * self.n_embd + scores)
        return 16 * self.parameter_count() + 4 * (activations + 3 * tokens * self.vocab_size)

    def as_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> GPTConfig:
        """The reverse of `as_dict`; raises InputError for unknown or missing fields."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown or "vocab_size" not in given:
            fault = f"unknown fields {', '.join(unknown)}" if unknown else "no vocab_size"
            raise InputError(f"this model configuration has {fault}", "was it written by tt?")
        try:
            return cls(**given)
        except TypeError as error:
            raise InputError(f"this model configuration is malformed: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


CHOICES = {
    "activation": ("relu", "gelu", "gelu_tanh"),
    "norm": ("pre", "post"),
    "positions": ("learned", "sinusoidal"),
}
