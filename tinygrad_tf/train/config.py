"""The settings of a training run's optimizer and schedule. No NumPy is needed here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tinygrad_tf.errors import InputError
from tinygrad_tf.train.schedule import SCHEDULES

# The seed of every training run that is not given another.
DEFAULT_SEED = 1337


@dataclass(frozen=True)
class TrainConfig:
    """The settings of the optimizer and its schedule; raises InputError for numbers out of range.

    steps: optimizer steps; time_limit: seconds from the start or the resumption, or None. A step
    takes grad_accum batches. schedule: "cosine" down to min_lr, or "noam", both with learning_rate
    as their peak after the warm-up. grad_clip: the longest gradient norm, 0 for no clipping.
    early_stop: end after so many evaluations in a row without a better validation loss.
    """

    steps: int = 2000
    learning_rate: float = 1e-3
    min_lr: float = 1e-4
    warmup: int = 100
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    grad_accum: int = 1
    eval_every: int = 250
    checkpoint_every: int = 500
    early_stop: int | None = None
    time_limit: float | None = None
    schedule: str = "cosine"

    def __post_init__(self) -> None:
        for name in ("steps", "grad_accum", "eval_every", "checkpoint_every"):
            self._require(name, getattr(self, name) >= 1, "give a whole number of at least 1")
        self._require("warmup", self.warmup >= 0, "give 0 or more steps")
        self._require("schedule", self.schedule in SCHEDULES, f"choose {' or '.join(SCHEDULES)}")
        for name in ("learning_rate", "min_lr", "weight_decay", "grad_clip"):
            fine = 0.0 <= getattr(self, name) < math.inf
            self._require(name, fine, "give a finite number of at least 0")
        fine = self.min_lr <= self.learning_rate
        self._require("min_lr", fine, f"give at most the peak rate, {self.learning_rate:g}")
        for name in ("beta1", "beta2"):
            self._require(name, 0.0 <= getattr(self, name) < 1.0, "give 0 up to, not including, 1")
        stop = self.early_stop
        self._require("early_stop", stop is None or stop >= 1, "give at least 1 evaluation")
        limit = self.time_limit
        self._require("time_limit", limit is None or 0 < limit < math.inf, "give seconds above 0")

    def _require(self, name: str, fine: bool, remedy: str) -> None:
        if not fine:
            raise InputError(f"`{name}` is {getattr(self, name)}", remedy)
