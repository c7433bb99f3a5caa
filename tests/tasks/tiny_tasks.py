"""Tasks so small that a test can train dozens of them."""

import random
from pathlib import Path
from typing import Any

from tinygrad_tf.tasks.classification import ClassificationTask
from tinygrad_tf.tasks.masked_lm import MaskedLMTask
from tinygrad_tf.tasks.translation import TranslationTask
from tinygrad_tf.train.run import Run
from tinygrad_tf.train.task import Task

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


TINY: dict[str, Any] = {
    "d_model": 16,
    "n_heads": 2,
    "dropout": 0.1,
    "steps": 20,
    "eval_every": 6,
    "checkpoint_every": 4,
    "warmup": 2,
    "seed": 3,
    "threads": 1,
    "batch_size": 8,
}


def translation(folder: Path, count: int = 40, **changes: Any) -> TranslationTask:
    """A tiny task; `changes` are options of its own, of the model or of the training."""
    return TranslationTask.create(pairs_file(folder / "pairs.tsv", count), **TINY | changes)


def classification(folder: Path, count: int = 40, **changes: Any) -> ClassificationTask:
    """A tiny task of labels."""
    return ClassificationTask.create(labels_file(folder / "labels.tsv", count), **TINY | changes)


def regression(folder: Path, **changes: Any) -> ClassificationTask:
    """A tiny task of numbers."""
    data = numbers_file(folder / "numbers.tsv")
    return ClassificationTask.create(data, regression=True, **TINY | changes)


def masked_lm(folder: Path, count: int = 40, **changes: Any) -> MaskedLMTask:
    """A tiny task of hidden tokens."""
    return MaskedLMTask.create(texts_file(folder / "texts.txt", count), **TINY | changes)


MAKERS: dict[str, Any] = {
    "translation": translation,
    "classification": classification,
    "regression": regression,
    "masked_lm": masked_lm,
}


def new_run(
    folder: Path, kind: str, name: str = "run", *, force: bool = False, **changes: Any
) -> Run:
    """A tiny run of a task of that kind, in `folder / name`."""
    task: Task = MAKERS[kind](folder, **changes)
    return Run.create(task, folder / name, force=force)


def train(run: Run, stop_at: int | None = None) -> list[Any]:
    """All events of a run; it is stopped after a step."""
    events = []
    for event in run.run():
        events.append(event)
        if event.event == "step" and event.step == stop_at:
            run.stop()
    return events
