"""Summary of a run directory for `tt inspect`: settings, parameters and losses."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.progress import TrainingProgress
from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class TensorSummary:
    """A tensor of the model: its layer, name and shape."""

    layer: str
    name: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class RunSummary:
    """The settings, parameters and history of a run."""

    run: Path
    config: dict[str, Any]
    model: dict[str, Any]
    parameters: list[TensorSummary]
    progress: TrainingProgress

    @classmethod
    def read(cls, run: Path) -> "RunSummary":
        """Read a run directory, with its newest weights, so that malformed ones are reported.

        Raises InputError: it is not a run, or a file of it is missing or malformed.
        """
        from tinygrad_tf.models.gpt import GPT
        from tinygrad_tf.storage.run_directory import RunDirectory

        directory = RunDirectory.open(run)
        progress = TrainingProgress()
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
        parameters = [TensorSummary(*layer_and_name(name), shape) for name, shape in shapes.items()]
        return cls(run, config, model, parameters, progress)

    @property
    def is_gpt(self) -> bool:
        """True for a run of a GPT, false for a task on examples."""
        return "task" not in self.config.get("tt", {})

    @property
    def total(self) -> int:
        """The number of values of all parameters."""
        return sum(parameter.count for parameter in self.parameters)

    def settings(self) -> Iterator[tuple[str, object]]:
        """Yield name and value of every setting: of the model, then of its training."""
        block = self.config.get("tt", {})
        yield from _leaves(self.model)
        # The experiment's model part holds the options; `model` holds the final sizes.
        yield from _leaves({k: v for k, v in block.get("experiment", {}).items() if k != "model"})
        yield from ((name, block[name]) for name in ("version", "huggingface") if name in block)

    def facts(self) -> Iterator[tuple[str, object]]:
        """Yield the state of the run: steps, tokens, losses in nats per token."""
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
        """Return the whole summary as one JSON object."""
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
    """Yield the values of nested objects by name, without those that are None."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value))
        elif value is not None:
            yield name, value
