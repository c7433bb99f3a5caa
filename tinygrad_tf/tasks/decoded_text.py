"""The text that an encoder-decoder wrote, and its attention while it wrote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.beam_search import Hypothesis
from tinygrad_tf.models.seq2seq import Transformer
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class DecodedText:
    """A text that was written, its ln probability in nats, and its score; see Hypothesis."""

    text: str
    log_prob: float
    score: float
    finished: bool
    tokens: tuple[int, ...]

    @classmethod
    def of(cls, h: Hypothesis, tokenizer: TaskTokenizer) -> DecodedText:
        """Make the text of a hypothesis, in the language of a tokenizer."""
        return cls(tokenizer.decode(h.tokens), h.log_prob, h.score, h.finished, h.tokens)

    def steps(self, end_id: int) -> tuple[int, ...]:
        """Return every token that was chosen: the text's, and END where it was finished."""
        return (*self.tokens, *([end_id] if self.finished else []))


def cross_attention(
    model: Transformer,
    written: DecodedText,
    source: Array,
    lengths: Array | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> tuple[Array, int]:
    """Return the weights (n_tgt, n_src) behind a text, and their layer; rows are `written.steps`.

    By default those of the last decoder layer, which decides what is written, its heads averaged.
    Layers and heads count from 0; raises InputError where there is no such one.
    """
    config = model.config
    layer = config.n_decoder_layers - 1 if layer is None else layer
    _require_one_of("layer", layer, config.n_decoder_layers)
    if head is not None:
        _require_one_of("head", head, config.n_heads)
    target = np.array([[config.start_id, *written.steps(config.end_id)[:-1]]])
    with no_grad(), record() as values:
        model.forward(source, target, lengths)
    heads = values[f"decoder.{layer}.cross_attn.hook_pattern"].data[0]  # (H, n_tgt, n_src)
    return heads.mean(axis=0) if head is None else heads[head], layer


def _require_one_of(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise InputError(f"there is no {what} {number}", f"give one from 0 to {count - 1}")
