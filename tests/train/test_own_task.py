"""A task defined here in a few lines is made, trained, stopped, resumed and reported by Run."""

import ast
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from tinygrad_tf.engine import ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import Padded
from tinygrad_tf.train.recipe import TrainOptions
from tinygrad_tf.train.run import Run

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class LineConfig:
    """The shape of a line: its number of inputs."""

    width: int = 3


class Line(Module):
    """A weighted sum, by squared error."""

    def __init__(self, config: LineConfig, seed: int) -> None:
        self.weight = Parameter(np.zeros((config.width, 1), np.float32))
        self.dropout_rng = np.random.default_rng([seed, 1])

    def loss(self, inputs, numbers):
        """Return the mean squared error."""
        errors = ops.matmul(inputs, self.weight) - numbers[:, None]
        return (errors * errors).mean()


class Points:
    """Inputs (N, width) with the numbers (N,) that belong to them."""

    def __init__(self, inputs, numbers):
        self.inputs, self.numbers = inputs, numbers
        self.lengths = self.targets = np.ones(len(inputs), np.int64)

    def batch(self, rows, rng):
        """Return the points of these rows."""
        return Padded((self.inputs[rows], self.numbers[rows]), self.targets[rows])


class LineTask(ExampleTask):
    """Learn the weights of a sum from points."""

    name, unit = "line", "squared error"

    def __init__(self, recipe, points):
        self.recipe, self.files = recipe, {"data/points.f32": points.tobytes()}
        self.training_set, self.validation_set = (
            Points(part[:, :-1], part[:, -1]) for part in (points[:-20], points[-20:])
        )

    @classmethod
    def create(cls, points, **settings):
        """Make the task of a new run, of points (N, width + 1), float32."""
        options, config = TrainOptions.sort(LineConfig, settings), LineConfig(points.shape[1] - 1)
        training = {"steps": 60, "learning_rate": 0.2, "eval_every": 20, "checkpoint_every": 4}
        training |= {"weight_decay": 0.0}
        return cls(options.recipe("line", asdict(config), training, 8, {}), points)

    @classmethod
    def from_files(cls, recipe, files):
        """Make the task again of what its run has kept."""
        points = np.frombuffer(files["data/points.f32"], np.float32)
        return cls(recipe, points.reshape(-1, recipe.model["width"] + 1))

    @cached_property
    def model(self):
        """The line."""
        return Line(LineConfig(**self.recipe.model), self.recipe.seed)

    def evaluate(self):
        """Return the weights."""
        return {"weights": self.model.weight.data[:, 0].tolist()}


@pytest.fixture
def points():
    inputs = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
    return np.column_stack([inputs, inputs @ np.array([1, -2, 0.5], np.float32)])


def train(run, stop_at=None):
    events = []
    for event in run.run():
        events.append(event)
        if event.event == "step" and event.step == stop_at:
            run.stop()
    return events


@pytest.mark.parametrize("threads", [1, 2])
def test_stopped_and_resumed_it_is_the_same_and_reported(tmp_path, outcome, points, threads):
    whole = train(Run.create(LineTask.create(points, threads=threads), tmp_path / "whole"))
    stopped = train(Run.create(LineTask.create(points, threads=threads), tmp_path / "run"), 7)
    assert (stopped[-1].reason, stopped[-1].steps) == ("interrupted", 7)
    resumed = train(Run.resume(LineTask, tmp_path / "run"))
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    assert whole[-1] == resumed[-1] and whole[-1].event == "report"
    np.testing.assert_allclose(whole[-1].figures["weights"], [1, -2, 0.5], atol=0.1)


def test_it_trains_without_a_directory(points, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(LineTask.create(points))
    assert repr(run) == "Run(LineTask('line', 60 steps), in memory, step 0)"
    assert run.plan().as_json()["examples_train"] == 100
    assert train(run)[-1].event == "report" and run.trainer.progress.step == 60
    assert not list(tmp_path.iterdir())


def test_another_kind_of_task_does_not_resume_it(points, tmp_path):
    class OtherTask(LineTask):
        name = "other"

    train(Run.create(LineTask.create(points), tmp_path / "run"), 3)
    with pytest.raises(InputError, match="is a run of the task line, not of the task other"):
        Run.resume(OtherTask, tmp_path / "run")


def test_one_place_makes_a_trainer():
    places = [
        path.relative_to(ROOT).as_posix()
        for room in ("tinygrad_tf", "toymodels", "cli")
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Trainer"
    ]
    assert places == ["tinygrad_tf/train/run.py"]
