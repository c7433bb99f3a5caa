"""Learning to translate from pairs of sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tinygrad_tf.corpus.phrases import ALWAYS, draw_phrases
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.beam_search import greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import PairExamples, unigram_nats_per_target
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer
from tinygrad_tf.tasks.tsv import format_columns, parse_columns
from tinygrad_tf.text import scores
from tinygrad_tf.text.held_out import hold_out
from tinygrad_tf.text.pairs import read_pairs, read_parallel
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.text.tokenizer_files import read_tokenizer
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files
from tinygrad_tf.types import Ids

SPECIALS = ("PAD", "START", "END")
SOURCE_FILE, TARGET_FILE = "source_tokenizer.json", "target_tokenizer.json"
TRAIN_FILE, HELD_OUT_FILE = "data/train.tsv", "data/held_out.tsv"
# Idioms say nothing of each other: of the embedded phrases they must come more than once.
REPEATS = 20
SHORTEST_LIMIT = 24
EXAMPLES_SHOWN = 5

MODEL: dict[str, Any] = {
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
    """The tokenizers of both languages."""

    source: TaskTokenizer
    target: TaskTokenizer

    @classmethod
    def of(cls, source: Tokenizer, target: Tokenizer) -> Languages:
        """Make the tokenizers of the task from two tokenizers of text."""
        return cls(
            TaskTokenizer(source, SPECIALS, "source"), TaskTokenizer(target, SPECIALS, "target")
        )

    @classmethod
    def from_files(cls, files: Files) -> Languages:
        """Read the tokenizers of a run."""
        return cls.of(*(read_tokenizer(files[name]) for name in (SOURCE_FILE, TARGET_FILE)))


class Encoded(NamedTuple):
    """Pairs of texts, and the ids of both texts of each."""

    pairs: list[Pair]
    sources: list[Ids]
    targets: list[Ids]

    @classmethod
    def of(cls, pairs: list[Pair], languages: Languages) -> Encoded:
        """Encode both texts of every pair."""
        return cls(
            pairs,
            [languages.source.encode(source) for source, _ in pairs],
            [languages.target.encode(target) for _, target in pairs],
        )

    @property
    def longest(self) -> int:
        """The positions that the longest text takes; a target has START, or END, besides."""
        return max(max(map(len, self.sources)), max(map(len, self.targets)) + 1)


class TranslationTask(ExampleTask):
    """An encoder-decoder, pairs of texts, and the share of translations that are right."""

    name: ClassVar[str] = "translate"

    def __init__(
        self,
        recipe: Recipe,
        languages: Languages,
        train: Encoded,
        held_out: Encoded,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.recipe, self.notes = recipe, notes
        self.languages, self.train, self.held_out = languages, train, held_out
        self.training_set = PairExamples(train.sources, train.targets, PAD)
        self.validation_set = PairExamples(held_out.sources, held_out.targets, PAD)
        self.files = {
            SOURCE_FILE: languages.source.file(),
            TARGET_FILE: languages.target.file(),
            TRAIN_FILE: format_columns(train.pairs),
            HELD_OUT_FILE: format_columns(held_out.pairs),
        }

    @classmethod
    def create(
        cls,
        pairs: str | Path | None = None,
        targets: str | Path | None = None,
        *,
        tokenizer: str = "word",
        vocab_size: int | None = None,
        val_fraction: float = 0.1,
        **settings: Any,
    ) -> TranslationTask:
        """Make the task of a new run: of a file `source<TAB>target`, of two files of which the
        n-th lines belong together, or of the embedded phrases.

        What is held out of the phrases are combinations of words that no phrase to train on has.
        Of a file, a random `val_fraction` is held out. `settings` are those of Seq2SeqConfig and
        of TrainOptions. Raises InputError where a file or a setting cannot be used.
        """
        options = TrainOptions.sort(Seq2SeqConfig, settings)
        lines, notes = _read(pairs, targets)
        if lines is None:
            learned, tested = draw_phrases()
            train = [phrase[:2] for phrase in (*learned, *ALWAYS * (REPEATS - 1))]
            held_out = [phrase[:2] for phrase in tested]
        else:
            train, held_out = hold_out(lines, val_fraction, options.seed)
        # Also of what is held out: a word in no other text is then a mistake, but no error.
        texts = zip(*train, *held_out, strict=True)
        languages = Languages.of(*(learn_tokenizer(tokenizer, t, vocab_size) for t in texts))
        parts = [Encoded.of(part, languages) for part in (train, held_out)]
        longest = max(part.longest for part in parts)
        shape = MODEL | {"max_length": max(SHORTEST_LIMIT, longest)} | options.model
        if longest > shape["max_length"]:
            where = "the embedded phrases" if pairs is None else str(pairs)
            raise _too_long(where, lines or [*train, *held_out], languages, longest, shape)
        config = Seq2SeqConfig(
            src_vocab_size=languages.source.vocab_size,
            tgt_vocab_size=languages.target.vocab_size,
            **shape,
        )
        own = {
            "texts": [str(Path(path).absolute()) for path in (pairs, targets) if path],
            "tokenizer": tokenizer,
            "vocab_size": vocab_size,
            "val_fraction": val_fraction,
        }
        title = "translate" if pairs is None else Path(pairs).stem
        recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
        return cls(recipe, languages, *parts, notes=notes)

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> TranslationTask:
        """Make the task again of a recipe and of the files that its run has kept."""
        languages = Languages.from_files(files)
        train, held_out = (
            Encoded.of(parse_columns(files[name]), languages)
            for name in (TRAIN_FILE, HELD_OUT_FILE)
        )
        return cls(recipe, languages, train, held_out)

    @cached_property
    def model(self) -> Transformer:
        """The encoder-decoder."""
        return Transformer(Seq2SeqConfig.from_dict(self.recipe.model), self.recipe.seed)

    def references(self) -> dict[str, float | None]:
        """Return the loss of guessing, in nats per token: each token alike, or by its frequency
        in training.
        """
        size = self.languages.target.vocab_size
        unigram = unigram_nats_per_target(self.train.targets, self.held_out.targets, size)
        return {"uniform": math.log(size), "unigram": unigram}

    def evaluate(self) -> dict[str, Any]:
        """Return exact match, token accuracy, BLEU and chrF of greedy translations of the
        held-out sources.

        A translation is right if it equals the reference token for token; `mistakes` are the
        first that do not.
        """
        pairs, sources, targets = self.held_out
        rows = self.EVALUATION_ROWS
        batches = (
            pad_sequences(sources[first : first + rows], PAD)
            for first in range(0, len(sources), rows)
        )
        tokens = [list(h.tokens) for batch in batches for h in greedy(self.model, batch)]
        expected = [ids.tolist() for ids in targets]
        texts = [self.languages.target.decode(ids) for ids in tokens]
        references = [text for _, text in pairs]
        answers = [
            {"source": source, "reference": right, "answer": text}
            for (source, right), text in zip(pairs, texts, strict=True)
        ]
        wrong = [one for one, a, b in zip(answers, tokens, expected, strict=True) if a != b]
        return {
            "examples": len(answers),
            "exact_match": scores.exact_match(tokens, expected),
            "token_accuracy": scores.token_accuracy(tokens, expected),
            "bleu": scores.bleu(texts, references),
            "chrf": scores.chrf(texts, references),
            "samples": answers[:EXAMPLES_SHOWN],
            "mistakes": wrong[:EXAMPLES_SHOWN],
        }


def _read(
    pairs: str | Path | None, targets: str | Path | None
) -> tuple[list[Pair] | None, list[str]]:
    """Read the pairs of one file or of two, and notes on them; None without a file."""
    if pairs is None:
        return None, []
    read = read_pairs(pairs) if targets is None else read_parallel(pairs, targets)
    notes = [note for path in (pairs, targets) if path for note in read_text(path)[1].notes()]
    return [(pair.source, pair.target) for pair in read], notes


def _too_long(
    where: str,
    pairs: Sequence[Pair],
    languages: Languages,
    longest: int,
    shape: Mapping[str, Any],
) -> InputError:
    """Make the error for a text of `longest` positions, naming its line."""
    line, name = next(
        (line, side.name)
        for line, pair in enumerate(pairs, 1)
        for column, side in enumerate((languages.source, languages.target))
        if len(side.encode(pair[column])) + column == longest
    )
    return InputError(
        f"{where}, line {line}: the {name} takes {longest} positions, "
        f"and `max_length` is {shape['max_length']}",
        f"use `max_length={longest}`, or leave out long pairs",
    )
