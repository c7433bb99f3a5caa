"""Tasks so small that a test can train dozens of them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinygrad_tf.tasks.run import TaskRun
from tinygrad_tf.tasks.task import Task, TaskOptions

from tinygrad_tf.tasks.classification import LabellingTask, prepare_labelling
from tinygrad_tf.tasks.masked_lm import FillTask, prepare_filling
from tinygrad_tf.tasks.translation import TranslationTask, prepare_translation

NUMBERS = ("one uno", "two dos", "three tres", "four cuatro", "five cinco", "six seis")


def pairs_file(path: Path, count: int = 40) -> Path:
    """Sums of numbers in words, and the same in Spanish from right to left."""
    rng = random.Random(0)
    lines = []
    for _ in range(count):
        words = [rng.choice(NUMBERS).split() for _ in range(rng.randint(1, 5))]
        source = " and ".join(word for word, _ in words)
        target = " y ".join(word for _, word in reversed(words))
        lines.append(f"{source}\t{target}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def labels_file(path: Path, count: int = 40) -> Path:
    """Which of two words comes first."""
    rng = random.Random(0)
    lines = []
    for _ in range(count):
        words = ["left", "right", *rng.choices(("so", "it", "is"), k=rng.randint(0, 4))]
        rng.shuffle(words)
        label = "L" if words.index("left") < words.index("right") else "R"
        lines.append(f"{label}\t{' '.join(words)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def numbers_file(path: Path, count: int = 60) -> Path:
    """How often a word stands in a text, times ten and five."""
    rng = random.Random(0)
    lines = []
    for _ in range(count):
        words = rng.choices(("yes", "no"), k=rng.randint(2, 8))
        lines.append(f"{10 * words.count('yes') + 5}\t{' '.join(words)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def texts_file(path: Path, count: int = 40) -> Path:
    """The same, as texts alone."""
    lines = labels_file(path, count).read_text(encoding="utf-8").splitlines()
    path.write_text("".join(line.split("\t")[1] + "\n" for line in lines), encoding="utf-8")
    return path


def options(out: Path, **changes: Any) -> TaskOptions:
    """Of a tiny run."""
    model = {"d_model": 16, "n_heads": 2, "dropout": 0.1} | changes.pop("model", {})
    training = {"steps": 20, "eval_every": 6, "checkpoint_every": 4, "warmup": 2}
    training |= changes.pop("training", {})
    fixed = {"seed": 3, "threads": 1, "batch_size": 8} | changes
    return TaskOptions(out=out, model=model, training=training, **fixed)


Maker = Callable[..., Task]


def translation(folder: Path, shared: TaskOptions, count: int = 40, **own: Any) -> TranslationTask:
    return prepare_translation(shared, pairs_file(folder / "pairs.tsv", count), **own)


def labelling(folder: Path, shared: TaskOptions, count: int = 40, **own: Any) -> LabellingTask:
    return prepare_labelling(shared, labels_file(folder / "labels.tsv", count), **own)


def regression(folder: Path, shared: TaskOptions, **own: Any) -> LabellingTask:
    data = numbers_file(folder / "numbers.tsv")
    return prepare_labelling(shared, data, regression=True, **own)


def filling(folder: Path, shared: TaskOptions, count: int = 40, **own: Any) -> FillTask:
    return prepare_filling(shared, texts_file(folder / "texts.txt", count), **own)


MAKERS: dict[str, Maker] = {
    "translation": translation,
    "labelling": labelling,
    "regression": regression,
    "filling": filling,
}


def new_run(folder: Path, kind: str, name: str = "run", **changes: Any) -> TaskRun:
    """A tiny run of a task of that kind, in `folder / name`."""
    own = changes.pop("own", {})
    shared = options(folder / name, **changes)
    return TaskRun.create(MAKERS[kind](folder, shared, **own), shared)


def train(run: TaskRun, stop_at: int | None = None) -> list[Any]:
    """All its events; stopped after a step."""
    events = []
    for event in run.run():
        events.append(event)
        if event.event == "step" and event.step == stop_at:
            run.stop()
    return events
