"""Learning to fill in hidden tokens, and filling them in (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygrad_tf.corpus.pronouns import draw_coreferences
from tinygrad_tf.engine import ops
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import EncoderConfig, MaskedLanguageModel
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import HiddenExamples, in_batches
from tinygrad_tf.tasks.predictor import Predictor
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer, learn_tokenizer
from tinygrad_tf.text.held_out import hold_out
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.text.tokenizer_files import read_tokenizer
from tinygrad_tf.text.tokenizers import Unknown
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files, StoredRun
from tinygrad_tf.train.task import Task
from tinygrad_tf.types import IGNORE, Ids

SPECIALS = ("PAD", "MASK")
MASK = SPECIALS.index("MASK")
# How a hidden token is written: [MASK], or a _ that is no part of a word.
HIDDEN = re.compile(r"\[MASK\]|(?<!\w)_+(?!\w)")
TOKENIZER_FILE = "tokenizer.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.txt", "data/held_out.txt"
SHORTEST_LIMIT, LONGEST_LIMIT = 32, 256
MOST_PROBABLE = 5

MODEL: dict[str, Any] = {"d_model": 64, "n_heads": 4, "n_layers": 2, "scale_embedding": True}
TRAINING = {
    "steps": 1500,
    "learning_rate": 2e-3,
    "min_lr": 1e-4,
    "warmup": 150,
    "beta2": 0.98,
    "eval_every": 250,
    "checkpoint_every": 500,
}
BATCH_SIZE = 64


class MaskedLMTask(ExampleTask):
    """A masked-token model, texts, and the share of hidden tokens that it finds.

    train and held_out: texts, a line each, and their ids.
    """

    name: ClassVar[str] = "fill"
    unit = "nats per hidden token"

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: TaskTokenizer,
        train: Encoded,
        held_out: Encoded,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.recipe, self.notes, self.tokenizer = recipe, notes, tokenizer
        self._train, self._held_out = train.sources, held_out.sources
        rate = recipe.options["mask_rate"]
        self.training_set = HiddenExamples(self._train, self.model, rate)
        self.validation_set = HiddenExamples(self._held_out, self.model, rate)
        self.files = {
            TOKENIZER_FILE: tokenizer.file(),
            TRAIN_FILE: "".join(text + "\n" for text in train.texts).encode(),
            HELD_OUT_FILE: "".join(text + "\n" for text in held_out.texts).encode(),
        }

    @classmethod
    def create(
        cls,
        texts: str | Path | None = None,
        *,
        mask_rate: float = 0.15,
        tokenizer: str = "word",
        vocab_size: int | None = None,
        val_fraction: float = 0.1,
        **settings: Any,
    ) -> MaskedLMTask:
        """Make the task of a new run, of a file with a text on each line or of embedded sentences.

        Empty lines are passed over. `settings` are those of EncoderConfig and of TrainOptions.
        Raises InputError where the file or a setting cannot be used.
        """
        options = TrainOptions.sort(EncoderConfig, settings)
        notes: list[str] = []
        if texts is None:
            train, held_out = ([s.text for s in part] for part in draw_coreferences())
            lines = [*train, *held_out]
        else:
            content, report = read_text(texts)
            notes = report.notes()
            lines = [line.strip() for line in content.split("\n")]
            train, held_out = hold_out([x for x in lines if x], val_fraction, options.seed)
        words = TaskTokenizer(
            learn_tokenizer(tokenizer, [line for line in lines if line], vocab_size), SPECIALS
        )
        parts = [Encoded.of(part, words) for part in (train, held_out)]
        longest = max(len(ids) for part in parts for ids in part.sources)
        limit = min(LONGEST_LIMIT, max(SHORTEST_LIMIT, longest))
        shape = MODEL | {"max_length": limit, "mask_id": MASK} | options.model
        if longest > shape["max_length"]:
            number = 1 + next(n for n, x in enumerate(lines) if x and len(words.ids(x)) == longest)
            where = "the embedded sentences" if texts is None else texts
            raise InputError(
                f"{where}, line {number}: {longest} tokens, more than the {shape['max_length']} "
                "of `max_length`",
                f"break the line up, or use `max_length={longest}`",
            )
        config = EncoderConfig(vocab_size=words.vocab_size, **shape)
        own = {
            "texts": None if texts is None else str(Path(texts).absolute()),
            "mask_rate": mask_rate,
            "tokenizer": tokenizer,
            "vocab_size": vocab_size,
            "val_fraction": val_fraction,
        }
        title = "fill" if texts is None else Path(texts).stem
        recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
        return cls(recipe, words, *parts, notes=notes)

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> MaskedLMTask:
        """Make the task again of a recipe and of the files that its run has kept."""
        tokenizer = _read_tokenizer(files)
        train, held_out = (
            Encoded.of(files[name].decode().split("\n")[:-1], tokenizer)
            for name in (TRAIN_FILE, HELD_OUT_FILE)
        )
        return cls(recipe, tokenizer, train, held_out)

    @cached_property
    def model(self) -> MaskedLanguageModel:
        """The encoder that predicts hidden tokens."""
        return MaskedLanguageModel(EncoderConfig.from_dict(self.recipe.model), self.recipe.seed)

    def references(self) -> dict[str, float | None]:
        """Return the loss of guessing: each token alike, or by its frequency in training."""
        size = self.tokenizer.vocab_size
        counts = np.bincount(np.concatenate(self._train), minlength=size) + 1
        unigram = -np.log(counts[np.concatenate(self._held_out)] / counts.sum()).mean()
        return {"uniform": math.log(size), "unigram": float(unigram)}

    @no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Return the shares of tokens hidden in the held-out texts that are the likeliest, or
        among the five likeliest; perplexity: e to the mean loss per hidden token.
        """
        ranks, losses = [], []
        for batch in in_batches(self.validation_set, self.EVALUATION_ROWS):
            ids, labels = batch.arguments
            hidden = labels != IGNORE
            log_probs = ops.log_softmax(self.model.forward(ids).data[hidden]).data
            right = log_probs[np.arange(len(log_probs)), labels[hidden]]
            ranks.append((log_probs > right[:, None]).sum(axis=1))
            losses.append(-right)
        rank, loss = np.concatenate(ranks), np.concatenate(losses)
        return {
            "examples": len(self._held_out),
            "hidden": len(rank),
            "accuracy": float((rank == 0).mean()),
            "among_five": float((rank < 5).mean()),
            "perplexity": float(np.exp(loss.mean())),
        }


class Encoded(NamedTuple):
    """Texts, and the ids of each."""

    texts: list[str]
    sources: list[Ids]

    @classmethod
    def of(cls, texts: list[str], tokenizer: TaskTokenizer) -> Encoded:
        """Encode every text."""
        return cls(texts, [tokenizer.encode(text) for text in texts])


def _read_tokenizer(files: Files) -> TaskTokenizer:
    return TaskTokenizer(read_tokenizer(files[TOKENIZER_FILE]), SPECIALS)


@dataclass(frozen=True)
class Filled:
    """A text with its hidden tokens filled in, and for each the likeliest with probabilities."""

    text: str
    answers: tuple[tuple[tuple[str, float], ...], ...]


class MaskFiller(Predictor):
    """A trained masked-token model with its tokenizer."""

    task: ClassVar[type[Task]] = MaskedLMTask
    model: MaskedLanguageModel

    def __init__(self, model: MaskedLanguageModel, tokenizer: TaskTokenizer) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer

    @classmethod
    def from_run(cls, run: StoredRun) -> MaskFiller:
        """Make the model, without its weights, and its tokenizer, of what a run has kept."""
        model = MaskedLanguageModel(EncoderConfig.from_dict(run.recipe.model))
        return cls(model, _read_tokenizer(run.files))

    @no_grad()
    def fill(self, text: str, count: int = MOST_PROBABLE, unknown: Unknown = "error") -> Filled:
        """Find the `count` likeliest tokens for each [MASK] or _, each by itself.

        Raises InputError where nothing is hidden, or the text cannot be read.
        """
        ids: list[int] = []
        for number, piece in enumerate(HIDDEN.split(text.strip())):
            # The space before a token is its own, where tokens have any.
            try:
                part = self.tokenizer.ids(piece.rstrip(), unknown)
            except InputError as fault:
                raise InputError(f"in {piece.strip()!r}: {fault.what}", fault.next) from fault
            ids += [MASK] * bool(number) + part.tolist()
        places = [at for at, token in enumerate(ids) if token == MASK]
        longest = self.model.config.max_length
        if not places:
            raise InputError(f"nothing is hidden in {text!r}", "write _ or [MASK] for a word")
        if len(ids) > longest:
            raise InputError(
                f"the text has {len(ids)} tokens, and the most is {longest}", "shorten it"
            )
        logits = self.model.forward(np.array([ids])).data[0, places].astype(np.float64)
        logits[:, : len(SPECIALS)] = -np.inf
        probs = np.exp(ops.log_softmax(logits).data)
        best = np.argsort(-probs, axis=1, kind="stable")
        for at, order in zip(places, best, strict=True):
            ids[at] = int(order[0])
        answers = tuple(
            tuple((self.tokenizer.token_text(int(i)), float(row[i])) for i in order[:count])
            for row, order in zip(probs, best, strict=True)
        )
        return Filled(self.tokenizer.decode(ids), answers)
