"""Learning to transcribe speech, from sounds and their words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tinygrad_tf.audio import MFCCSettings, SpeechFeatures
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.beam_search import greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import PairExamples, Sequences, unigram_nats_per_target
from tinygrad_tf.tasks.recordings import deal, find_recordings
from tinygrad_tf.tasks.speech_features import (
    Utterance,
    command_utterances,
    pack,
    recorded_utterances,
    seconds_of_vector,
    unpack,
)
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer
from tinygrad_tf.text import scores
from tinygrad_tf.text.tokenizer_files import read_tokenizer
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files

SPECIALS = ("PAD", "START", "END")
TOKENIZER_FILE = "tokenizer.json"
TRAIN_FILES = ("data/train.jsonl", "data/train.npy")
HELD_OUT_FILES = ("data/held_out.jsonl", "data/held_out.npy")
EXAMPLES_SHOWN = 5

UTTERANCES, SPEAKERS = 5000, 500
# Of the embedded commands, one is held out for so many to train on; so of their speakers.
ONE_HELD_OUT_FOR = 10

MODEL: dict[str, Any] = {
    "d_model": 64,
    "n_heads": 4,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "norm": "pre",
    "dropout": 0.1,
    "label_smoothing": 0.1,
    "max_length": 512,  # 20 seconds
}
TRAINING = {
    "steps": 1000,
    "learning_rate": 1.5e-3,
    "min_lr": 1e-4,
    "warmup": 100,
    "weight_decay": 0.01,
    "eval_every": 250,
    "checkpoint_every": 500,
}
BATCH_SIZE = 32


class SpeechTask(ExampleTask):
    """An encoder-decoder, utterances, and the share of them transcribed word for word."""

    name: ClassVar[str] = "speech"
    unit = "nats per word"

    def __init__(
        self,
        recipe: Recipe,
        words: TaskTokenizer,
        train: list[Utterance],
        held_out: list[Utterance],
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.recipe, self.notes, self.words = recipe, notes, words
        self.train, self.held_out = train, held_out
        self._targets = [[words.encode(u.text) for u in part] for part in (train, held_out)]
        self.training_set, self.validation_set = (
            PairExamples([u.vectors for u in part], targets, PAD)
            for part, targets in zip((train, held_out), self._targets, strict=True)
        )
        names = (TOKENIZER_FILE, *TRAIN_FILES, *HELD_OUT_FILES)
        contents = (words.file(), *pack(train), *pack(held_out))
        self.files = dict(zip(names, contents, strict=True))

    @classmethod
    def create(
        cls,
        recordings: str | Path | None = None,
        *,
        val_fraction: float = 0.1,
        utterances: int = UTTERANCES,
        speakers: int = SPEAKERS,
        **settings: Any,
    ) -> SpeechTask:
        """Make the task of a new run: of recordings, see `find_recordings`, or of the embedded
        voice.

        The voice says `utterances` commands as `speakers` speakers; what is held out are other
        sentences by other speakers. Of recordings, about `val_fraction` are held out, see `deal`.
        `settings` are those of Seq2SeqConfig and of TrainOptions. Raises InputError where a
        recording or a setting cannot be used.
        """
        options, features = TrainOptions.sort(Seq2SeqConfig, settings), SpeechFeatures()
        shape = MODEL | options.model
        longest: int = shape["max_length"]
        own: dict[str, Any] = {"features": asdict(features)}
        if recordings is None:
            title = "speech"
            train, held_out = (
                command_utterances(
                    -(-utterances // part),
                    -(-speakers // part),
                    options.seed,
                    features,
                    longest,
                    held_out=new,
                )
                for part, new in ((1, False), (ONE_HELD_OUT_FOR, True))
            )
            own |= {"utterances": utterances, "speakers": speakers}
        else:
            where = Path(recordings)
            title = where.resolve().stem
            train, held_out = _recorded(where, val_fraction, options.seed, features, longest)
            own |= {"recordings": str(where.absolute()), "val_fraction": val_fraction}
        # Also of what is held out: a word in no other text is then a mistake, but no error.
        texts = [u.text for u in train + held_out]
        words = TaskTokenizer(learn_tokenizer("word", texts), SPECIALS)
        config = Seq2SeqConfig(
            src_features=features.n_dim, tgt_vocab_size=words.vocab_size, **shape
        )
        for one in train + held_out:
            _require_room(one, words, config.max_length)
        recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
        return cls(recipe, words, train, held_out, notes=[_amount(train, held_out, features)])

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> SpeechTask:
        """Make the task again of a recipe and of the files that its run has kept."""
        train, held_out = (
            unpack(*(files[name] for name in names)) for names in (TRAIN_FILES, HELD_OUT_FILES)
        )
        return cls(recipe, read_words(files), train, held_out)

    @cached_property
    def model(self) -> Transformer:
        """The encoder-decoder."""
        return Transformer(Seq2SeqConfig.from_dict(self.recipe.model), self.recipe.seed)

    def references(self) -> dict[str, float | None]:
        """Return the loss of guessing, in nats per word: each word alike, or by its frequency in
        training.
        """
        size = self.words.vocab_size
        train, held_out = self._targets
        unigram = unigram_nats_per_target(train, held_out, size)
        return {"uniform": math.log(size), "unigram": unigram}

    def evaluate(self) -> dict[str, Any]:
        """Return the share of held-out utterances transcribed word for word by greedy decoding,
        and the errors per word.

        exact_match_new: the share of those whose sentence is not trained on, None without any.
        """
        known = {u.text for u in self.train}
        answers = [
            {"name": u.name, "reference": self._spelled(u.text), "answer": self.words.decode(ids)}
            for u, ids in zip(self.held_out, self._answers(), strict=True)
        ]
        right = [one["answer"] == one["reference"] for one in answers]
        new = [r for r, u in zip(right, self.held_out, strict=True) if u.text not in known]
        return {
            "examples": len(answers),
            "exact_match": sum(right) / len(right),
            "examples_new": len(new),
            "exact_match_new": sum(new) / len(new) if new else None,
            "word_error_rate": scores.word_error_rate(
                [one["answer"] for one in answers], [one["reference"] for one in answers]
            ),
            "samples": answers[:EXAMPLES_SHOWN],
            "mistakes": [a for a, r in zip(answers, right, strict=True) if not r][:EXAMPLES_SHOWN],
        }

    def _spelled(self, text: str) -> str:
        """Return a text with the spaces that the tokenizer writes."""
        return self.words.decode(self.words.encode(text))

    def _answers(self) -> Iterator[tuple[int, ...]]:
        sounds = Sequences([u.vectors for u in self.held_out], PAD)
        for first in range(0, len(self.held_out), self.EVALUATION_ROWS):
            rows = np.arange(first, min(first + self.EVALUATION_ROWS, len(self.held_out)))
            source, lengths = sounds.padded(rows), sounds.lengths[rows]
            limit = most_words(source.shape[1], self.model.config)
            yield from (h.tokens for h in greedy(self.model, source, limit, src_lengths=lengths))


def read_words(files: Files) -> TaskTokenizer:
    """Read the words that a run knows."""
    return TaskTokenizer(read_tokenizer(files[TOKENIZER_FILE]), SPECIALS, "transcript")


def read_features(recipe: Recipe) -> SpeechFeatures:
    """Return the feature settings stored in the recipe."""
    fields = recipe.options["features"]
    return SpeechFeatures(**fields | {"mfcc": MFCCSettings(**fields["mfcc"])})


def most_words(length: int, config: Seq2SeqConfig) -> int:
    """The largest number of tokens for a source of `length` vectors: one for each, and END."""
    return min(config.max_length, length + 1)


def _recorded(
    where: Path, share: float, seed: int, features: SpeechFeatures, longest: int
) -> tuple[list[Utterance], list[Utterance]]:
    """Read the recordings to train on and those held out."""
    recordings = find_recordings(where)
    # Dealt before the features are extracted: that takes the time.
    held = deal([one.text for one in recordings], share, seed)
    parts: tuple[list[Utterance], list[Utterance]] = ([], [])
    for index, one in enumerate(recorded_utterances(recordings, features, longest)):
        parts[index in held].append(one)
    return parts


def _require_room(one: Utterance, words: TaskTokenizer, most: int) -> None:
    count = len(words.encode(one.text)) + 1
    if count > most:
        raise InputError(
            f"{one.name} says {count - 1} words, which with END take {count} positions, and "
            f"`max_length` is {most}",
            f"cut it into sentences, or use `max_length={count}`",
        )


def _amount(
    train: Sequence[Utterance], held_out: Sequence[Utterance], features: SpeechFeatures
) -> str:
    """Describe how much speech there is."""
    known = {u.text for u in train}
    new = sum(u.text not in known for u in held_out)
    minutes = sum(len(u.vectors) for u in train) * seconds_of_vector(features) / 60
    return (
        f"{minutes:.1f} minutes of speech to train on, {len(known)} different sentences; "
        f"{new} of {len(held_out)} held out say others"
    )
