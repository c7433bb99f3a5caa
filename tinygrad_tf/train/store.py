"""A trainer's state on disk: all that is needed to go on exactly where it stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.run_directory import Checkpoint, RunDirectory
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.trainer import Progress, Trainer


class RunStore:
    """Keeps a trainer's checkpoints and metrics in a run's directory."""

    def __init__(self, directory: RunDirectory, text_sha256: str, tokenizer_sha256: str) -> None:
        self.directory = directory
        self.hashes = {"text_sha256": text_sha256, "tokenizer_sha256": tokenizer_sha256}

    def require_same_origin(self, state: Mapping[str, Any]) -> None:
        """Raise InputError unless a checkpoint was made from this text and tokenizer."""
        for name, now in self.hashes.items():
            if state[name] != now:
                what = name.removesuffix("_sha256")
                raise InputError(
                    f"the {what} of {self.directory.path} is not the one it was trained with "
                    f"(sha256 {now[:12]}, was {state[name][:12]})",
                    f"restore the {what}, or start a new run with another `out`",
                )

    def save(self, trainer: Trainer, best: bool) -> str:
        """Save weights, optimizer, random states and position as one checkpoint."""
        progress = asdict(trainer.progress)
        state = {
            **self.hashes,
            "step": trainer.progress.step,
            # JSON has no infinity; a loss that was not measured yet is null.
            "progress": {n: None if v == math.inf else v for n, v in progress.items()},
            "optimizer_steps": trainer.optimizer.steps,
            "batches": trainer.batches.state(),
            "dropout_rng": trainer.model.dropout_rng.bit_generator.state,
            "numpy": np.__version__,
        }
        path = self.directory.save_checkpoint(
            trainer.progress.step,
            trainer.model.file_tensors(),
            trainer.optimizer.state_dict(),
            state,
            best=best,
        )
        return str(path)

    def restore(self, trainer: Trainer) -> None:
        """Put a trainer where the latest checkpoint was saved, and drop the metrics after it.

        Raises InputError where the checkpoint was made from another text or tokenizer.
        """
        checkpoint = self.directory.load_checkpoint()
        self.require_same_origin(checkpoint.state)
        _restore(trainer, checkpoint)
        self.directory.truncate_metrics(trainer.progress.step)

    def log(self, event: Event) -> None:
        """Append an event to metrics.jsonl."""
        self.directory.append_metrics(event.as_json())


def _restore(trainer: Trainer, checkpoint: Checkpoint) -> None:
    state = checkpoint.state
    trainer.model.load_tensors(checkpoint.model)
    trainer.optimizer.load_state_dict(checkpoint.optimizer, state["optimizer_steps"])
    trainer.batches.restore(state["batches"])
    trainer.model.dropout_rng.bit_generator.state = state["dropout_rng"]
    progress = state["progress"].items()
    values: dict[str, Any] = {n: math.inf if v is None else v for n, v in progress}
    trainer.progress = Progress(**values)
    trainer.saved_at = trainer.progress.step
