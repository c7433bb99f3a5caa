"""Run `tt` in this process, on a stand-in for training whose calls and events are the real ones.

Every call is bound to the signature of the real function, and every event is an object of its real
class, so that a renamed parameter or field fails here.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.main import run
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.train.events import (
    CheckpointEvent,
    DoneEvent,
    EvalEvent,
    Event,
    PlanEvent,
    StepEvent,
    WarningEvent,
)
from tinygrad_tf.train.run import Run

TEXT_FACTS = {
    "preset": "default",
    "tokens_train": 1_003_854,
    "tokens_val": 111_540,
    "vocab_size": 65,
    "flops": 7.94e12,
    "memory_bytes": 48e6,
}


def plan_event() -> PlanEvent:
    return PlanEvent(
        run="runs/fake",
        params=804_096,
        epochs=1.53,
        references={"uniform": 4.174, "unigram": 3.347, "bigram": 2.482, "floor": None},
        notes=["the file begins with a byte order mark, which is left out"],
        config={"steps": 4, "time_limit": None},
        facts=TEXT_FACTS,
    )


def step_event(step: int, loss: float) -> StepEvent:
    return StepEvent(
        step=step,
        loss=loss,
        lr=1e-3,
        grad_norm=1.0,
        tokens=768 * step,
        tokens_per_second=12_345.6,
        elapsed=0.5 * step,
    )


def eval_event(step: int, loss: float) -> EvalEvent:
    return EvalEvent(
        step=step,
        train_loss=loss - 0.1,
        val_loss=loss,
        best_val_loss=loss,
        best_step=step,
        elapsed=0.5 * step,
    )


def done_event(steps: int, reason: str = "steps") -> DoneEvent:
    return DoneEvent(
        run="runs/fake",
        steps=steps,
        reason=reason,
        val_loss=2.1,
        val_bits_per_char=3.0297,
        val_bits_per_byte=None,
        floor_bits_per_char=2.9,
        best_val_loss=2.1,
        best_step=steps,
        elapsed=2.0,
        unit="nats per token",
    )


@dataclass
class FakeLibrary:
    """A run of four steps and a generator of three pieces, and the calls that they received."""

    created: list[dict[str, Any]] = field(default_factory=list)
    resumed: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    prompts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    stops: int = 0
    path: Path = Path("runs/fake")
    pieces: tuple[str, ...] = ("once", " upon\n", "a time")
    before_step: Callable[[int], None] = lambda step: None

    def plan(self) -> PlanEvent:
        return plan_event()

    def run(self) -> Iterator[Event]:
        for step in range(1, 5):
            self.before_step(step)
            yield step_event(step, 4.0 - 0.5 * step)
            if self.stops:
                yield CheckpointEvent(step=step, path="runs/fake/x")
                yield done_event(step, "interrupted")
                return
        yield eval_event(4, 2.1)
        yield WarningEvent(step=4, message="the gap is widening")
        yield CheckpointEvent(step=4, path="runs/fake/checkpoints/4")
        yield done_event(4)

    def stop(self) -> None:
        self.stops += 1

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        inspect.signature(TextGenerator.stream).bind(self, prompt, **options)
        self.prompts.append((prompt, options))
        yield from self.pieces


@pytest.fixture
def events() -> SimpleNamespace:
    """Makers of training events as JSON objects."""

    def json_of(make: Callable[..., Event]) -> Callable[..., dict[str, Any]]:
        return lambda *arguments, **changes: make(*arguments).as_json() | changes

    makers = {"plan": plan_event, "step": step_event, "eval": eval_event, "done": done_event}
    return SimpleNamespace(**{name: json_of(make) for name, make in makers.items()})


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """A fake of training and generation, called with the signatures of the real library."""
    fake = FakeLibrary()
    for name in ("plan", "run", "stop"):
        real = inspect.signature(getattr(Run, name)).parameters
        assert list(real) == list(inspect.signature(getattr(FakeLibrary, name)).parameters)

    def replace(owner: type, name: str, record: Callable[[dict[str, Any]], object]) -> None:
        """Replace a class method: bind each call to its signature and record the arguments."""
        signature = inspect.signature(getattr(owner, name))

        def replacement(*arguments: Any, **options: Any) -> FakeLibrary:
            bound = dict(signature.bind(*arguments, **options).arguments)
            for parameter in signature.parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    bound |= bound.pop(parameter.name, {})
            record(bound)
            return fake

        monkeypatch.setattr(owner, name, replacement)

    def resumed(call: dict[str, Any]) -> None:
        kind, path, *_ = call
        fake.resumed.append((call.pop(path), {k: v for k, v in call.items() if k != kind}))

    replace(LanguageModelTask, "create", fake.created.append)
    replace(Run, "create", lambda call: fake.created[-1].update({**call, "task": None}))
    replace(Run, "resume", resumed)
    replace(TextGenerator, "load", lambda call: fake.loaded.append(call.get("weights", "best")))
    return fake


@dataclass(frozen=True)
class Outcome:
    """The exit code of a command and all that it printed."""

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
