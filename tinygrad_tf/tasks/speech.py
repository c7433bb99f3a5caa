"""Learning to write down what is said, from sounds and their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tinygrad_tf.audio import MFCCSettings, SpeechFeatures
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.beam_search import greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.tasks.examples import PairExamples, Sequences
from tinygrad_tf.tasks.recordings import deal, find_recordings
from tinygrad_tf.tasks.speech_features import (
    Utterance,
    hear_commands,
    hear_files,
    pack,
    seconds_of_vector,
    unpack,
)
from tinygrad_tf.tasks.task import Files, Task, TaskOptions, TaskRecipe
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer, learn_tokenizer, read_tokenizer
from tinygrad_tf.text import scores

SPECIALS = ("PAD", "START", "END")
WORDS_FILE = "tokenizer.json"
TRAIN_FILES = ("data/train.jsonl", "data/train.npy")
HELD_OUT_FILES = ("data/held_out.jsonl", "data/held_out.npy")
EVALUATION_ROWS = 128
EXAMPLES_SHOWN = 5

UTTERANCES, SPEAKERS = 5000, 500
# Of the embedded commands, one is held out for so many to train on; so of their speakers.
ONE_HELD_OUT_FOR = 10

MODEL = {
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


class SpeechTask(Task):
    """An encoder-decoder, utterances, and how many are written down word for word."""

    name: ClassVar[str] = "speech"
    unit = "nats per word"

    def __init__(self, recipe: TaskRecipe, files: Files, notes: Iterable[str] = ()) -> None:
        self.recipe, self.files, self.notes = recipe, files, tuple(notes)
        self.words = words_of(files)
        self.learned = unpack(*(files[name] for name in TRAIN_FILES))
        self.held_out = unpack(*(files[name] for name in HELD_OUT_FILES))
        self.training = self._examples(self.learned)
        self.validation = self._examples(self.held_out)
        self.model: Transformer = Transformer(Seq2SeqConfig.from_dict(recipe.model), recipe.seed)

    @classmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> SpeechTask:
        """The task of a recipe and of the files of `prepare_speech`."""
        return cls(recipe, files)

    def _examples(self, utterances: Sequence[Utterance]) -> PairExamples:
        texts = [self.words.encode(u.text) for u in utterances]
        return PairExamples([u.vectors for u in utterances], texts, PAD)

    def references(self) -> dict[str, float | None]:
        """What guessing costs: any word alike, or each as often as in training, nats per word."""
        end, size = -1, self.words.vocab_size
        said, heard = (
            [token for u in some for token in (*self.words.encode(u.text).tolist(), end)]
            for some in (self.learned, self.held_out)
        )
        counts = Counter(said)
        nats = [-math.log((counts[token] + 1) / (len(said) + size)) for token in heard]
        return {"uniform": math.log(size), "unigram": sum(nats) / len(nats)}

    def evaluate(self) -> dict[str, Any]:
        """How many held-out utterances are right word for word, and errors per word, greedily.

        exact_match_new: the share of those whose sentence is not trained on, None without any.
        """
        known = {u.text for u in self.learned}
        told = [
            {"name": u.name, "reference": self._spelled(u.text), "answer": self.words.decode(ids)}
            for u, ids in zip(self.held_out, self._answers(), strict=True)
        ]
        right = [one["answer"] == one["reference"] for one in told]
        new = [r for r, u in zip(right, self.held_out, strict=True) if u.text not in known]
        return {
            "examples": len(told),
            "exact_match": sum(right) / len(right),
            "examples_new": len(new),
            "exact_match_new": sum(new) / len(new) if new else None,
            "word_error_rate": scores.word_error_rate(
                [one["answer"] for one in told], [one["reference"] for one in told]
            ),
            "samples": told[:EXAMPLES_SHOWN],
            "mistakes": [o for o, r in zip(told, right, strict=True) if not r][:EXAMPLES_SHOWN],
        }

    def _spelled(self, text: str) -> str:
        """A text with the spaces that the tokenizer gives."""
        return self.words.decode(self.words.encode(text))

    def _answers(self) -> Iterator[tuple[int, ...]]:
        sounds = Sequences([u.vectors for u in self.held_out], PAD)
        for first in range(0, len(self.held_out), EVALUATION_ROWS):
            rows = np.arange(first, min(first + EVALUATION_ROWS, len(self.held_out)))
            source, lengths = sounds.padded(rows), sounds.lengths[rows]
            limit = most_words(source.shape[1], self.model.config)
            yield from (h.tokens for h in greedy(self.model, source, limit, src_lengths=lengths))


def words_of(files: Files) -> TaskTokenizer:
    """The words that a run knows."""
    return TaskTokenizer(read_tokenizer(files[WORDS_FILE]), SPECIALS, "transcript")


def features_of(recipe: TaskRecipe) -> SpeechFeatures:
    """How a run hears."""
    kept = recipe.options["features"]
    return SpeechFeatures(**kept | {"mfcc": MFCCSettings(**kept["mfcc"])})


def most_words(length: int, config: Seq2SeqConfig) -> int:
    """How many tokens are written at most for so many vectors: one each, and END."""
    return min(config.max_length, length + 1)


def prepare_speech(
    options: TaskOptions,
    recordings: Path | None = None,
    *,
    val_fraction: float = 0.1,
    utterances: int = UTTERANCES,
    speakers: int = SPEAKERS,
) -> SpeechTask:
    """The task of a new run: of recordings, see `find_recordings`, or of the embedded voice.

    The voice says `utterances` commands as `speakers` speakers; what is held out are other
    sentences by other speakers. Of recordings, about `val_fraction` are held out, see `deal`.
    Raises InputError for whatever is wrong with a recording.
    """
    features, shape, seed = SpeechFeatures(), options.shape(**MODEL), options.seed or 0
    own: dict[str, Any] = {"features": asdict(features)}
    if recordings is None:
        title, longest = "speech", shape["max_length"]
        train, held_out = (
            hear_commands(
                -(-utterances // part), -(-speakers // part), seed, features, longest, held_out=new
            )
            for part, new in ((1, False), (ONE_HELD_OUT_FOR, True))
        )
        own |= {"utterances": utterances, "speakers": speakers}
    else:
        title = recordings.resolve().stem
        train, held_out = _recorded(recordings, val_fraction, seed, features, shape["max_length"])
        own |= {"recordings": str(recordings.absolute()), "val_fraction": val_fraction}
    # Also of what is held out: a word seen nowhere else is then wrong, but no fault.
    words = TaskTokenizer(learn_tokenizer("word", [u.text for u in train + held_out]), SPECIALS)
    config = Seq2SeqConfig(src_features=features.n_dim, tgt_vocab_size=words.vocab_size, **shape)
    for one in train + held_out:
        _require_room(one, words, config.max_length)
    files = {WORDS_FILE: words.file()}
    for names, some in ((TRAIN_FILES, train), (HELD_OUT_FILES, held_out)):
        files.update(zip(names, pack(some), strict=True))
    recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
    return SpeechTask(recipe, files, [_what_there_is(train, held_out, features)])


def _recorded(
    where: Path, share: float, seed: int, features: SpeechFeatures, longest: int
) -> tuple[list[Utterance], list[Utterance]]:
    """What is trained on, and what is held out."""
    found = find_recordings(where)
    # Dealt before they are heard: that takes the time.
    held = deal([one.text for one in found], share, seed)
    parts: tuple[list[Utterance], list[Utterance]] = ([], [])
    for index, one in enumerate(hear_files(found, features, longest)):
        parts[index in held].append(one)
    return parts


def _require_room(one: Utterance, words: TaskTokenizer, most: int) -> None:
    count = len(words.encode(one.text)) + 1
    if count > most:
        raise InputError(
            f"{one.name} says {count - 1} words, which with END take {count} positions, and "
            f"--max-length is {most}",
            f"cut it into sentences, or use --max-length {count}",
        )


def _what_there_is(
    train: Sequence[Utterance], held_out: Sequence[Utterance], features: SpeechFeatures
) -> str:
    known = {u.text for u in train}
    new = sum(u.text not in known for u in held_out)
    minutes = sum(len(u.vectors) for u in train) * seconds_of_vector(features) / 60
    return (
        f"{minutes:.1f} minutes of speech to train on, {len(known)} different sentences; "
        f"{new} of {len(held_out)} held out say others"
    )
