"""Learning to label texts, or to rate them with a number."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygrad_tf.corpus.opinions import draw_opinions
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import Classifier, Encoder, EncoderConfig, Regressor
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.tasks import bag_of_words
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import LabelledExamples
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer
from tinygrad_tf.tasks.tsv import format_columns, parse_columns
from tinygrad_tf.text import scores
from tinygrad_tf.text.held_out import hold_out
from tinygrad_tf.text.pairs import read_labelled, read_pairs
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.text.tokenizer_files import read_tokenizer
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files
from tinygrad_tf.types import Array, Ids

SPECIALS = ("PAD", "CLS")
CLS = SPECIALS.index("CLS")
TOKENIZER_FILE, SCALE_FILE = "tokenizer.json", "labels.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.tsv", "data/held_out.tsv"
SHORTEST_LIMIT = 32
ROWS = 128
MISTAKES_SHOWN = 5

MODEL: dict[str, Any] = {
    "d_model": 64,
    "n_heads": 4,
    "n_layers": 2,
    "dropout": 0.1,
    "scale_embedding": True,
}
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
    """The meaning of the model's output: one of `labels`, or without them mean + std times it."""

    labels: tuple[str, ...] = ()
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, labels: Sequence[str], regression: bool) -> Scale:
        """Make the scale of labels as they were read; numbers must be valid."""
        if not regression:
            return cls(tuple(sorted(set(labels))))
        numbers = np.array([float(label) for label in labels])
        return cls((), float(numbers.mean()), float(numbers.std()) or 1.0)

    def targets(self, labels: Sequence[str]) -> Array:
        """Return the targets of the model: class numbers, or standardised numbers."""
        if self.labels:
            place = {label: i for i, label in enumerate(self.labels)}
            return np.array([place[label] for label in labels], np.int64)
        return ((np.array(labels, np.float64) - self.mean) / self.std).astype(np.float32)

    def file(self) -> bytes:
        """Return the content of the file that a run keeps."""
        return (json.dumps(self._asdict(), ensure_ascii=False, indent=1) + "\n").encode()

    @classmethod
    def from_file(cls, content: bytes) -> Scale:
        """Read the content that `file` returned."""
        fields = json.loads(content)
        return cls(tuple(fields["labels"]), fields["mean"], fields["std"])


class ClassificationTask(ExampleTask):
    """An encoder with a head, labelled texts, and the share of labels that are right.

    train and held_out: the examples; sources: the ids of their texts, in the same order.
    """

    name: ClassVar[str] = "classifier"

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: TaskTokenizer,
        scale: Scale,
        train: Encoded,
        held_out: Encoded,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.recipe, self.notes = recipe, notes
        self.tokenizer, self.scale = tokenizer, scale
        self.unit = "nats per text" if scale.labels else "squared deviations"
        self._texts = [text for _, text in held_out.examples]
        self._train, self._held_out = (
            (part.sources, scale.targets([label for label, _ in part.examples]))
            for part in (train, held_out)
        )
        self.training_set = LabelledExamples(*self._train, PAD)
        self.validation_set = LabelledExamples(*self._held_out, PAD)
        self.files = {
            TOKENIZER_FILE: tokenizer.file(),
            SCALE_FILE: scale.file(),
            TRAIN_FILE: format_columns(train.examples),
            HELD_OUT_FILE: format_columns(held_out.examples),
        }

    @classmethod
    def create(
        cls,
        data: str | Path | None = None,
        *,
        regression: bool = False,
        tokenizer: str = "word",
        vocab_size: int | None = None,
        val_fraction: float = 0.1,
        **settings: Any,
    ) -> ClassificationTask:
        """Make the task of a new run, of a file `label<TAB>text` or of the embedded opinions.

        With `regression` the labels are numbers. Of a file, a random `val_fraction` of each label
        is held out. `settings` are those of EncoderConfig and of TrainOptions. Raises InputError
        where the file or a setting cannot be used.
        """
        options = TrainOptions.sort(EncoderConfig, settings)
        train, held_out = _read(data, regression, val_fraction, options.seed)
        texts = [text for _, text in (*train, *held_out)]
        words = TaskTokenizer(learn_tokenizer(tokenizer, texts, vocab_size), SPECIALS)
        given = MODEL | options.model
        most = given.get("max_length")
        limit = None if most is None else most - (given.get("pooling") == "cls")
        parts = [Encoded.of(part, words, limit) for part in (train, held_out)]
        longest = max(len(ids) for part in parts for ids in part.sources) + 1
        scale = Scale.of([label for label, _ in train], regression)
        config = EncoderConfig(
            vocab_size=words.vocab_size,
            n_outputs=max(1, len(scale.labels)),
            **({"max_length": max(SHORTEST_LIMIT, longest), "cls_id": CLS} | given),
        )
        own = {
            "data": None if data is None else str(Path(data).absolute()),
            "regression": regression,
            "tokenizer": tokenizer,
            "vocab_size": vocab_size,
            "val_fraction": val_fraction,
            "classes": dict(Counter(label for label, _ in train)) if not regression else None,
        }
        title = "classifier" if data is None else Path(data).stem
        recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
        notes = [] if data is None else read_text(data)[1].notes()
        return cls(recipe, words, scale, *parts, notes=notes)

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> ClassificationTask:
        """Make the task again of a recipe and of the files that its run has kept."""
        tokenizer, scale = tokenizer_and_scale(files)
        limit = text_limit(EncoderConfig.from_dict(recipe.model))
        train, held_out = (
            Encoded.of(parse_columns(files[name]), tokenizer, limit)
            for name in (TRAIN_FILE, HELD_OUT_FILE)
        )
        return cls(recipe, tokenizer, scale, train, held_out)

    @cached_property
    def model(self) -> Classifier | Regressor:
        """The encoder with its head."""
        return new_model(self.scale, EncoderConfig.from_dict(self.recipe.model), self.recipe.seed)

    def references(self) -> dict[str, float | None]:
        """Return the loss of guessing: each class alike, or by its frequency; or the mean."""
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
        """Return the accuracy and a confusion table, or for numbers RMSE, MAE and R²; beside
        them the figures of a bag of words.
        """
        sources, targets = self._held_out
        results = outputs(self.model, sources)
        bag = self._bag_of_words()
        if not self.scale.labels:
            return self._evaluate_numbers(results[:, 0], bag)
        labels = self.scale.labels
        predicted = results.argmax(axis=1)
        table = np.zeros((len(labels), len(labels)), np.int64)
        np.add.at(table, (targets, predicted), 1)
        wrong = np.flatnonzero(predicted != targets)[:MISTAKES_SHOWN]
        return {
            "examples": len(targets),
            "accuracy": scores.exact_match(predicted.tolist(), targets.tolist()),
            "bag_of_words": None if bag is None else float((bag == targets).mean()),
            "labels": list(labels),
            "confusion": table.tolist(),
            "mistakes": [
                {
                    "text": self._texts[i],
                    "label": labels[targets[i]],
                    "answer": labels[predicted[i]],
                }
                for i in wrong
            ],
        }

    def _evaluate_numbers(self, predicted: Array, bag: Array | None) -> dict[str, Any]:
        std, targets = self.scale.std, self._held_out[1].astype(np.float64)
        errors = (predicted - targets) * std
        variance = float(np.square((targets - targets.mean()) * std).mean())
        rmse = math.sqrt(float(np.square(errors).mean()))
        return {
            "examples": len(targets),
            "rmse": rmse,
            "mae": float(np.abs(errors).mean()),
            "r2": 1.0 - rmse**2 / variance if variance else None,
            "bag_of_words_rmse": None
            if bag is None
            else math.sqrt(float(np.square((bag - targets) * std).mean())),
        }

    def _bag_of_words(self) -> Array | None:
        """Predict the held-out targets from the words of each text, whatever their order."""
        (sources, labels), (held_out, _) = self._train, self._held_out
        train = bag_of_words.counts(sources, self.tokenizer.vocab_size)
        test = bag_of_words.counts(held_out, self.tokenizer.vocab_size)
        if train is None or test is None:
            return None
        if self.scale.labels:
            return bag_of_words.predict_classes(train, labels, test, len(self.scale.labels))
        return bag_of_words.predict_numbers(train, labels, test)


class Encoded(NamedTuple):
    """Labelled texts, and the ids of each text."""

    examples: list[Example]
    sources: list[Ids]

    @classmethod
    def of(cls, examples: list[Example], tokenizer: TaskTokenizer, limit: int | None) -> Encoded:
        """Encode every text; InputError for one of more than `limit` tokens."""
        return cls(examples, [tokenizer.encode(text, limit) for _, text in examples])


def tokenizer_and_scale(files: Files) -> tuple[TaskTokenizer, Scale]:
    """Read the tokenizer of a run and its scale, which holds the labels if it has classes."""
    tokenizer = TaskTokenizer(read_tokenizer(files[TOKENIZER_FILE]), SPECIALS)
    return tokenizer, Scale.from_file(files[SCALE_FILE])


def new_model(scale: Scale, config: EncoderConfig, seed: int = 0) -> Classifier | Regressor:
    """Make a classifier, or a regressor where there are no labels."""
    return (Classifier if scale.labels else Regressor)(config, seed)


def text_limit(config: EncoderConfig) -> int:
    """The largest number of tokens in a text."""
    return config.max_length - (config.pooling == "cls")


@no_grad()
def outputs(model: Encoder, sources: Sequence[Ids]) -> Array:
    """Return the model's output for each source, (N, K) in float64."""
    return np.concatenate([model.forward(batch).data for batch in _batches(sources)]).astype(float)


def _batches(sources: Sequence[Ids]) -> Iterator[Ids]:
    for first in range(0, len(sources), ROWS):
        yield pad_sequences(sources[first : first + ROWS], PAD)


def _read(
    data: str | Path | None, regression: bool, val_fraction: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """Read the examples to train on and those held out."""
    if data is None:
        if regression:
            raise InputError("the embedded opinions have no numbers", "give a file: number, text")
        train, held_out = ([(o.label, o.sentence) for o in part] for part in draw_opinions())
        return train, held_out
    if regression:
        return hold_out(_read_numbers(Path(data)), val_fraction, seed)
    examples = [(one.label, one.text) for one in read_labelled(data)]
    return hold_out(examples, val_fraction, seed, [label for label, _ in examples])


def _read_numbers(path: Path) -> list[Example]:
    """Read lines `number<TAB>text`; InputError names file and line where there is no number."""
    examples = []
    for line, (label, text) in enumerate(read_pairs(path), 1):
        try:
            fine = math.isfinite(float(label))
        except ValueError:
            fine = False
        if not fine:
            raise InputError(
                f"{path}, line {line}: the label {label!r} is not a number",
                "write each line as number<TAB>text, or leave out `regression`",
            )
        examples.append((label, text))
    return examples
