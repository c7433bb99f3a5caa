"""What a run directory holds, gathered for people and for JSON."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.progress import Progress
from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class Parameter:
    """One tensor of the model: the layer that owns it, its name, shape and number of values."""

    layer: str
    name: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of its values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class RunSummary:
    """The settings, parameters and history of a run."""

    run: Path
    config: dict[str, Any]
    model: dict[str, Any]
    parameters: list[Parameter]
    progress: Progress

    @classmethod
    def read(cls, run: Path) -> "RunSummary":
        """Read a run directory, its newest weights included, so that their faults are found.

        Raises InputError: it is not a run, or a file of it is missing or malformed.
        """
        from tinygrad_tf.models.gpt import GPT
        from tinygrad_tf.storage.run_directory import RunDirectory

        directory = RunDirectory.open(run)
        progress = Progress()
        try:
            for event in directory.read_metrics():
                progress.absorb(event)
        except (KeyError, TypeError) as fault:
            raise InputError(
                f"{run / 'metrics.jsonl'} has a malformed record ({fault})", "was it edited?"
            ) from fault
        config = directory.read_config()
        block = config.get("tt", {})
        if "task" in block:
            model, tensors = block["model"], directory.load_model()
            shapes = {name: tensor.shape for name, tensor in tensors.items()}
        else:
            gpt = GPT.load(run)
            model = gpt.config.as_dict()
            shapes = {name: p.shape for name, p in gpt.named_parameters().items()}
        parameters = [Parameter(*layer_and_name(name), shape) for name, shape in shapes.items()]
        return cls(run, config, model, parameters, progress)

    @property
    def is_gpt(self) -> bool:
        """Whether the run is of a GPT, and not of a task on examples."""
        return "task" not in self.config.get("tt", {})

    @property
    def total(self) -> int:
        """The number of values of all parameters."""
        return sum(parameter.count for parameter in self.parameters)

    def settings(self) -> Iterator[tuple[str, object]]:
        """Name and value of every setting: the sizes of the model, then how it was trained."""
        block = self.config.get("tt", {})
        yield from _leaves(self.model)
        # The model part of the experiment is what was asked; the model itself is what came of it.
        yield from _leaves({k: v for k, v in block.get("experiment", {}).items() if k != "model"})
        yield from ((name, block[name]) for name in ("version", "huggingface") if name in block)

    def facts(self) -> Iterator[tuple[str, object]]:
        """How far the run is: steps, tokens, losses in nats per token."""
        step, evaluation = self.progress.last_step, self.progress.last_eval
        yield "parameters", self.total
        yield "steps", self.progress.step
        if step:
            yield "tokens seen", step["tokens"]
            yield "training loss", float(step["loss"])
        if evaluation:
            yield "validation loss", float(evaluation["val_loss"])
            yield "best validation loss", float(evaluation["best_val_loss"])
            yield "best step", evaluation["best_step"]

    def as_json(self) -> dict[str, Any]:
        """Everything as one object."""
        return {
            "run": str(self.run),
            **{name.replace(" ", "_"): value for name, value in self.facts()},
            "config": self.config,
            "model": self.model,
            "layers": [
                {"layer": p.layer, "name": p.name, "shape": p.shape, "count": p.count}
                for p in self.parameters
            ],
            "train": self.progress.train,
            "validation": self.progress.validation,
            "references": self.progress.plan.get("references", {}),
        }


def layer_and_name(key: str) -> tuple[str, str]:
    """Split `h.0.attn.c_attn.weight` into `h.0` and the rest, `wte.weight` at its dot."""
    match = re.match(r"((?:\w+\.)?h\.\d+|[^.]+)\.(.+)", key)
    return (match[1], match[2]) if match else (key, "")


def _leaves(tree: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The values of nested objects by name; those that are None are left out."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value))
        elif value is not None:
            yield name, value
