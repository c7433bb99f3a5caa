"""Learning to label texts, or to rate them with a number."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygrad_tf.corpus.opinions import draw_opinions
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import Classifier, Encoder, EncoderConfig, Regressor
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.tasks import bag_of_words
from tinygrad_tf.tasks.examples import LabelledExamples
from tinygrad_tf.tasks.held_out import hold_out, hold_out_by
from tinygrad_tf.tasks.task import Files, Task, TaskOptions, TaskRecipe
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer, read_tokenizer
from tinygrad_tf.tasks.tsv import format_columns, parse_columns
from tinygrad_tf.text import scores
from tinygrad_tf.text.pairs import read_labelled, read_pairs
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.types import Array, Ids

SPECIALS = ("PAD", "CLS")
TOKENIZER_FILE, SCALE_FILE = "tokenizer.json", "labels.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.tsv", "data/held_out.tsv"
SHORTEST_LIMIT = 32
ROWS = 128
MISTAKES_SHOWN = 5

MODEL = {"d_model": 64, "n_heads": 4, "n_layers": 2, "dropout": 0.1, "scale_embedding": True}
TRAINING = {
    "steps": 800,
    "learning_rate": 1e-3,
    "min_lr": 1e-4,
    "warmup": 80,
    "beta2": 0.98,
    "eval_every": 100,
    "checkpoint_every": 400,
}
BATCH_SIZE = 64

Example = tuple[str, str]  # label, text


class Scale(NamedTuple):
    """What an answer means: one of `labels`, or without them mean + std times a number."""

    labels: tuple[str, ...] = ()
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, labels: Sequence[str], regression: bool) -> Scale:
        """That of labels as they were read; numbers must be valid."""
        if not regression:
            return cls(tuple(sorted(set(labels))))
        numbers = np.array([float(label) for label in labels])
        return cls((), float(numbers.mean()), float(numbers.std()) or 1.0)

    def targets(self, labels: Sequence[str]) -> Array:
        """What the model is to answer: class numbers, or standardised numbers."""
        if self.labels:
            place = {label: i for i, label in enumerate(self.labels)}
            return np.array([place[label] for label in labels], np.int64)
        return ((np.array(labels, np.float64) - self.mean) / self.std).astype(np.float32)

    def file(self) -> bytes:
        """As it is kept in a run."""
        return (json.dumps(self._asdict(), ensure_ascii=False, indent=1) + "\n").encode()

    @classmethod
    def from_file(cls, content: bytes) -> Scale:
        """The reverse of `file`."""
        fields = json.loads(content)
        return cls(tuple(fields["labels"]), fields["mean"], fields["std"])


class LabellingTask(Task):
    """An encoder with a head, labelled texts, and how many labels are right."""

    name: ClassVar[str] = "classifier"

    def __init__(self, recipe: TaskRecipe, files: Files, notes: Iterable[str] = ()) -> None:
        self.recipe, self.files, self.notes = recipe, files, tuple(notes)
        self.side, self.scale = side_and_scale(files)
        self.unit = "nats per text" if self.scale.labels else "squared deviations"
        config = EncoderConfig.from_dict(recipe.model)
        self._train = self._parsed(TRAIN_FILE, config)
        self._held_out = self._parsed(HELD_OUT_FILE, config)
        self.training = LabelledExamples(*self._train, PAD)
        self.validation = LabelledExamples(*self._held_out, PAD)
        self.model: Classifier | Regressor = new_model(self.scale, config, recipe.seed)

    @classmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> LabellingTask:
        """The task of a recipe and of the files of `prepare_labelling`."""
        return cls(recipe, files)

    def _parsed(self, name: str, config: EncoderConfig) -> tuple[list[Ids], Array]:
        columns = parse_columns(self.files[name])
        limit = text_limit(config)
        sources = [self.side.encode(text, limit) for _, text in columns]
        return sources, self.scale.targets([label for label, _ in columns])

    def references(self) -> dict[str, float | None]:
        """What guessing costs: any class alike, or by its frequency; or always the mean."""
        train, held_out = self._train[1], self._held_out[1]
        if not self.scale.labels:
            return {"mean": float(np.square(held_out - train.mean()).mean())}
        size = len(self.scale.labels)
        shares = (np.bincount(train, minlength=size) + 1) / (len(train) + size)
        return {
            "uniform": math.log(size),
            "frequencies": float(-np.log(shares[held_out]).mean()),
        }

    def evaluate(self) -> dict[str, Any]:
        """Accuracy and a confusion table; of numbers RMSE, MAE and R². And those of the bag."""
        sources, wanted = self._held_out
        answers = outputs(self.model, sources)
        bag = self._bag()
        if not self.scale.labels:
            return self._evaluate_numbers(answers[:, 0], bag)
        size = len(self.scale.labels)
        found = answers.argmax(axis=1)
        table = np.zeros((size, size), np.int64)
        np.add.at(table, (wanted, found), 1)
        texts = [text for _, text in parse_columns(self.files[HELD_OUT_FILE])]
        wrong = np.flatnonzero(found != wanted)[:MISTAKES_SHOWN]
        name = self.scale.labels
        return {
            "examples": len(wanted),
            "accuracy": scores.exact_match(found.tolist(), wanted.tolist()),
            "bag_of_words": None if bag is None else float((bag == wanted).mean()),
            "labels": list(name),
            "confusion": table.tolist(),
            "mistakes": [
                {"text": texts[i], "label": name[wanted[i]], "answer": name[found[i]]}
                for i in wrong
            ],
        }

    def _evaluate_numbers(self, answers: Array, bag: Array | None) -> dict[str, Any]:
        std, wanted = self.scale.std, self._held_out[1].astype(np.float64)
        off = (answers - wanted) * std
        spread = float(np.square((wanted - wanted.mean()) * std).mean())
        rmse = math.sqrt(float(np.square(off).mean()))
        return {
            "examples": len(wanted),
            "rmse": rmse,
            "mae": float(np.abs(off).mean()),
            "r2": 1.0 - rmse**2 / spread if spread else None,
            "bag_of_words_rmse": None
            if bag is None
            else math.sqrt(float(np.square((bag - wanted) * std).mean())),
        }

    def _bag(self) -> Array | None:
        """What a function of the words without their order answers."""
        (sources, labels), (held_out, _) = self._train, self._held_out
        train = bag_of_words.counts(sources, self.side.vocab_size)
        test = bag_of_words.counts(held_out, self.side.vocab_size)
        if train is None or test is None:
            return None
        if self.scale.labels:
            return bag_of_words.predict_classes(train, labels, test, len(self.scale.labels))
        return bag_of_words.predict_numbers(train, labels, test)


def side_and_scale(files: Files) -> tuple[TaskTokenizer, Scale]:
    """The tokenizer and the labels of a run."""
    side = TaskTokenizer(read_tokenizer(files[TOKENIZER_FILE]), SPECIALS)
    return side, Scale.from_file(files[SCALE_FILE])


def new_model(scale: Scale, config: EncoderConfig, seed: int = 0) -> Classifier | Regressor:
    """A classifier or a regressor, as the labels are."""
    return (Classifier if scale.labels else Regressor)(config, seed)


def text_limit(config: EncoderConfig) -> int:
    """The most tokens in a text."""
    return config.max_length - (config.pooling == "cls")


@no_grad()
def outputs(model: Encoder, sources: Sequence[Ids]) -> Array:
    """What the model says of each source, (N, K) in float64."""
    return np.concatenate([model.forward(batch).data for batch in _batches(sources)]).astype(float)


def _batches(sources: Sequence[Ids]) -> Iterator[Ids]:
    for first in range(0, len(sources), ROWS):
        yield pad_sequences(sources[first : first + ROWS], PAD)


def prepare_labelling(
    options: TaskOptions,
    data: Path | None = None,
    *,
    regression: bool = False,
    tokenizer: str = "word",
    vocab_size: int | None = None,
    val_fraction: float = 0.1,
) -> LabellingTask:
    """The task of a new run: of a file `label<TAB>text`, or of the embedded opinions.

    With `regression` the labels are numbers. Of a file, a random `val_fraction` of each label is
    held out. Raises InputError for whatever is wrong with the file.
    """
    notes: list[str] = []
    if data is None:
        if regression:
            raise InputError("the embedded opinions have no numbers", "give a file: number, text")
        train, held_out = ([(o.label, o.sentence) for o in part] for part in draw_opinions())
    elif regression:
        train, held_out = hold_out(_read_numbers(data), val_fraction, options.seed or 0)
    else:
        read = [(one.label, one.text) for one in read_labelled(data)]
        train, held_out = hold_out_by([x[0] for x in read], read, val_fraction, options.seed or 0)
    if data is not None:
        notes = read_text(data)[1].notes()
    every = [*train, *held_out]
    side = TaskTokenizer(
        learn_tokenizer(tokenizer, [text for _, text in every], vocab_size), SPECIALS
    )
    scale = Scale.of([label for label, _ in train], regression)
    longest = max(len(side.encode(text)) for _, text in every) + 1
    shape = options.shape(
        **MODEL,
        max_length=max(SHORTEST_LIMIT, longest),
        cls_id=SPECIALS.index("CLS"),
    )
    config = EncoderConfig(vocab_size=side.vocab_size, n_outputs=max(1, len(scale.labels)), **shape)
    files = {
        TOKENIZER_FILE: side.file(),
        SCALE_FILE: scale.file(),
        TRAIN_FILE: format_columns(train),
        HELD_OUT_FILE: format_columns(held_out),
    }
    own = {
        "data": None if data is None else str(data.absolute()),
        "regression": regression,
        "tokenizer": tokenizer,
        "vocab_size": vocab_size,
        "val_fraction": val_fraction,
        "classes": dict(Counter(label for label, _ in train)) if not regression else None,
    }
    title = "classifier" if data is None else data.stem
    recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
    return LabellingTask(recipe, files, notes)


def _read_numbers(path: Path) -> list[Example]:
    """`number<TAB>text` lines; InputError names file and line where there is no number."""
    found = []
    for line, (label, text) in enumerate(read_pairs(path), 1):
        try:
            fine = math.isfinite(float(label))
        except ValueError:
            fine = False
        if not fine:
            raise InputError(
                f"{path}, line {line}: the label {label!r} is not a number",
                "write each line as number<TAB>text, or leave out --regression",
            )
        found.append((label, text))
    return found
