"""Learning coreference: an encoder that names, at `it`, the noun that it refers to.

Nothing shows it where that noun is: the loss is that of the answer alone, and the attention from
`it` to the noun is how the encoder finds it (source document S2, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinygrad_tf.corpus.pronouns import NOUNS, Coreference, draw_coreferences
from tinygrad_tf.engine import ops
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import EncoderConfig, MaskedLanguageModel
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import Counts, Padded, Rows, Sequences
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer
from tinygrad_tf.text.word_tokenizer import WordTokenizer
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.run import Run
from tinygrad_tf.types import IGNORE, Ids

SPECIALS = ("PAD", "MASK")
PRONOUN = "it"
BATCH_SIZE = 64
MODEL: dict[str, Any] = {
    "d_model": 64,
    "n_heads": 2,
    "n_layers": 2,
    "max_length": 24,
    "scale_embedding": True,
    "mask_id": SPECIALS.index("MASK"),
}
TRAINING = {
    "steps": 300,
    "learning_rate": 3e-3,
    "min_lr": 1e-4,
    "warmup": 30,
    "beta2": 0.98,
    "eval_every": 100,
    "checkpoint_every": 300,
}


class Answers:
    """Sentences with their answers at `it`, for `MaskedLanguageModel.loss`."""

    def __init__(self, sources: Sequence[Ids], places: Sequence[int], answers: Ids) -> None:
        self._sources = Sequences(sources, SPECIALS.index("PAD"))
        self._places, self._answers = np.asarray(places), answers
        self.lengths = self._sources.lengths
        self.targets: Counts = np.ones(len(answers), np.int64)

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Return the sentences, and labels that count at `it` alone."""
        ids = self._sources.padded(rows)
        labels = np.full_like(ids, IGNORE)
        labels[np.arange(len(rows)), self._places[rows]] = self._answers[rows]
        return Padded((ids, labels), self.targets[rows])


@dataclass(frozen=True)
class Reading:
    """The answer for a sentence of T words, and the attention of `it`.

    prob: of the answer. weights (L, H, T): the attention from `it` to each word, by layer and
    head.
    """

    words: tuple[str, ...]
    it: int
    answer: str
    prob: float
    weights: npt.NDArray[Any]


@dataclass(frozen=True)
class Judged:
    """The share of right answers on the held-out sentences, and the attention from `it`.

    above_half: the share of sentences in which some head gives the right noun more than half of
    the attention from `it`. layer and head: the one that gives it most, by mean; weight: that mean.
    """

    sentences: int
    accuracy: float
    above_half: float
    layer: int
    head: int
    weight: float


class CoreferenceTask(ExampleTask):
    """An encoder, sentences to train on, and sentences that are held out."""

    name: ClassVar[str] = "coreference"
    unit = "nats per sentence"
    EVALUATION_ROWS: ClassVar[int] = 256

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.train, self.held_out = draw_coreferences()
        self.tokenizer = TaskTokenizer(
            WordTokenizer.from_texts(s.text for s in self.train), SPECIALS, "sentence"
        )
        self.training_set = self._examples(self.train)
        self.validation_set = self._examples(self.held_out)

    @classmethod
    def create(cls, **settings: Any) -> CoreferenceTask:
        """Make the task; `settings` are those of TrainOptions."""
        options = TrainOptions.sort(EncoderConfig, settings)
        return cls(options.recipe("coreference", options.model, TRAINING, BATCH_SIZE, {}))

    @cached_property
    def model(self) -> MaskedLanguageModel:
        """The encoder, which answers as it would fill in a hidden token."""
        shape = MODEL | {"vocab_size": self.tokenizer.vocab_size} | self.recipe.model
        return MaskedLanguageModel(EncoderConfig(**shape), self.recipe.seed)

    def _examples(self, sentences: Sequence[Coreference]) -> Answers:
        sources = [self.tokenizer.encode(s.text) for s in sentences]
        answers = np.array([self.tokenizer.encode(s.answer)[0] for s in sentences])
        return Answers(sources, [s.it for s in sentences], answers)


class CoreferenceModel:
    """The model of a coreference task: iterate over `run()` to train it, then `read` sentences.

    `settings` are those of TrainOptions.
    """

    def __init__(self, **settings: Any) -> None:
        self.task = CoreferenceTask.create(**settings)
        self.model, self.tokenizer = self.task.model, self.task.tokenizer

    def __repr__(self) -> str:
        return f"CoreferenceModel({self.model!r})"

    def run(self) -> Iterator[Event]:
        """Train, and yield what happens."""
        return Run(self.task).run()

    def read(self, sentences: Sequence[str]) -> list[Reading]:
        """Predict the noun that `it` refers to in each sentence.

        The answer is the likeliest of all nouns. Raises InputError for unknown words, and for a
        sentence without exactly one `it`.
        """
        if not sentences:
            return []
        split = [tuple(s.strip().rstrip(".").split()) for s in sentences]
        for words in split:
            if words.count(PRONOUN) != 1:
                raise InputError(
                    f"{words.count(PRONOUN)} times 'it' in {' '.join(words)!r}",
                    "give a sentence with one",
                )
            if not set(words) & set(NOUNS):
                raise InputError(
                    f"{' '.join(words)!r} has no noun that 'it' could refer to",
                    f"use some of {', '.join(NOUNS)}",
                )
        longest = self.model.config.max_length
        try:
            ids = pad_sequences([self.tokenizer.encode(" ".join(w), longest) for w in split], 0)
        except InputError as fault:
            words_known = ", ".join(sorted(self.tokenizer.tokenizer.to_json()["words"]))
            raise InputError(fault.what, f"this language has the words {words_known}") from None
        with no_grad(), record() as values:
            logits = self.model.forward(ids).data.astype(np.float64)
        patterns = np.stack(
            [
                values[f"encoder.{layer}.attn.hook_pattern"].data
                for layer in range(self.model.config.n_layers)
            ]
        )  # (L, B, H, T, T)
        return [
            self._reading(words, logits[row], patterns[:, row]) for row, words in enumerate(split)
        ]

    def _reading(
        self, words: tuple[str, ...], logits: npt.NDArray[Any], patterns: npt.NDArray[Any]
    ) -> Reading:
        it = words.index(PRONOUN)
        probs = ops.softmax(logits[it]).data
        nouns = [int(self.tokenizer.encode(noun)[0]) for noun in NOUNS]
        best = max(nouns, key=lambda token: float(probs[token]))
        weights = patterns[:, :, it, : len(words)]
        return Reading(words, it, self.tokenizer.token_text(best), float(probs[best]), weights)

    def judge(self) -> Judged:
        """Return the accuracy on the held-out sentences, and the attention from `it`."""
        readings = self.read([s.text for s in self.task.held_out])
        pairs = list(zip(readings, self.task.held_out, strict=True))
        right = [r.answer == s.answer for r, s in pairs]
        looks = np.stack([r.weights[:, :, s.referent] for r, s in pairs])  # (N, L, H)
        mean = looks.mean(axis=0)
        layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
        return Judged(
            sentences=len(pairs),
            accuracy=sum(right) / len(right),
            above_half=float((looks.max(axis=(1, 2)) > 0.5).mean()),
            layer=int(layer),
            head=int(head),
            weight=float(mean[layer, head]),
        )
