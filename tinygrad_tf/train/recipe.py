"""The options of a training run, and the recipe that its config.json keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.train.config import DEFAULT_SEED, TrainConfig
from tinygrad_tf.train.parallel import default_threads

TRAIN_FIELDS = tuple(f.name for f in fields(TrainConfig))
MOST_THREADS = 256


@dataclass(frozen=True)
class TrainOptions:
    """The options that every kind of training shares; what is left out is the task's default.

    threads: how many share a batch, by default one per core; their number decides the last bits
    of the sums, so a run keeps it. model: fields of the model's configuration; training: fields
    of TrainConfig.
    """

    seed: int = DEFAULT_SEED
    threads: int = field(default_factory=default_threads)
    batch_size: int | None = None
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def sort(cls, config: type[Any], settings: Mapping[str, Any]) -> TrainOptions:
        """Sort keywords by what they set; `config` is the class of the model's configuration.

        A value of None leaves the setting out. Raises InputError for a name of no setting.
        """
        chosen = {name: value for name, value in settings.items() if value is not None}
        shared = {n: chosen.pop(n) for n in ("seed", "threads", "batch_size") if n in chosen}
        training = {name: chosen.pop(name) for name in TRAIN_FIELDS if name in chosen}
        unknown = sorted(chosen.keys() - {f.name for f in fields(config)})
        if unknown:
            raise InputError(
                f"there is no setting {', '.join(unknown)}",
                f"give fields of {config.__name__} and TrainConfig, seed, threads or batch_size",
            )
        return cls(**shared, model=chosen, training=training)

    def recipe(
        self,
        title: str,
        model: Mapping[str, Any],
        training: Mapping[str, Any],
        batch_size: int,
        options: Mapping[str, Any],
    ) -> Recipe:
        """Build a recipe from a task's defaults of TrainConfig's fields and from these options."""
        chosen = {**training, **self.training}
        # A task's end of the cosine belongs to its own peak.
        if "learning_rate" in self.training and "min_lr" not in self.training:
            chosen["min_lr"] = chosen["learning_rate"] / 10
        return Recipe(
            seed=self.seed,
            threads=self.threads,
            batch_size=batch_size if self.batch_size is None else self.batch_size,
            model=dict(model),
            training={name: chosen[name] for name in TRAIN_FIELDS if name in chosen},
            options=dict(options),
            title=title,
        )


@dataclass(frozen=True)
class Recipe:
    """The options of a run in full, as its config.json keeps them under "experiment".

    model: fields of the model's configuration; training: fields of TrainConfig; options: the
    task's own. title: a name for the run's directory; a language model has none, and its own
    options are fields of the file like the others, not under "options".
    """

    seed: int = DEFAULT_SEED
    threads: int = 1
    batch_size: int = 1
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    title: str = ""

    def __post_init__(self) -> None:
        for name in ("batch_size", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` is {getattr(self, name)}", "give at least 1")
        if self.threads > MOST_THREADS:
            raise InputError(
                f"`threads` is {self.threads}", "give about as many as there are cores"
            )
        TrainConfig(**self.training)  # a setting out of range is refused at once

    @property
    def config(self) -> TrainConfig:
        """The settings of the optimizer and its schedule."""
        return TrainConfig(**self.training)

    def shared(self) -> dict[str, int]:
        """Return the settings that neither the model nor TrainConfig has."""
        return {"batch_size": self.batch_size, "seed": self.seed, "threads": self.threads}

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name, ready for JSON."""
        record = asdict(self)
        if not self.title:
            del record["title"]
            record |= record.pop("options")
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Recipe:
        """Read what `as_dict` returned; raises InputError where config.json was altered."""
        try:
            if "title" in record:
                recipe = cls(**record)
            else:
                names = ("seed", "threads", "batch_size", "model", "training")
                options = {name: value for name, value in record.items() if name not in names}
                recipe = cls(**{name: record[name] for name in names}, options=options)
        except (TypeError, KeyError) as error:
            raise InputError(
                f'the "experiment" in config.json is malformed: {error}', "was it edited?"
            ) from None
        return recipe
