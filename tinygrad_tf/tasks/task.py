"""Training on examples: whatever has a model, examples and figures of its own is a Task.

A task is made of a recipe and of files, and of nothing else: those that were prepared for a new
run, or those that a run has kept. So a run knows all that it needs, and goes on bit for bit.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.tasks.examples import ExampleSet
from tinygrad_tf.train.integrity import intact_block
from tinygrad_tf.train.parallel import Learner, default_threads
from tinygrad_tf.train.trainer import TrainConfig

Files = Mapping[str, bytes]

DATA = "data/"  # files that only training needs are named so


@dataclass(frozen=True)
class TaskRecipe:
    """A run's options in full, as they are kept in its config.json.

    model: the model's configuration; training: fields of TrainConfig; options: the task's own.
    """

    title: str
    seed: int
    threads: int
    batch_size: int
    model: dict[str, Any]
    training: dict[str, Any]
    options: dict[str, Any]

    def __post_init__(self) -> None:
        for name in ("batch_size", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", "give at least 1")

    def as_dict(self) -> dict[str, Any]:
        """Every field by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TaskRecipe:
        """The reverse of `as_dict`; raises InputError where config.json was altered."""
        try:
            recipe = cls(**given)
            TrainConfig(**recipe.training)
        except TypeError as error:
            raise InputError(
                f'the "experiment" in config.json is malformed: {error}', "was it edited?"
            ) from None
        return recipe


@dataclass(frozen=True)
class TaskOptions:
    """What every training on examples can be asked; None leaves it to the task.

    model and training: fields of the model's configuration and of TrainConfig. out: the run's
    directory. time_limit: seconds. threads: how many share a batch, by default one per core.
    """

    out: Path | None = None
    force: bool = False
    seed: int | None = None
    threads: int | None = None
    batch_size: int | None = None
    model: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None

    def recipe(
        self,
        title: str,
        model: Mapping[str, Any],
        training: Mapping[str, Any],
        batch_size: int,
        options: Mapping[str, Any],
    ) -> TaskRecipe:
        """A recipe of a task's defaults and what was asked."""
        chosen = {**training, **_given(self.training)}
        if "learning_rate" in _given(self.training) and "min_lr" not in _given(self.training):
            chosen["min_lr"] = chosen["learning_rate"] / 10
        TrainConfig(**chosen)
        return TaskRecipe(
            title,
            1337 if self.seed is None else self.seed,
            self.threads or default_threads(),
            self.batch_size or batch_size,
            dict(model),
            chosen,
            dict(options),
        )

    def shape(self, **defaults: Any) -> dict[str, Any]:
        """Fields of a model's configuration: a task's defaults, then what was asked."""
        return {**defaults, **_given(self.model)}


def _given(fields: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (fields or {}).items() if value is not None}


class Task(ABC):
    """A model, what it learns from, and how it is judged beyond its loss.

    A kind of task says its name, that of its command (tt train-<name>), and the unit of its loss;
    its constructor sets the rest.
    """

    name: ClassVar[str]
    unit: str = "nats per token"

    recipe: TaskRecipe
    files: Files
    model: Learner
    training: ExampleSet
    validation: ExampleSet
    notes: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> Self:
        """The task of a recipe and of the files that it names."""

    @abstractmethod
    def evaluate(self) -> dict[str, Any]:
        """Figures of the model as it stands, on the examples held out."""

    def references(self) -> dict[str, float | None]:
        """Losses to compare with."""
        return {}


def sha256_of_files(files: Files, *, data: bool) -> str:
    """One digest of a task's data, or of its other files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if name.startswith(DATA) == data:
            digest.update(f"{name}\0{len(files[name])}\0".encode())
            digest.update(files[name])
    return digest.hexdigest()


@dataclass(frozen=True)
class OpenedRun:
    """A run on examples, its recipe and its files, each of them checked."""

    directory: RunDirectory
    recipe: TaskRecipe
    files: Files
    block: dict[str, Any]

    @classmethod
    def open(
        cls, run_dir: str | Path, task: str, *, data: bool = False, **options: Any
    ) -> OpenedRun:
        """Open a run of that task; with `data`, read also what only training needs.

        Raises InputError where it is no such run, or not as it was when it began.
        """
        directory = RunDirectory.open(run_dir, **options)
        block = intact_block(directory, task, data=data)
        files = {}
        for name in block["files_sha256"]:
            if data or not name.startswith(DATA):
                with atomic.reading(directory.path / name):
                    files[name] = (directory.path / name).read_bytes()
        return cls(directory, TaskRecipe.from_dict(block["experiment"]), files, block)

    def weights(self, which: str = "best") -> dict[str, Any]:
        """The weights of the checkpoint that is best by validation, or of the "last"."""
        if which not in ("last", "best"):
            raise InputError(f"there are no weights {which!r} of a run", "choose last or best")
        best = which == "best" and "best" in self.directory.checkpoint_steps()
        return self.directory.load_model("best" if best else "latest")
