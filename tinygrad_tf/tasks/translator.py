"""Translating with a trained model: text in, texts and their attention out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from tinygrad_tf.tasks.task import OpenedRun
from tinygrad_tf.tasks.task_tokenizer import PAD
from tinygrad_tf.tasks.translation import Languages, TranslationTask
from tinygrad_tf.text.tokenizers import Unknown
from tinygrad_tf.types import Ids


@dataclass(frozen=True)
class CrossAttention:
    """How much each target token, while it was written, looked at each source token.

    weights (n_tgt, n_src); rows sum to 1. The last row is END's where the text was finished.
    layer counts from 0, and so does head, which is None for the mean of all.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: npt.NDArray[Any]
    layer: int
    head: int | None


class Translator:
    """A trained encoder-decoder with both its languages; unknown words may be skipped."""

    def __init__(
        self, model: Transformer, languages: Languages, unknown: Unknown = "error"
    ) -> None:
        self.model, self.languages, self.unknown = model, languages, unknown
        self.model.eval()

    @classmethod
    def load(
        cls, run_dir: str | Path, weights: str = "best", unknown: Unknown = "error"
    ) -> Translator:
        """That of a run; weights: "best" by validation loss, or "last".

        Raises InputError where the directory is not a whole run of `tt train-translate`.
        """
        run = OpenedRun.open(run_dir, TranslationTask.name)
        model = Transformer(Seq2SeqConfig.from_dict(run.recipe.model))
        model.load_tensors(run.weights(weights))
        return cls(model, Languages.from_files(run.files), unknown)

    def translate(self, texts: Sequence[str]) -> list[DecodedText]:
        """The likeliest token at every step. Raises InputError for a text it cannot read."""
        return [self._of(h) for h in greedy(self.model, self._sources(texts))]

    def beam(
        self,
        texts: Sequence[str],
        *,
        beam: int = 4,
        n_best: int = 1,
        length_penalty: float = LENGTH_PENALTY,
    ) -> list[list[DecodedText]]:
        """The `n_best` of a beam search for each text, the best first."""
        found = beam_search(
            self.model,
            self._sources(texts),
            beam=beam,
            n_best=n_best,
            length_penalty=length_penalty,
        )
        return [[self._of(h) for h in some] for some in found]

    def sample(
        self,
        texts: Sequence[str],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> list[DecodedText]:
        """One drawn translation of each text; options as in `decoding.sample`."""
        found = sample(
            self.model,
            self._sources(texts),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            rng=np.random.default_rng(seed),
        )
        return [self._of(h) for h in found]

    def attention(
        self,
        text: str,
        translation: DecodedText,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> CrossAttention:
        """The cross-attention behind a translation, (n_tgt, n_src).

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
