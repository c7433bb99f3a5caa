"""Learning to translate from pairs of sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tinygrad_tf.corpus.phrases import ALWAYS, draw_phrases
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.beam_search import greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.tasks.examples import PairExamples
from tinygrad_tf.tasks.held_out import hold_out
from tinygrad_tf.tasks.task import Files, Task, TaskOptions, TaskRecipe
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer, read_tokenizer
from tinygrad_tf.tasks.tsv import format_columns, parse_columns
from tinygrad_tf.text import scores
from tinygrad_tf.text.pairs import read_pairs, read_parallel
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.types import Ids

SPECIALS = ("PAD", "START", "END")
SOURCE_FILE, TARGET_FILE = "source_tokenizer.json", "target_tokenizer.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.tsv", "data/held_out.tsv"
# Idioms say nothing of each other: of the embedded phrases they must come more than once.
REPEATS = 20
SHORTEST_LIMIT = 24
EVALUATION_ROWS = 128
EXAMPLES_SHOWN = 5

MODEL = {
    "d_model": 64,
    "n_heads": 4,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "dropout": 0.1,
    "label_smoothing": 0.1,
    # Without it, positions of size 1 drown tokens of size 1/√d_model.
    "scale_embedding": True,
}
TRAINING = {
    "steps": 1200,
    "learning_rate": 2e-3,
    "min_lr": 1e-4,
    "warmup": 120,
    "beta2": 0.98,
    "eval_every": 200,
    "checkpoint_every": 400,
}
BATCH_SIZE = 64

Pair = tuple[str, str]


@dataclass(frozen=True)
class Languages:
    """Both sides of a translation."""

    source: TaskTokenizer
    target: TaskTokenizer

    @classmethod
    def learn(cls, pairs: Sequence[Pair], kind: str, vocab_size: int | None) -> Languages:
        """A tokenizer for each side."""
        left, right = (
            learn_tokenizer(kind, [pair[side] for pair in pairs], vocab_size) for side in (0, 1)
        )
        return cls(
            TaskTokenizer(left, SPECIALS, "source"), TaskTokenizer(right, SPECIALS, "target")
        )

    @classmethod
    def from_files(cls, files: Files) -> Languages:
        """Those of a run."""
        left, right = (read_tokenizer(files[name]) for name in (SOURCE_FILE, TARGET_FILE))
        return cls(
            TaskTokenizer(left, SPECIALS, "source"), TaskTokenizer(right, SPECIALS, "target")
        )


class TranslationTask(Task):
    """An encoder-decoder, pairs, and how many translations are right."""

    name: ClassVar[str] = "translate"

    def __init__(self, recipe: TaskRecipe, files: Files, notes: Iterable[str] = ()) -> None:
        self.recipe, self.files, self.notes = recipe, files, tuple(notes)
        self.languages = Languages.from_files(files)
        self.train_pairs = parse_columns(files[TRAIN_FILE])
        self.held_out = parse_columns(files[HELD_OUT_FILE])
        config = Seq2SeqConfig.from_dict(recipe.model)
        self.training = self._examples(self.train_pairs, config)
        self.validation = self._examples(self.held_out, config)
        self.model: Transformer = Transformer(config, recipe.seed)

    @classmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> TranslationTask:
        """The task of a recipe and of the files of `prepare_translation`."""
        return cls(recipe, files)

    def _examples(self, pairs: Sequence[Pair], config: Seq2SeqConfig) -> PairExamples:
        source, target, longest = self.languages.source, self.languages.target, config.max_length
        return PairExamples(
            [source.encode(pair[0], longest) for pair in pairs],
            [target.encode(pair[1], longest - 1) for pair in pairs],
            PAD,
        )

    def references(self) -> dict[str, float | None]:
        """What guessing costs: any token alike, or each as often as in training, nats per token."""
        return {
            "uniform": math.log(self.languages.target.vocab_size),
            "unigram": self._unigram_nats(),
        }

    def _unigram_nats(self) -> float:
        encode = self.languages.target.encode
        counts = Counter(t for _, text in self.train_pairs for t in (*encode(text).tolist(), -1))
        total = counts.total() + self.languages.target.vocab_size
        said = [t for _, text in self.held_out for t in (*encode(text).tolist(), -1)]
        return -sum(math.log((counts[t] + 1) / total) for t in said) / len(said)

    def evaluate(self) -> dict[str, Any]:
        """Exact match, token accuracy, BLEU and chrF of greedy translations of what was held out.

        Right is what equals the reference token for token. `mistakes` are the first that do not.
        """
        target = self.languages.target
        answers = [h for batch in self._batches() for h in greedy(self.model, batch)]
        tokens = [list(h.tokens) for h in answers]
        wanted = [target.encode(text).tolist() for _, text in self.held_out]
        texts = [target.decode(ids) for ids in tokens]
        references = [text for _, text in self.held_out]
        told = [
            {"source": source, "reference": right, "answer": text}
            for (source, right), text in zip(self.held_out, texts, strict=True)
        ]
        wrong = [one for one, a, b in zip(told, tokens, wanted, strict=True) if a != b]
        return {
            "examples": len(told),
            "exact_match": scores.exact_match(tokens, wanted),
            "token_accuracy": scores.token_accuracy(tokens, wanted),
            "bleu": scores.bleu(texts, references),
            "chrf": scores.chrf(texts, references),
            "samples": told[:EXAMPLES_SHOWN],
            "mistakes": wrong[:EXAMPLES_SHOWN],
        }

    def _batches(self) -> Iterator[Ids]:
        sources = [self.languages.source.encode(text) for text, _ in self.held_out]
        for first in range(0, len(sources), EVALUATION_ROWS):
            yield pad_sequences(sources[first : first + EVALUATION_ROWS], PAD)


def prepare_translation(
    options: TaskOptions,
    pairs: Path | None = None,
    targets: Path | None = None,
    *,
    tokenizer: str = "word",
    vocab_size: int | None = None,
    val_fraction: float = 0.1,
) -> TranslationTask:
    """The task of a new run: of a file of pairs, or of the embedded phrases.

    With `targets`, the sources are in the one file and their translations in the other. The
    embedded phrases that are held out combine words that no other combines. Of a file, a random
    `val_fraction` is held out. Raises InputError for whatever is wrong with the file.
    """
    notes: list[str] = []
    if pairs is None:
        learned, tested = draw_phrases()
        train = [phrase[:2] for phrase in (*learned, *ALWAYS * (REPEATS - 1))]
        held_out = [phrase[:2] for phrase in tested]
    else:
        found = read_pairs(pairs) if targets is None else read_parallel(pairs, targets)
        read = [(pair.source, pair.target) for pair in found]
        notes = [n for path in (pairs, targets) if path for n in read_text(path)[1].notes()]
        train, held_out = hold_out(read, val_fraction, options.seed or 0)
    # Also of what is held out: a word seen nowhere else is then wrong, but no fault.
    languages = Languages.learn([*train, *held_out], tokenizer, vocab_size)
    files = {
        SOURCE_FILE: languages.source.file(),
        TARGET_FILE: languages.target.file(),
        TRAIN_FILE: format_columns(train),
        HELD_OUT_FILE: format_columns(held_out),
    }
    where = "the embedded phrases" if pairs is None else str(pairs)
    longest = _longest(languages, read if pairs is not None else [*train, *held_out])
    shape = options.shape(**MODEL, max_length=max(SHORTEST_LIMIT, longest.length))
    if longest.length > shape["max_length"]:
        raise InputError(
            f"{where}, line {longest.line}: the {longest.side} takes {longest.length} positions, "
            f"and --max-length is {shape['max_length']}",
            f"use --max-length {longest.length}, or leave out long pairs",
        )
    config = Seq2SeqConfig(
        src_vocab_size=languages.source.vocab_size,
        tgt_vocab_size=languages.target.vocab_size,
        **shape,
    )
    own = {
        "texts": [str(path.absolute()) for path in (pairs, targets) if path],
        "tokenizer": tokenizer,
        "vocab_size": vocab_size,
        "val_fraction": val_fraction,
    }
    title = "translate" if pairs is None else pairs.stem
    recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
    return TranslationTask(recipe, files, notes)


class Longest(NamedTuple):
    """The positions that the longest side of all pairs needs, which side that is, and its line."""

    length: int
    side: str
    line: int


def _longest(languages: Languages, pairs: Sequence[Pair]) -> Longest:
    source, target = languages.source, languages.target
    # A target has START, or END, besides.
    sides = [
        Longest(len(side.encode(pair[column])) + column, side.name, line)
        for line, pair in enumerate(pairs, 1)
        for column, side in enumerate((source, target))
    ]
    return max(sides, key=lambda one: one.length)
