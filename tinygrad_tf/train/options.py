"""What can be asked of a training run, and how a preset fills in what was not asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.presets import preset
from tinygrad_tf.train.parallel import default_threads
from tinygrad_tf.train.trainer import TrainConfig

MODEL_FIELDS = tuple(f.name for f in fields(GPTConfig) if f.name != "vocab_size")
TRAIN_FIELDS = tuple(f.name for f in fields(TrainConfig))

# Of a model that is trained further: its shape is given, but not how much it drops out.
CHANGEABLE = ("dropout",)
TUNING_RATE = 1e-4
VOCAB_SIZE = 512

CORPUS_PRESET = "default"
TEXT_PRESET = "nano-cpu"


@dataclass(frozen=True)
class TrainOptions:
    """Every option of a training run; None leaves it to the preset.

    texts: UTF-8 files, in order; none for the embedded corpus. out: the run's directory.
    lines: each line is a document of its own. tokenizer: "char", "byte", "bpe" (which learns
    `vocab_size` tokens from the text), or the path of a tokenizer's file. init_from: the directory
    of a model whose shape, weights and tokenizer to start from. time_limit: seconds. threads: how
    many share a batch, by default one per core; the sums they add up to are the run's for ever.
    """

    texts: tuple[Path, ...] = ()
    out: Path | None = None
    preset: str | None = None
    seed: int | None = None
    threads: int | None = None
    force: bool = False

    lines: bool | None = None
    tokenizer: str | None = None
    vocab_size: int | None = None
    init_from: Path | None = None
    val_fraction: float | None = None
    keep_newlines: bool = False

    n_layer: int | None = None
    n_head: int | None = None
    n_embd: int | None = None
    d_ff: int | None = None
    block_size: int | None = None
    dropout: float | None = None
    bias: bool | None = None
    qkv_bias: bool | None = None
    head_bias: bool | None = None
    activation: str | None = None
    norm: str | None = None
    positions: str | None = None
    tie_weights: bool | None = None
    init_std: float | None = None
    hidden_std: float | None = None
    layer_norm_eps: float | None = None

    steps: int | None = None
    time_limit: float | None = None
    checkpoint_every: int | None = None
    eval_every: int | None = None
    early_stop: int | None = None
    batch_size: int | None = None
    grad_accum: int | None = None
    learning_rate: float | None = None
    min_lr: float | None = None
    warmup: int | None = None
    schedule: str | None = None
    weight_decay: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    grad_clip: float | None = None

    def resolve(self) -> Recipe:
        """Fill in what was not asked; raises InputError for an unknown preset or bad numbers."""
        chosen = preset(self.preset or (TEXT_PRESET if self.texts else CORPUS_PRESET))
        asked = {name: value for name, value in asdict(self).items() if value is not None}
        if self.init_from is not None:
            self._require_its_own(asked)
            asked = {"learning_rate": TUNING_RATE} | asked
        shape = {} if self.init_from is not None else chosen.model
        training = chosen.training | asked
        tokenizer = training.get("tokenizer", "char")
        if self.vocab_size is not None and tokenizer != "bpe":
            raise InputError(
                f"--vocab-size {self.vocab_size} has no meaning with the tokenizer {tokenizer}",
                "it is for --tokenizer bpe",
            )
        return Recipe(
            preset=chosen.name,
            texts=tuple(str(Path(path).absolute()) for path in self.texts),
            seed=training.get("seed", 1337),
            threads=training.get("threads") or default_threads(),
            lines=training.get("lines", not self.texts),
            tokenizer=tokenizer,
            val_fraction=training.get("val_fraction", 0.1),
            keep_newlines=self.keep_newlines,
            batch_size=training["batch_size"],
            model={n: v for n, v in (shape | asked).items() if n in MODEL_FIELDS},
            training=_train_fields(training, asked),
            vocab_size=self.vocab_size or (VOCAB_SIZE if tokenizer == "bpe" else None),
            init_from=None if self.init_from is None else str(self.init_from.absolute()),
        )

    def _require_its_own(self, asked: Mapping[str, Any]) -> None:
        """A model to start from has its shape and tokenizer; InputError where others are asked."""
        for name in ("preset", "tokenizer", *MODEL_FIELDS):
            if name in asked and name not in CHANGEABLE:
                raise InputError(
                    f"--{name.replace('_', '-')} cannot be chosen with --init-from: "
                    f"the model of {self.init_from} has its own",
                    "leave it out",
                )


def _train_fields(training: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: training[name] for name in TRAIN_FIELDS if name in training}
    # A preset's end of the cosine belongs to its own peak.
    if "learning_rate" in asked and "min_lr" not in asked:
        chosen["min_lr"] = chosen["learning_rate"] / 10
    TrainConfig(**chosen)
    return chosen


@dataclass(frozen=True)
class Recipe:
    """A run's options in full, as they are kept in its config.json.

    model: fields of GPTConfig but for vocab_size, those that differ from `init_from`'s where
    there is one; training: fields of TrainConfig; vocab_size: how many tokens "bpe" learns.
    """

    preset: str
    texts: tuple[str, ...]
    seed: int
    threads: int
    lines: bool
    tokenizer: str
    val_fraction: float
    keep_newlines: bool
    batch_size: int
    model: dict[str, Any]
    training: dict[str, Any]
    vocab_size: int | None = None
    init_from: str | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", "give at least 1")
        if self.threads > 256:
            raise InputError(f"threads is {self.threads}", "give about as many as there are cores")

    def as_dict(self) -> dict[str, Any]:
        """Every field by name, ready for JSON."""
        return asdict(self) | {"texts": list(self.texts)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Recipe:
        """The reverse of `as_dict`; raises InputError where config.json was altered."""
        try:
            recipe = cls(**{**given, "texts": tuple(given["texts"])})
            TrainConfig(**recipe.training)
        except (TypeError, KeyError) as error:
            raise InputError(
                f'the "experiment" in config.json is malformed: {error}', "was it edited?"
            ) from None
        return recipe

    def title(self) -> str:
        """A short name for the run's directory."""
        return Path(self.texts[0]).stem if self.texts else "stories"
