"""Progress of a training run: its state, collected from its events, and lines that describe it."""

from collections.abc import Mapping
from typing import Any

from cli.format import clock, count, counted, loss, short
from cli.task_lines import task_plan_lines

Event = Mapping[str, Any]
POINTS = 2048  # the losses that are kept for the curve


class TrainingProgress:
    """The state of a run, collected from its events (as they are written to JSON Lines)."""

    def __init__(self) -> None:
        self.plan: Event = {}
        self.last_step: Event = {}
        self.last_eval: Event = {}
        self.elapsed = 0.0  # seconds of all sessions: a resumed run adds to them
        self._begun: tuple[int, float] | None = None  # step and elapsed at the start of the session
        self.train: list[tuple[float, float]] = []
        self.validation: list[tuple[float, float]] = []

    def absorb(self, event: Event) -> None:
        """Record one event."""
        self.elapsed = event.get("elapsed", self.elapsed)
        if self._begun is None and "elapsed" in event:
            step = event.get("step", 0)
            # A resumed run starts from its first event, a new run from step 0.
            self._begun = (step, self.elapsed) if step > 1 else (0, 0.0)
        match event["event"]:
            case "plan":
                self.plan, self._begun = event, None
            case "step":
                self.last_step = event
                self.train.append((event["step"], event["loss"]))
                if len(self.train) > POINTS:
                    self.train = self.train[::2]
            case "eval":
                self.last_eval = event
                self.validation.append((event["step"], event["val_loss"]))

    @property
    def step(self) -> int:
        """The number of the last step."""
        return int(self.last_step.get("step", self.last_eval.get("step", 0)))

    @property
    def steps(self) -> int | None:
        """The number of planned steps; None where only a time limit is set."""
        steps: int | None = self.plan.get("config", {}).get("steps")
        return steps

    @property
    def share(self) -> float:
        """The share of the run that is done, by steps or by the time limit, 0 to 1."""
        by_steps = self.step / self.steps if self.steps else 0.0
        by_time = self._session[1] / self._limit if self._limit else 0.0
        return min(1.0, max(by_steps, by_time))

    @property
    def remaining(self) -> float:
        """The seconds that remain at the speed of this session; infinite before the first step."""
        done, seconds = self._session
        by_steps = by_time = float("inf")
        if self.steps and done:
            by_steps = seconds / done * max(0, self.steps - self.step)
        if self._limit and seconds:
            by_time = max(0.0, self._limit - seconds)
        return min(by_steps, by_time)

    @property
    def _limit(self) -> float | None:
        """The time limit of this session in seconds."""
        limit: float | None = self.plan.get("config", {}).get("time_limit")
        return limit

    @property
    def _session(self) -> tuple[int, float]:
        """The steps and seconds of this session."""
        step, elapsed = self._begun or (self.step, self.elapsed)
        return self.step - step, self.elapsed - elapsed

    def status(self, width: int | None = None) -> str:
        """Describe the state in one line: step, per cent, losses, speed, elapsed time, time left.

        If that is longer than `width` columns, the speed is left out, then the elapsed time.
        """
        event, total = self.last_step, f"/{count(self.steps)}" if self.steps else ""
        parts = [f"step {count(self.step)}{total} {self.share:4.0%}"]
        if event:
            parts.append(f"loss {loss(event['loss'])}")
        if self.last_eval:
            parts.append(f"validation {loss(self.last_eval['val_loss'])}")
        targets = "targets" if "task" in self.plan else "tokens"
        speed = [f"{short(event['tokens_per_second'])} {targets}/s"] if event else []
        gone, to_go = [f"elapsed {clock(self.elapsed)}"], [f"ETA {clock(self.remaining)}"]
        choices = ([*speed, *gone, *to_go], [*gone, *to_go], to_go)
        lines = ["  ".join([*parts, *choice]) for choice in choices]
        return next((line for line in lines if width is None or len(line) <= width), lines[-1])


def plan_lines(plan: Event) -> list[str]:
    """Describe the plan of a run and its cost, one line a fact."""
    if "task" in plan:
        return task_plan_lines(plan)
    preset = f"preset {plan['preset']}, " if plan.get("preset") else ""
    steps = plan.get("config", {}).get("steps")
    epochs = f"{plan['epochs']:.3g}"
    share = f"{epochs} epoch{'s' * (epochs != '1')}"
    return [
        f"model: {preset}{counted(plan['params'], 'parameter')}, "
        f"vocabulary {count(plan['vocab_size'])}",
        f"text: {counted(plan['tokens_train'], 'token')} to train on, "
        f"{count(plan['tokens_val'])} to validate on"
        + (f"; {counted(steps, 'step')} {'is' if steps == 1 else 'are'} {share}" if steps else ""),
        f"cost: {short(plan['flops'])}FLOP, {short(plan['memory_bytes'])}B of memory",
        "to compare with, in nats per token: "
        + ", ".join(f"{name} {value:.3f}" for name, value in references(plan).items()),
        *(f"note: {note}" for note in plan.get("notes", ())),
        f"run: {plan['run']}",
    ]


def references(plan: Event) -> dict[str, float]:
    """Return the known reference losses by name."""
    losses = plan.get("references", {})
    return {name: value for name, value in losses.items() if value is not None}


def eval_line(event: Event) -> str:
    """Describe one evaluation in one line."""
    best = "best" if event["best_step"] == event["step"] else f"best {loss(event['best_val_loss'])}"
    return (
        f"step {count(event['step'])}: training {loss(event['train_loss'])}, "
        f"validation {loss(event['val_loss'])} ({best})"
    )


def done_line(event: Event) -> str:
    """Describe the result of a run in one line."""
    why = "" if event["reason"] == "steps" else f" ({event['reason'].replace('-', ' ')})"
    line = f"{counted(event['steps'], 'step')} in {clock(event['elapsed'])}{why}"
    if event.get("val_loss") is not None:
        line += f": validation {loss(event['val_loss'])} {event.get('unit', 'nats per token')}"
    if event.get("val_bits_per_char") is not None:
        line += f", {event['val_bits_per_char']:.4f} bits per character"
        if event.get("val_bits_per_byte") == event["val_bits_per_char"]:
            line += " and byte"
        elif event.get("val_bits_per_byte") is not None:
            line += f", {event['val_bits_per_byte']:.4f} per byte"
    if event.get("floor_bits_per_char") is not None:
        line += f" (the floor is {event['floor_bits_per_char']:.4f})"
    return line
