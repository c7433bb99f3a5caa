"""Training: optimizer, schedule, batches, the loop, checkpoints, whole runs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.train.batches import Batch
    from tinygrad_tf.train.config import TrainConfig
    from tinygrad_tf.train.optim import AdamW
    from tinygrad_tf.train.recipe import TrainOptions
    from tinygrad_tf.train.run import Run
    from tinygrad_tf.train.task import Task
    from tinygrad_tf.train.trainer import Trainer

__all__ = [
    "AdamW",
    "Batch",
    "Run",
    "Task",
    "TrainConfig",
    "TrainOptions",
    "Trainer",
]

_HOMES = {
    "AdamW": "optim",
    "Batch": "batches",
    "Run": "run",
    "Task": "task",
    "TrainConfig": "config",
    "TrainOptions": "recipe",
    "Trainer": "trainer",
}


def __getattr__(name: str) -> Any:
    # Only what is needed is loaded.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tinygrad_tf.train.{_HOMES[name]}"), name)
