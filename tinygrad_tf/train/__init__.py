"""Training: optimizer, schedule, batches, the loop, checkpoints, whole runs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.train.batches import Batch
    from tinygrad_tf.train.experiment import Experiment
    from tinygrad_tf.train.optim import AdamW
    from tinygrad_tf.train.options import TrainOptions
    from tinygrad_tf.train.trainer import TrainConfig, Trainer

__all__ = [
    "AdamW",
    "Batch",
    "Experiment",
    "TrainConfig",
    "TrainOptions",
    "Trainer",
]

_HOMES = {
    "AdamW": "optim",
    "Batch": "batches",
    "Experiment": "experiment",
    "TrainConfig": "trainer",
    "TrainOptions": "options",
    "Trainer": "trainer",
}


def __getattr__(name: str) -> Any:
    # Modules of this package import one another; only what is asked for is loaded.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tinygrad_tf.train.{_HOMES[name]}"), name)
