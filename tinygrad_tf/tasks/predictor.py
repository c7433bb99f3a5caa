"""A trained model ready to use, with the tokenizer and the settings that its run has kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from tinygrad_tf.nn.module import Module
from tinygrad_tf.train.stored_run import StoredRun
from tinygrad_tf.train.task import Task


class Predictor(ABC):
    """A trained model of a kind of task; `load` makes it of a run's directory."""

    task: ClassVar[type[Task]]
    model: Module

    def __init__(self, model: Module) -> None:
        self.model = model
        model.eval()

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "best", **settings: Any) -> Self:
        """Load the trained model from a run directory; settings: as in the constructor.

        weights: "best" by validation loss, or "last". Raises InputError where the directory is
        not a whole run of the task.
        """
        run = cls.task.open_run(run_dir)
        predictor = cls.from_run(run, **settings)
        predictor.model.load_tensors(run.weights(weights))
        return predictor

    @classmethod
    @abstractmethod
    def from_run(cls, run: StoredRun) -> Self:
        """Make the model, without its weights, and what belongs to it, of what a run has kept."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"
