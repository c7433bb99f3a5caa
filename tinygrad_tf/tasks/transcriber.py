"""Writing down what is said with a trained model, and seeing what each word was heard in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
from tinygrad_tf.tasks.speech import SpeechTask, features_of, most_words, words_of
from tinygrad_tf.tasks.speech_features import Vectors, hear, seconds_of_vector
from tinygrad_tf.tasks.task import OpenedRun
from tinygrad_tf.tasks.task_tokenizer import PAD, TaskTokenizer
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class Listening:
    """A sound as the model takes it in, and how much each word listened to each part of it.

    Each of T parts lasts `seconds`. loudness (n_mels, T): decibels below the loudest, of mel bands
    around `hertz`, the lowest first. weights (n_words, T): the cross-attention, rows sum to 1; the
    last row is END's where the transcript was finished.
    """

    seconds: float
    hertz: tuple[float, ...]
    loudness: Array
    words: tuple[str, ...]
    weights: Array


class Transcriber:
    """A trained encoder-decoder with its words and its way to hear."""

    def __init__(self, model: Transformer, words: TaskTokenizer, features: SpeechFeatures) -> None:
        self.model, self.words, self.features = model, words, features
        self.model.eval()

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "best") -> Transcriber:
        """That of a run; weights: "best" by validation loss, or "last".

        Raises InputError where the directory is not a whole run of `tt train-speech`.
        """
        run = OpenedRun.open(run_dir, SpeechTask.name)
        model = Transformer(Seq2SeqConfig.from_dict(run.recipe.model))
        model.load_tensors(run.weights(weights))
        return cls(model, words_of(run.files), features_of(run.recipe))

    def hear(self, wave: Wave, name: str = "the sound") -> Vectors:
        """The vectors (T, F) of a sound; InputError where it is too short, too long, or silent."""
        return hear(wave, name, self.features, self.model.config.max_length)

    def transcribe(self, sounds: Sequence[Vectors]) -> list[DecodedText]:
        """The likeliest word at every step, for each of some sounds that were heard."""
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
        """The `n_best` of a beam search for each sound, the best first."""
        source, lengths, limit = self._source(sounds)
        found = beam_search(
            self.model,
            source,
            limit,
            beam=beam,
            n_best=n_best,
            src_lengths=lengths,
            length_penalty=length_penalty,
        )
        return [[self._of(h) for h in some] for some in found]

    def listening(
        self,
        wave: Wave,
        transcript: DecodedText,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> Listening:
        """The sound and the cross-attention behind a transcript of it.

        See `cross_attention` for which layer and head.
        """
        mfcc = self.features.mfcc
        source, lengths, _ = self._source([self.hear(wave)])
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
        """Vectors (B, T, F) with their lengths (B,), and how many words to write at most."""
        sequences = Sequences(sounds, PAD)
        source = sequences.padded(np.arange(len(sounds)))
        return source, sequences.lengths, most_words(source.shape[1], self.model.config)

    def _of(self, h: Hypothesis) -> DecodedText:
        return DecodedText.of(h, self.words)
