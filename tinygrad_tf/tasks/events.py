"""What a run on examples tells beside the events of every training: its plan and its report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tinygrad_tf.train.events import DoneEvent, Event


@dataclass(frozen=True)
class TaskPlanEvent(Event):
    """What is going to be trained, on which examples; `unit` is that of its losses."""

    event: ClassVar[str] = "plan"
    run: str
    task: str
    unit: str
    params: int
    examples_train: int
    examples_val: int
    targets_train: int
    targets_val: int
    epochs: float
    references: dict[str, float | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskDoneEvent(DoneEvent):
    """The end, with the unit of its losses."""

    unit: str


@dataclass(frozen=True)
class ReportEvent(Event):
    """How good the best weights are, on examples that were not learned from."""

    event: ClassVar[str] = "report"
    step: int
    figures: dict[str, Any]
