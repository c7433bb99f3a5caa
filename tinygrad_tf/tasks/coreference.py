"""Learning what `it` is: an encoder that names, at `it`, the noun it stands for.

Nothing tells it where to look. The loss is that of the answer alone; the attention from `it` to
the noun is how the encoder finds it (source document S2, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tinygrad_tf.corpus.pronouns import NOUNS, Coreference, draw_coreferences
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.encoder import EncoderConfig, MaskedLanguageModel
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.tasks.examples import Counts, ExampleBatches, Padded, Rows, Sequences, in_batches
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer
from tinygrad_tf.text.word_tokenizer import WordTokenizer
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.parallel import Compute, default_threads
from tinygrad_tf.train.trainer import TrainConfig, Trainer
from tinygrad_tf.types import IGNORE, Ids

SPECIALS = ("PAD", "MASK")
PRONOUN = "it"
BATCH_SIZE = 64
TRAINING = TrainConfig(
    steps=300,
    learning_rate=3e-3,
    min_lr=1e-4,
    warmup=30,
    beta2=0.98,
    eval_every=100,
    checkpoint_every=300,
)


class Answers:
    """Sentences with their answers at `it`: what `MaskedLanguageModel.loss` takes."""

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
    """How a sentence of T words was read: the answer, and the attention of `it`.

    prob: of the answer. weights (L, H, T): of each layer's heads, how much `it` looks at each word.
    """

    words: tuple[str, ...]
    it: int
    answer: str
    prob: float
    weights: npt.NDArray[Any]


@dataclass(frozen=True)
class Judged:
    """On sentences held out: how often the answer is right, and where `it` looks.

    above_half: the share of sentences in which some head gives the right noun more than half of
    the attention from `it`. layer and head: the one that gives it most, by mean; weight: that mean.
    """

    sentences: int
    accuracy: float
    above_half: float
    layer: int
    head: int
    weight: float


class CoreferenceDemo:
    """An encoder, the sentences that it learns from, and those that it is judged by."""

    def __init__(self, seed: int = 0, config: TrainConfig = TRAINING) -> None:
        self.train, self.held_out = draw_coreferences()
        self.side = TaskTokenizer(
            WordTokenizer.from_texts(s.text for s in self.train), SPECIALS, "sentence"
        )
        shape = EncoderConfig(
            vocab_size=self.side.vocab_size,
            d_model=64,
            n_heads=2,
            n_layers=2,
            max_length=24,
            scale_embedding=True,
            mask_id=SPECIALS.index("MASK"),
        )
        self.model = MaskedLanguageModel(shape, seed)
        self.trainer = Trainer(
            self.model,
            ExampleBatches(self._examples(self.train), BATCH_SIZE, seed),
            config,
            validation=partial(in_batches, self._examples(self.held_out), 256),
            compute=Compute(default_threads()),
        )

    def _examples(self, sentences: Sequence[Coreference]) -> Answers:
        sources = [self.side.encode(s.text) for s in sentences]
        answers = np.array([self.side.encode(s.answer)[0] for s in sentences])
        return Answers(sources, [s.it for s in sentences], answers)

    def run(self) -> Iterator[Event]:
        """Train, yielding what happens."""
        yield from self.trainer.run()
        self.model.eval()

    def read(self, sentences: Sequence[str]) -> list[Reading]:
        """What `it` stands for in each; InputError for unknown words, and unless there is one it.

        The answer is the likeliest of all nouns, wherever it stands.
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
                    f"{' '.join(words)!r} has no noun that 'it' could stand for",
                    f"use some of {', '.join(NOUNS)}",
                )
        longest = self.model.config.max_length
        try:
            ids = pad_sequences([self.side.encode(" ".join(w), longest) for w in split], 0)
        except InputError as fault:
            known = ", ".join(sorted(self.side.tokenizer.to_json()["words"]))
            raise InputError(fault.what, f"this language has the words {known}") from None
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
        probs = np.exp(logits[it] - logits[it].max())
        probs /= probs.sum()
        nouns = [int(self.side.encode(noun)[0]) for noun in NOUNS]
        best = max(nouns, key=lambda token: float(probs[token]))
        weights = patterns[:, :, it, : len(words)]
        return Reading(words, it, self.side.token_text(best), float(probs[best]), weights)

    def judge(self) -> Judged:
        """How well the sentences held out are read."""
        readings = self.read([s.text for s in self.held_out])
        pairs = list(zip(readings, self.held_out, strict=True))
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
