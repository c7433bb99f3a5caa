"""Run `tt` in this process, on a library that only pretends."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cli.main import run


@dataclass(frozen=True)
class FakeEvent:
    """Something with `as_json`, like every training event."""

    fields: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self.fields


def plan_event(**changes: Any) -> dict[str, Any]:
    return {
        "event": "plan",
        "run": "runs/fake",
        "preset": "default",
        "params": 804_096,
        "tokens_train": 1_003_854,
        "tokens_val": 111_540,
        "vocab_size": 65,
        "epochs": 1.53,
        "flops": 7.94e12,
        "memory_bytes": 48e6,
        "references": {"uniform": 4.174, "unigram": 3.347, "bigram": 2.482, "floor": None},
        "notes": ["the file begins with a byte order mark, which is left out"],
        "config": {"steps": 4, "time_limit": None},
    } | changes


def step_event(step: int, loss: float) -> dict[str, Any]:
    return {
        "event": "step",
        "step": step,
        "loss": loss,
        "lr": 1e-3,
        "grad_norm": 1.0,
        "tokens": 768 * step,
        "tokens_per_second": 12_345.6,
        "elapsed": 0.5 * step,
    }


def eval_event(step: int, loss: float) -> dict[str, Any]:
    return {
        "event": "eval",
        "step": step,
        "train_loss": loss - 0.1,
        "val_loss": loss,
        "best_val_loss": loss,
        "best_step": step,
        "elapsed": 0.5 * step,
    }


def done_event(steps: int, reason: str = "steps") -> dict[str, Any]:
    return {
        "event": "done",
        "run": "runs/fake",
        "steps": steps,
        "reason": reason,
        "val_loss": 2.1,
        "val_bits_per_char": 3.0297,
        "floor_bits_per_char": 2.9,
        "best_val_loss": 2.1,
        "best_step": steps,
        "elapsed": 2.0,
    }


@dataclass
class FakeLibrary:
    """What the commands asked of the library, and what it answers."""

    created: list[dict[str, Any]] = field(default_factory=list)
    resumed: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    prompts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    stops: int = 0
    path: Path = Path("runs/fake")
    pieces: tuple[str, ...] = ("once", " upon\n", "a time")
    before_step: Callable[[int], None] = lambda step: None

    def plan(self) -> FakeEvent:
        return FakeEvent(plan_event())

    def run(self) -> Iterator[FakeEvent]:
        for step in range(1, 5):
            self.before_step(step)
            yield FakeEvent(step_event(step, 4.0 - 0.5 * step))
            if self.stops:
                yield FakeEvent({"event": "checkpoint", "step": step, "path": "runs/fake/x"})
                yield FakeEvent(done_event(step, "interrupted"))
                return
        yield FakeEvent(eval_event(4, 2.1))
        yield FakeEvent({"event": "warning", "step": 4, "message": "the gap is widening"})
        yield FakeEvent({"event": "checkpoint", "step": 4, "path": "runs/fake/checkpoints/4"})
        yield FakeEvent(done_event(4))

    def stop(self) -> None:
        self.stops += 1

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        self.prompts.append((prompt, options))
        yield from self.pieces


@pytest.fixture
def events() -> SimpleNamespace:
    """Makers of training events as JSON objects."""
    return SimpleNamespace(plan=plan_event, step=step_event, eval=eval_event, done=done_event)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """Stands in for training and generation."""
    fake = FakeLibrary()

    def create_task(texts: Any = (), **options: Any) -> FakeLibrary:
        fake.created.append({"texts": texts, **options})
        return fake

    def create(task: Any, out: Any = None, **options: Any) -> FakeLibrary:
        fake.created[-1] |= {"out": out, **options}
        return fake

    def resume(kind: Any, path: Any, **options: Any) -> FakeLibrary:
        fake.resumed.append((path, options))
        return fake

    class TextGenerator:
        @staticmethod
        def load(path: Any, weights: str = "best") -> FakeLibrary:
            fake.loaded.append(weights)
            return fake

    monkeypatch.setattr("tinygrad_tf.tasks.language_model.LanguageModelTask.create", create_task)
    monkeypatch.setattr("tinygrad_tf.train.run.Run.create", create)
    monkeypatch.setattr("tinygrad_tf.train.run.Run.resume", resume)
    _install(monkeypatch, "tinygrad_tf.generate", TextGenerator)
    return fake


def _install(monkeypatch: pytest.MonkeyPatch, name: str, *things: type) -> None:
    module = ModuleType(name)
    for thing in things:
        setattr(module, thing.__name__, thing)
    monkeypatch.setitem(sys.modules, name, module)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def tt(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `tt` in this process."""

    def call(*arguments: str) -> Outcome:
        code = run(arguments)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call
