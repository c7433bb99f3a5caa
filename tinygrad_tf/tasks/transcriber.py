"""Transcribing speech with a trained model, and the attention behind each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinygrad_tf.audio import (
    SpeechFeatures,
    Wave,
    hz_to_mel,
    mel_power,
    mel_to_hz,
    power_to_db,
    resample,
    stack_frames,
)
from tinygrad_tf.models.beam_search import LENGTH_PENALTY, Hypothesis, beam_search, greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.tasks.decoded_text import DecodedText, cross_attention
from tinygrad_tf.tasks.examples import Sequences
from tinygrad_tf.tasks.predictor import Predictor
from tinygrad_tf.tasks.speech import SpeechTask, most_words, read_features, read_words
from tinygrad_tf.tasks.speech_features import Vectors, extract_features, seconds_of_vector
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer
from tinygrad_tf.train.stored_run import StoredRun
from tinygrad_tf.train.task import Task
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class Listening:
    """The features of a sound, and the attention of each word of a transcript to each part of it.

    Each of T parts lasts `seconds`. loudness (n_mels, T): decibels below the loudest, of mel bands
    around `hertz`, the lowest first. weights (n_words, T): the cross-attention, rows sum to 1; the
    last row is END's where the transcript was finished.
    """

    seconds: float
    hertz: tuple[float, ...]
    loudness: Array
    words: tuple[str, ...]
    weights: Array


class Transcriber(Predictor):
    """A trained encoder-decoder with its words and its feature settings."""

    task: ClassVar[type[Task]] = SpeechTask
    model: Transformer

    def __init__(self, model: Transformer, words: TaskTokenizer, features: SpeechFeatures) -> None:
        super().__init__(model)
        self.words, self.features = words, features

    @classmethod
    def from_run(cls, run: StoredRun) -> Transcriber:
        """Make the model, without its weights, and what belongs to it, of what a run has kept."""
        model = Transformer(Seq2SeqConfig.from_dict(run.recipe.model))
        return cls(model, read_words(run.files), read_features(run.recipe))

    def extract_features(self, wave: Wave, name: str = "the sound") -> Vectors:
        """Compute the vectors (T, F) of a sound; InputError where it is too short, too long, or
        silent.
        """
        return extract_features(wave, name, self.features, self.model.config.max_length)

    def transcribe(self, sounds: Sequence[Vectors]) -> list[DecodedText]:
        """Transcribe the features of sounds by greedy decoding."""
        source, lengths, limit = self._source(sounds)
        return [self._of(h) for h in greedy(self.model, source, limit, src_lengths=lengths)]

    def beam(
        self,
        sounds: Sequence[Vectors],
        *,
        beam: int = 4,
        n_best: int = 1,
        length_penalty: float = LENGTH_PENALTY,
    ) -> list[list[DecodedText]]:
        """Return the `n_best` transcripts of a beam search for each sound, the best first."""
        source, lengths, limit = self._source(sounds)
        hypotheses = beam_search(
            self.model,
            source,
            limit,
            beam=beam,
            n_best=n_best,
            src_lengths=lengths,
            length_penalty=length_penalty,
        )
        return [[self._of(h) for h in some] for some in hypotheses]

    def listening(
        self,
        wave: Wave,
        transcript: DecodedText,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> Listening:
        """Return the loudness of a sound and the cross-attention behind a transcript of it.

        See `cross_attention` for which layer and head.
        """
        mfcc = self.features.mfcc
        source, lengths, _ = self._source([self.extract_features(wave)])
        weights, _ = cross_attention(
            self.model, transcript, source, lengths, layer=layer, head=head
        )
        power = mel_power(resample(wave.samples, wave.rate, mfcc.rate), mfcc)
        stacked = stack_frames(power, self.features.stack)  # (T, stack * n_mels)
        loudness = power_to_db(stacked.reshape(len(stacked), -1, mfcc.n_mels).mean(axis=1))
        low, high = hz_to_mel([mfcc.fmin, mfcc.top_hz], mfcc.htk)
        middles = mel_to_hz(np.linspace(low, high, mfcc.n_mels + 2)[1:-1], mfcc.htk)
        return Listening(
            seconds_of_vector(self.features),
            tuple(map(float, middles)),
            loudness.T - loudness.max(),
            tuple(map(self.words.token_text, transcript.steps(self.model.config.end_id))),
            weights,
        )

    def _source(self, sounds: Sequence[Vectors]) -> tuple[Array, Array, int]:
        """Return vectors (B, T, F), their lengths (B,), and the most words to write."""
        sequences = Sequences(sounds, PAD)
        source = sequences.padded(np.arange(len(sounds)))
        return source, sequences.lengths, most_words(source.shape[1], self.model.config)

    def _of(self, h: Hypothesis) -> DecodedText:
        return DecodedText.of(h, self.words)
