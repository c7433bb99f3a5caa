"""What training tells as it goes: plain records, for a display, a file or a notebook."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Event:
    """One thing that happened; losses are in nats per token, times in seconds."""

    event: ClassVar[str] = ""

    def as_json(self) -> dict[str, Any]:
        """The record as a JSON object, its kind under "event"."""
        return {"event": self.event, **asdict(self)}


@dataclass(frozen=True)
class PlanEvent(Event):
    """What is going to be trained, on what, and the lines to compare its loss with."""

    event: ClassVar[str] = "plan"
    run: str
    preset: str
    params: int
    tokens_train: int
    tokens_val: int
    vocab_size: int
    epochs: float
    flops: int
    memory_bytes: int
    references: dict[str, float | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepEvent(Event):
    """One optimizer step; `loss` is that of its own batch, with dropout."""

    event: ClassVar[str] = "step"
    step: int
    loss: float
    lr: float
    grad_norm: float
    tokens: int
    tokens_per_second: float
    elapsed: float


@dataclass(frozen=True)
class EvalEvent(Event):
    """The loss of the whole validation split and of a fixed part of the training split."""

    event: ClassVar[str] = "eval"
    step: int
    train_loss: float
    val_loss: float
    best_val_loss: float
    best_step: int
    elapsed: float


@dataclass(frozen=True)
class CheckpointEvent(Event):
    """Everything was saved."""

    event: ClassVar[str] = "checkpoint"
    step: int
    path: str


@dataclass(frozen=True)
class WarningEvent(Event):
    """Something to think about; training goes on."""

    event: ClassVar[str] = "warning"
    step: int
    message: str


@dataclass(frozen=True)
class DoneEvent(Event):
    """The end: reason is "steps", "time-limit", "early-stop" or "interrupted"."""

    event: ClassVar[str] = "done"
    run: str
    steps: int
    reason: str
    val_loss: float
    val_bits_per_char: float | None
    val_bits_per_byte: float | None
    floor_bits_per_char: float | None
    best_val_loss: float
    best_step: int
    elapsed: float
