"""Translating with a trained model, and the attention behind a translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinygrad_tf.models.beam_search import (
    LENGTH_PENALTY,
    Hypothesis,
    beam_search,
    greedy,
    sample,
)
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.tasks.decoded_text import DecodedText, cross_attention
from tinygrad_tf.tasks.predictor import Predictor
from tinygrad_tf.tasks.task_tokenizer import PAD
from tinygrad_tf.tasks.translation import Languages, TranslationTask
from tinygrad_tf.text.tokenizers import Unknown
from tinygrad_tf.train.stored_run import StoredRun
from tinygrad_tf.train.task import Task
from tinygrad_tf.types import Ids


@dataclass(frozen=True)
class CrossAttention:
    """The attention of each target token, while it was written, to each source token.

    weights (n_tgt, n_src); rows sum to 1. The last row is END's where the text was finished.
    layer counts from 0, and so does head, which is None for the mean of all.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: npt.NDArray[Any]
    layer: int
    head: int | None


class Translator(Predictor):
    """A trained encoder-decoder with both its languages; unknown words may be skipped."""

    task: ClassVar[type[Task]] = TranslationTask
    model: Transformer

    def __init__(
        self, model: Transformer, languages: Languages, unknown: Unknown = "error"
    ) -> None:
        super().__init__(model)
        self.languages, self.unknown = languages, unknown

    @classmethod
    def from_run(cls, run: StoredRun, unknown: Unknown = "error") -> Translator:
        """Make the model, without its weights, and its tokenizers, of what a run has kept."""
        model = Transformer(Seq2SeqConfig.from_dict(run.recipe.model))
        return cls(model, Languages.from_files(run.files), unknown)

    def translate(self, texts: Sequence[str]) -> list[DecodedText]:
        """Translate texts by greedy decoding. Raises InputError for a text it cannot read."""
        return [self._of(h) for h in greedy(self.model, self._sources(texts))]

    def beam(
        self,
        texts: Sequence[str],
        *,
        beam: int = 4,
        n_best: int = 1,
        length_penalty: float = LENGTH_PENALTY,
    ) -> list[list[DecodedText]]:
        """Return the `n_best` translations of a beam search for each text, the best first."""
        hypotheses = beam_search(
            self.model,
            self._sources(texts),
            beam=beam,
            n_best=n_best,
            length_penalty=length_penalty,
        )
        return [[self._of(h) for h in some] for some in hypotheses]

    def sample(
        self,
        texts: Sequence[str],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> list[DecodedText]:
        """Sample a translation of each text; options as in `decoding.sample`."""
        hypotheses = sample(
            self.model,
            self._sources(texts),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            rng=np.random.default_rng(seed),
        )
        return [self._of(h) for h in hypotheses]

    def attention(
        self,
        text: str,
        translation: DecodedText,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> CrossAttention:
        """Return the cross-attention behind a translation, (n_tgt, n_src).

        See `cross_attention` for which layer and head.
        """
        source = self._sources([text])
        weights, layer = cross_attention(self.model, translation, source, layer=layer, head=head)
        left, right = self.languages.source, self.languages.target
        return CrossAttention(
            tuple(left.token_text(int(i)) for i in source[0]),
            tuple(right.token_text(i) for i in translation.steps(self.model.config.end_id)),
            weights,
            layer,
            head,
        )

    def _sources(self, texts: Sequence[str]) -> Ids:
        longest = self.model.config.max_length
        encode = self.languages.source.encode
        return pad_sequences([encode(text, longest, self.unknown) for text in texts], PAD)

    def _of(self, h: Hypothesis) -> DecodedText:
        return DecodedText.of(h, self.languages.target)
