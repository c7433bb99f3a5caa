"""How far a training run is: what its events have said so far, in words."""

from collections.abc import Mapping
from typing import Any

from cli.format import clock, count, loss, short

Event = Mapping[str, Any]
POINTS = 2048  # so many losses are kept for the curve


class Progress:
    """The state of a run, told by its events as they are written to JSON Lines."""

    def __init__(self) -> None:
        self.plan: Event = {}
        self.last_step: Event = {}
        self.last_eval: Event = {}
        self.elapsed = 0.0
        self.train: list[tuple[float, float]] = []
        self.validation: list[tuple[float, float]] = []

    def absorb(self, event: Event) -> None:
        """Take in one event."""
        self.elapsed = event.get("elapsed", self.elapsed)
        match event["event"]:
            case "plan":
                self.plan = event
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
        """How many steps are planned."""
        steps: int | None = self.plan.get("config", {}).get("steps")
        return steps

    @property
    def share(self) -> float:
        """How much of the run is done, by steps or by the time limit, 0 to 1."""
        limit = self.plan.get("config", {}).get("time_limit")
        by_steps = self.step / self.steps if self.steps else 0.0
        return min(1.0, max(by_steps, self.elapsed / limit if limit else 0.0))

    @property
    def remaining(self) -> float:
        """Seconds to go at the pace so far; infinite before there is a pace."""
        return self.elapsed * (1 - self.share) / self.share if self.share else float("inf")

    def status(self) -> str:
        """Step, per cent, losses, speed, time gone and to go."""
        event, total = self.last_step, f"/{count(self.steps)}" if self.steps else ""
        parts = [f"step {count(self.step)}{total} {self.share:4.0%}"]
        if event:
            parts.append(f"loss {loss(event['loss'])}")
        if self.last_eval:
            parts.append(f"validation {loss(self.last_eval['val_loss'])}")
        if event:
            parts.append(f"{short(event['tokens_per_second'])} tokens/s")
        return "  ".join([*parts, f"elapsed {clock(self.elapsed)}", f"ETA {clock(self.remaining)}"])


def plan_lines(plan: Event) -> list[str]:
    """What is about to be done and what it will cost."""
    preset = f"preset {plan['preset']}, " if plan.get("preset") else ""
    steps = plan.get("config", {}).get("steps")
    return [
        f"model: {preset}{count(plan['params'])} parameters, "
        f"vocabulary {count(plan['vocab_size'])}",
        f"text: {count(plan['tokens_train'])} tokens to train on, "
        f"{count(plan['tokens_val'])} to validate on"
        + (f"; {count(steps)} steps are {plan['epochs']:.3g} epochs" if steps else ""),
        f"cost: {short(plan['flops'])}FLOP, {short(plan['memory_bytes'])}B of memory",
        "to compare with, in nats per token: "
        + ", ".join(f"{name} {value:.3f}" for name, value in references(plan).items()),
        *(f"note: {note}" for note in plan.get("notes", ())),
        f"run: {plan['run']}",
    ]


def references(plan: Event) -> dict[str, float]:
    """The reference losses that are known, by name."""
    known = plan.get("references", {})
    return {name: value for name, value in known.items() if value is not None}


def eval_line(event: Event) -> str:
    """One evaluation in one line."""
    best = "best" if event["best_step"] == event["step"] else f"best {loss(event['best_val_loss'])}"
    return (
        f"step {count(event['step'])}: training {loss(event['train_loss'])}, "
        f"validation {loss(event['val_loss'])} ({best})"
    )


def done_line(event: Event) -> str:
    """The result of a run in one line."""
    why = "" if event["reason"] == "steps" else f" ({event['reason'].replace('-', ' ')})"
    line = f"{count(event['steps'])} steps in {clock(event['elapsed'])}{why}"
    if event.get("val_loss") is not None:
        line += f": validation {loss(event['val_loss'])} nats per token"
    if event.get("val_bits_per_char") is not None:
        line += f", {event['val_bits_per_char']:.4f} bits per character"
    if event.get("floor_bits_per_char") is not None:
        line += f" (the floor is {event['floor_bits_per_char']:.4f})"
    return line
