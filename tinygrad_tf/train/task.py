"""A Task is whatever is trained: its model, its batches, and how it is judged beyond its loss."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

import tinygrad_tf
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.text.tokens import TokenFile
from tinygrad_tf.train.batches import Batches, Examples, evaluation_batches, training_batches
from tinygrad_tf.train.events import PlanEvent
from tinygrad_tf.train.parallel import Learner
from tinygrad_tf.train.recipe import Recipe
from tinygrad_tf.train.stored_run import DATA, Files, StoredRun
from tinygrad_tf.train.trainer import TextMeasure

# The longest document that a context is made for by default.
LONGEST_CONTEXT = 256


class Task(ABC):
    """A model, its training and validation batches, and the files that a run keeps of them.

    name: what a run's config.json calls the task; unit: the unit of its loss. token_files: its
    data are token files, which `build_data` writes and which are made again where they are
    missing. A task sets the attributes below; `files` are those that a run keeps, by name.
    """

    name: ClassVar[str] = ""
    token_files: ClassVar[bool] = False
    unit: str = "nats per token"

    recipe: Recipe
    files: Files = MappingProxyType({})
    notes: Sequence[str] = ()

    @property
    @abstractmethod
    def model(self) -> Learner:
        """The model that is trained."""

    @abstractmethod
    def batches(self) -> Batches:
        """Return the training batches, from their beginning."""

    @abstractmethod
    def validation(self) -> Iterable[Examples]:
        """Yield the batches of the validation split, each time the same ones."""

    def training_sample(self) -> Iterable[Examples]:
        """Yield the batches whose loss is reported as the training loss."""
        return self.validation()

    @abstractmethod
    def plan(self, run: str) -> PlanEvent:
        """Describe what will be trained, for the run of that name."""

    def references(self) -> dict[str, float | None]:
        """Return losses to compare with, by name."""
        return {}

    def evaluate(self) -> dict[str, Any] | None:
        """Return figures of the model as it is, beyond its loss; None for a task without any."""
        return None

    def measure(self) -> TextMeasure:
        """Return what converts the validation loss to bits per character, where it can be."""
        return TextMeasure()

    def memory_bytes(self) -> int | None:
        """Return about how much memory training needs; None where it is not known."""
        return None

    @property
    def title(self) -> str:
        """A name for the run's directory."""
        return self.recipe.title

    def build_data(self, folder: Path) -> None:  # noqa: B027
        """Write the token files into a folder, where the task has such files."""

    def open_data(self, folder: Path | None) -> None:  # noqa: B027
        """Read the token files from a folder from now on; None closes them."""

    @classmethod
    def create(cls, *data: Any, **settings: Any) -> Self:
        """Make the task of a new run, from its data, its own options, and TrainOptions'."""
        raise NotImplementedError(f"{cls.__name__} is not made for a new run")

    @classmethod
    def from_run(cls, run: StoredRun) -> Self:
        """Make the task again of what its run has kept."""
        raise NotImplementedError(f"{cls.__name__} keeps no run")

    @classmethod
    def open_run(cls, run_dir: str | Path, *, data: bool = False, **settings: Any) -> StoredRun:
        """Open a run of this task; see `StoredRun.open`."""
        return StoredRun.open(run_dir, cls.name, data=data, token_files=cls.token_files, **settings)

    def config_json(self, files_sha256: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the content of config.json, but for its own digest."""
        block = {
            "schema_version": 1,
            "version": tinygrad_tf.__version__,
            "task": self.name,
            "model": self.recipe.model,
            "experiment": self.recipe.as_dict(),
            "files_sha256": files_sha256,
        }
        return {"model_type": "tinygrad_tf", "architectures": [], "tt": block}

    @property
    def text_sha256(self) -> str:
        """The digest of the data; a checkpoint made from other data is refused."""
        return sha256_of_files(self.files, data=True)

    @property
    def tokenizer_sha256(self) -> str:
        """The digest of the tokenizer, or of all other files."""
        return sha256_of_files(self.files, data=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {self.recipe.training['steps']:,} steps)"


def longest_document(*splits: TokenFile) -> int:
    """The number of targets in the longest document, but at most LONGEST_CONTEXT."""
    lengths = [int(np.diff(split.starts).max()) for split in splits if split.starts is not None]
    return min(LONGEST_CONTEXT, max(lengths))


class TokenTask(Task):
    """A model of tokens: random windows of a text, or whole documents, are its batches.

    config: the shape of the GPT.
    """

    # The training loss that is reported is that of about so many tokens, from all over the text.
    SAMPLE_TARGETS: ClassVar[int] = 16_384

    config: GPTConfig

    @property
    @abstractmethod
    def train(self) -> TokenFile:
        """The training split."""

    @property
    @abstractmethod
    def val(self) -> TokenFile:
        """The validation split."""

    @property
    def evaluation_rows(self) -> int:
        """The number of rows in a batch of an evaluation."""
        return self.recipe.batch_size

    def batches(self) -> Batches:
        """Return the training batches, from their beginning."""
        recipe = self.recipe
        return training_batches(self.train, self.config.block_size, recipe.batch_size, recipe.seed)

    def validation(self) -> Iterable[Examples]:
        """Yield the batches of the validation split, each time the same ones."""
        return evaluation_batches(self.val, self.config.block_size, self.evaluation_rows)

    def training_sample(self) -> Iterable[Examples]:
        """Yield some of the training split, from all over it."""
        every = max(1, self.train.targets // self.SAMPLE_TARGETS)
        return evaluation_batches(self.train, self.config.block_size, self.evaluation_rows, every)

    def memory_bytes(self) -> int:
        """Return about how much memory training needs."""
        return self.config.memory_bytes(self.recipe.batch_size)

    def targets_per_step(self) -> int:
        """Return how many tokens a step is trained on, about; documents are mostly shorter than
        the context."""
        if self.train.starts is not None:
            documents = max(1, len(self.train.starts) - 1)
            return round(self.recipe.batch_size * self.train.targets / documents)
        grad_accum = self.recipe.config.grad_accum
        return self.recipe.batch_size * self.config.block_size * grad_accum

    def plan(self, run: str) -> PlanEvent:
        """Describe what will be trained, with the number of tokens and the cost."""
        total = self.targets_per_step() * self.recipe.config.steps
        return PlanEvent(
            run=run,
            params=self.config.parameter_count(),
            epochs=total / self.train.targets,
            references=self.references(),
            notes=list(self.notes),
            config=self.config.as_dict() | self.recipe.training | self.recipe.shared(),
            facts={
                "preset": self.recipe.options.get("preset", ""),
                "tokens_train": self.train.targets,
                "tokens_val": self.val.targets,
                "vocab_size": self.config.vocab_size,
                "flops": total * self.config.flops_per_token(),
                "memory_bytes": self.memory_bytes(),
            },
        )


def sha256_of_files(files: Files, *, data: bool) -> str:
    """SHA-256 of a task's data, or of its other files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if name.startswith(DATA) == data:
            digest.update(f"{name}\0{len(files[name])}\0".encode())
            digest.update(files[name])
    return digest.hexdigest()
