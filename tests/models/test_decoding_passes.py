"""How often encoder and decoder run: once in training, once and once per token in inference."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf.models.beam_search import beam_search, greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.train.optim import AdamW

PAD = 0


@pytest.fixture(scope="module")
def translator() -> Transformer:
    """Learned by heart: You are welcome / De nada, and one more pair."""
    config = Seq2SeqConfig(
        src_vocab_size=7, tgt_vocab_size=7, d_model=12, n_heads=2, d_ff=16, max_length=6
    )
    model = Transformer(config)
    optimizer = AdamW(model, lr=3e-3)
    src, tgt = np.array([[3, 4, 5], [4, 6, PAD]]), np.array([[5, 6, PAD], [6, 3, 3]])
    for _ in range(80):
        optimizer.zero_grad()
        model.loss(src, tgt).backward()
        optimizer.step()
    return model


class Counting:
    """How often the stacks of a model run."""

    def __init__(self, model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encoder, self.decoder = 0, 0
        for name in ("encoder", "decoder"):
            monkeypatch.setattr(getattr(model, name), "forward", self.counted(model, name))

    def counted(self, model: Transformer, name: str) -> Any:
        forward = getattr(model, name).forward

        def run(*args: Any, **kwargs: Any) -> Any:
            setattr(self, name, getattr(self, name) + 1)
            return forward(*args, **kwargs)

        return run


@pytest.mark.parametrize("use_cache", [True, False])
def test_passes_for_de_nada_end(
    translator: Transformer, monkeypatch: pytest.MonkeyPatch, use_cache: bool
) -> None:
    """Training: each stack once for three labels. Inference: encoder once, decoder thrice."""
    passes = Counting(translator, monkeypatch)
    translator.loss([[3, 4, 5]], [[5, 6]])
    assert (passes.encoder, passes.decoder) == (1, 1)
    (h,) = greedy(translator, [[3, 4, 5]], use_cache=use_cache)
    assert h.tokens == (5, 6) and h.finished
    assert (passes.encoder, passes.decoder) == (2, 4)
    beam_search(translator, [[3, 4, 5]], beam=3, use_cache=use_cache)
    assert passes.encoder == 3


def test_the_memory_is_projected_once_per_layer(
    translator: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    for block in translator.decoder.h:
        attn = block.cross_attn
        assert attn is not None

        def counted(memory: Any, own: Any = attn.project) -> Any:
            calls.append(1)
            return own(memory)

        monkeypatch.setattr(attn, "project", counted)
    greedy(translator, [[3, 4, 5]])
    assert len(calls) == len(translator.decoder.h)


def test_it_stops_at_end_or_at_the_limit(translator: Transformer) -> None:
    src = [[3, 4, 5], [4, 6, PAD]]
    assert [h.tokens for h in greedy(translator, src)] == [(5, 6), (6, 3, 3)]
    cut = greedy(translator, src, 2)
    assert [(h.tokens, h.finished) for h in cut] == [((5, 6), False), ((6, 3), False)]
    exact = greedy(translator, src, 3)
    assert [h.finished for h in exact] == [True, False]


def test_training_goes_on_as_it_was(translator: Transformer) -> None:
    for mode in (True, False):
        translator.train(mode)
        greedy(translator, [[3, 4, 5]])
        assert translator.training is translator.decoder.h[0].mlp.training is mode
    translator.train()
