"""The records that training yields as it goes, for a display, a file or a notebook."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Event:
    """A record of something that happened; losses are in nats per target, times in seconds."""

    event: ClassVar[str] = ""

    def as_json(self) -> dict[str, Any]:
        """Return the record as a JSON object, its kind under "event"."""
        return {"event": self.event, **asdict(self)}


@dataclass(frozen=True)
class PlanEvent(Event):
    """The model and the data of a training, and the losses to compare its loss with.

    facts: figures of the task's data, such as the number of tokens or of examples; in JSON they are
    fields like the others.
    """

    event: ClassVar[str] = "plan"
    run: str
    params: int
    epochs: float
    references: dict[str, float | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the record as a JSON object, the facts beside the other fields."""
        record = super().as_json()
        del record["facts"]
        return record | self.facts


@dataclass(frozen=True)
class StepEvent(Event):
    """An optimizer step; `loss` is that of its own batch, with dropout."""

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
    """A problem that does not stop the training."""

    event: ClassVar[str] = "warning"
    step: int
    message: str


@dataclass(frozen=True)
class DoneEvent(Event):
    """The end: reason is "steps", "time-limit", "early-stop" or "interrupted".

    unit: the unit of the losses.
    """

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
    unit: str


@dataclass(frozen=True)
class ReportEvent(Event):
    """Figures of the best weights on examples that were not trained on."""

    event: ClassVar[str] = "report"
    step: int
    figures: dict[str, Any]
