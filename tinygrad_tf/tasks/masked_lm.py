"""Learning to fill in hidden tokens, and filling them in (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinygrad_tf.corpus.pronouns import draw_coreferences
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import EncoderConfig, MaskedLanguageModel
from tinygrad_tf.tasks.examples import HiddenExamples, in_batches
from tinygrad_tf.tasks.held_out import hold_out
from tinygrad_tf.tasks.task import Files, OpenedRun, Task, TaskOptions, TaskRecipe
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer, learn_tokenizer, read_tokenizer
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.text.tokenizers import Unknown
from tinygrad_tf.types import IGNORE

SPECIALS = ("PAD", "MASK")
# How a hidden token is written: [MASK], or a _ that is no part of a word.
HIDDEN = re.compile(r"\[MASK\]|(?<!\w)_+(?!\w)")
TOKENIZER_FILE = "tokenizer.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.txt", "data/held_out.txt"
SHORTEST_LIMIT, LONGEST_LIMIT = 32, 256
ROWS = 128
MOST_PROBABLE = 5

MODEL = {"d_model": 64, "n_heads": 4, "n_layers": 2, "scale_embedding": True}
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


class FillTask(Task):
    """A masked-token model, texts, and how many hidden tokens it finds."""

    name: ClassVar[str] = "fill"
    unit = "nats per hidden token"

    def __init__(self, recipe: TaskRecipe, files: Files, notes: Iterable[str] = ()) -> None:
        self.recipe, self.files, self.notes = recipe, files, tuple(notes)
        self.side = TaskTokenizer(read_tokenizer(files[TOKENIZER_FILE]), SPECIALS)
        config = EncoderConfig.from_dict(recipe.model)
        self.model: MaskedLanguageModel = MaskedLanguageModel(config, recipe.seed)
        rate = recipe.options["mask_rate"]
        self._sources = {
            name: [self.side.encode(text, config.max_length) for text in _lines(files[name])]
            for name in (TRAIN_FILE, HELD_OUT_FILE)
        }
        self.training = HiddenExamples(self._sources[TRAIN_FILE], self.model, rate)
        self.validation = HiddenExamples(self._sources[HELD_OUT_FILE], self.model, rate)

    @classmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> FillTask:
        """The task of a recipe and of the files of `prepare_filling`."""
        return cls(recipe, files)

    def references(self) -> dict[str, float | None]:
        """What guessing costs: any token alike, or each as often as in training."""
        size = self.side.vocab_size
        counts = np.bincount(np.concatenate(self._sources[TRAIN_FILE]), minlength=size) + 1
        said = np.concatenate(self._sources[HELD_OUT_FILE])
        unigram = -np.log(counts[said] / counts.sum()).mean()
        return {"uniform": math.log(size), "unigram": float(unigram)}

    @no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Of tokens hidden in the texts held out: how many are the first, or among five, answers.

        perplexity: e to the mean loss per hidden token.
        """
        ranks, losses = [], []
        for batch in in_batches(self.validation, ROWS):
            ids, labels = batch.arguments
            log_probs = _log_softmax(self.model.forward(ids).data[labels != IGNORE])
            wanted = labels[labels != IGNORE]
            right = log_probs[np.arange(len(wanted)), wanted]
            ranks.append((log_probs > right[:, None]).sum(axis=1))
            losses.append(-right)
        rank, loss = np.concatenate(ranks), np.concatenate(losses)
        return {
            "examples": len(self._sources[HELD_OUT_FILE]),
            "hidden": len(rank),
            "accuracy": float((rank == 0).mean()),
            "among_five": float((rank < 5).mean()),
            "perplexity": float(np.exp(loss.mean())),
        }


def prepare_filling(
    options: TaskOptions,
    texts: Path | None = None,
    *,
    mask_rate: float = 0.15,
    tokenizer: str = "word",
    vocab_size: int | None = None,
    val_fraction: float = 0.1,
) -> FillTask:
    """The task of a new run: of a file with a text on each line, or of embedded sentences.

    Empty lines are passed over. Raises InputError for whatever is wrong with the file.
    """
    notes: list[str] = []
    if texts is None:
        where = "the embedded sentences"
        train, held_out = ([s.text for s in part] for part in draw_coreferences())
        numbered = list(enumerate([*train, *held_out], 1))
    else:
        where = str(texts)
        content, report = read_text(texts)
        notes = report.notes()
        numbered = [(n, line.strip()) for n, line in enumerate(content.split("\n"), 1)]
        numbered = [(n, line) for n, line in numbered if line]
        train, held_out = hold_out([line for _, line in numbered], val_fraction, options.seed or 0)
    side = TaskTokenizer(
        learn_tokenizer(tokenizer, [line for _, line in numbered], vocab_size), SPECIALS
    )
    longest, line = max((len(side.encode(line)), -n) for n, line in numbered)
    limit = min(LONGEST_LIMIT, max(SHORTEST_LIMIT, longest))
    shape = options.shape(**MODEL, max_length=limit, mask_id=SPECIALS.index("MASK"))
    if longest > shape["max_length"]:
        raise InputError(
            f"{where}, line {-line}: {longest} tokens, more than the {shape['max_length']} of "
            "--max-length",
            f"break the line up, or use --max-length {longest}",
        )
    files = {
        TOKENIZER_FILE: side.file(),
        TRAIN_FILE: "".join(text + "\n" for text in train).encode(),
        HELD_OUT_FILE: "".join(text + "\n" for text in held_out).encode(),
    }
    own = {
        "texts": None if texts is None else str(texts.absolute()),
        "mask_rate": mask_rate,
        "tokenizer": tokenizer,
        "vocab_size": vocab_size,
        "val_fraction": val_fraction,
    }
    config = EncoderConfig(vocab_size=side.vocab_size, **shape)
    title = "fill" if texts is None else texts.stem
    recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
    return FillTask(recipe, files, notes)


@dataclass(frozen=True)
class Filled:
    """A text with its hidden tokens filled in, and for each the likeliest with probabilities."""

    text: str
    answers: tuple[tuple[tuple[str, float], ...], ...]


class Filler:
    """A trained masked-token model with its tokenizer."""

    def __init__(self, model: MaskedLanguageModel, side: TaskTokenizer) -> None:
        self.model, self.side = model, side
        self.model.eval()

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "best") -> Filler:
        """That of a run; weights: "best" by validation loss, or "last".

        Raises InputError where the directory is not a whole run of `tt train-fill`.
        """
        run = OpenedRun.open(run_dir, FillTask.name)
        model = MaskedLanguageModel(EncoderConfig.from_dict(run.recipe.model))
        model.load_tensors(run.weights(weights))
        return cls(model, TaskTokenizer(read_tokenizer(run.files[TOKENIZER_FILE]), SPECIALS))

    @no_grad()
    def fill(self, text: str, count: int = MOST_PROBABLE, unknown: Unknown = "error") -> Filled:
        """The `count` likeliest tokens for each [MASK] or _, each by itself.

        Raises InputError where nothing is hidden, or the text cannot be read.
        """
        mask = SPECIALS.index("MASK")
        ids: list[int] = []
        for number, piece in enumerate(HIDDEN.split(text.strip())):
            # The space before a token is its own, where tokens have any.
            try:
                told = self.side.ids(piece.rstrip(), unknown)
            except InputError as fault:
                raise InputError(f"in {piece.strip()!r}: {fault.what}", fault.next) from fault
            ids += [mask] * bool(number) + told.tolist()
        places = [at for at, token in enumerate(ids) if token == mask]
        longest = self.model.config.max_length
        if not places:
            raise InputError(f"nothing is hidden in {text!r}", "write _ or [MASK] for a word")
        if len(ids) > longest:
            raise InputError(
                f"the text has {len(ids)} tokens, and the most is {longest}", "shorten it"
            )
        logits = self.model.forward(np.array([ids])).data[0, places].astype(np.float64)
        logits[:, : len(SPECIALS)] = -np.inf
        probs = np.exp(_log_softmax(logits))
        best = np.argsort(-probs, axis=1, kind="stable")
        for at, order in zip(places, best, strict=True):
            ids[at] = int(order[0])
        answers = tuple(
            tuple((self.side.token_text(int(i)), float(row[i])) for i in order[:count])
            for row, order in zip(probs, best, strict=True)
        )
        return Filled(self.side.decode(ids), answers)


def _log_softmax(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: npt.NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def _lines(content: bytes) -> Sequence[str]:
    return content.decode().split("\n")[:-1]
