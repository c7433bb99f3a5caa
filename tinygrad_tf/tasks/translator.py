"""Translating with a trained model: text in, texts and their attention out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.decoding import (
    LENGTH_PENALTY,
    Hypothesis,
    beam_search,
    greedy,
    sample,
)
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.tasks.sides import PAD, Ids
from tinygrad_tf.tasks.task import OpenedRun
from tinygrad_tf.tasks.translation import Languages, TranslationTask
from tinygrad_tf.text.tokenizers import Unknown


@dataclass(frozen=True)
class Translation:
    """A text in the target language, its ln probability in nats, and its score; see Hypothesis."""

    text: str
    log_prob: float
    score: float
    finished: bool
    tokens: tuple[int, ...]


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

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """The likeliest token at every step. Raises InputError for a text it cannot read."""
        return [self._of(h) for h in greedy(self.model, self._sources(texts))]

    def beam(
        self,
        texts: Sequence[str],
        *,
        beam: int = 4,
        n_best: int = 1,
        length_penalty: float = LENGTH_PENALTY,
    ) -> list[list[Translation]]:
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
    ) -> list[Translation]:
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
        translation: Translation,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> CrossAttention:
        """The cross-attention behind a translation, (n_tgt, n_src).

        By default that of the last decoder layer, which decides what is written, its heads
        averaged. Layers and heads count from 0; raises InputError where there is no such one.
        """
        config = self.model.config
        layer = config.n_decoder_layers - 1 if layer is None else layer
        _require_one_of("layer", layer, config.n_decoder_layers)
        if head is not None:
            _require_one_of("head", head, config.n_heads)
        source = self._sources([text])
        written = [*translation.tokens, *([config.end_id] if translation.finished else [])]
        given = np.array([[config.start_id, *written[:-1]]])
        with no_grad(), record() as values:
            self.model.forward(source, given)
        heads = values[f"decoder.{layer}.cross_attn.hook_pattern"].data[0]  # (H, T, S)
        left, right = self.languages.source, self.languages.target
        return CrossAttention(
            tuple(left.token_text(int(i)) for i in source[0]),
            tuple(right.token_text(i) for i in written),
            heads.mean(axis=0) if head is None else heads[head],
            layer,
            head,
        )

    def _sources(self, texts: Sequence[str]) -> Ids:
        longest = self.model.config.max_length
        encode = self.languages.source.encode
        return pad_sequences([encode(text, longest, self.unknown) for text in texts], PAD)

    def _of(self, h: Hypothesis) -> Translation:
        text = self.languages.target.decode(h.tokens)
        return Translation(text, h.log_prob, h.score, h.finished, h.tokens)


def _require_one_of(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise InputError(f"there is no {what} {number}", f"give one from 0 to {count - 1}")
