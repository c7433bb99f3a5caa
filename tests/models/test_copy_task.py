"""The copy task of the Annotated Transformer, at d_model 64: ten drawn tokens are said again."""

import time

import numpy as np
import pytest

from tinygrad_tf.models.beam_search import beam_search, greedy
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.train.optim import AdamW
from tinygrad_tf.train.schedule import noam_rate

V, LENGTH, STEPS = 13, 10, 500


@pytest.mark.slow
def test_every_held_out_sequence_is_copied() -> None:
    config = Seq2SeqConfig(
        src_vocab_size=V,
        tgt_vocab_size=V,
        d_model=64,
        d_ff=256,
        max_length=LENGTH + 1,
        label_smoothing=0.1,
    )
    model = Transformer(config)
    optimizer = AdamW(model, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    rng = np.random.default_rng(0)
    held_out = np.random.default_rng(1).integers(3, V, (200, LENGTH))
    begun = time.process_time()
    for step in range(STEPS):
        optimizer.lr = noam_rate(step, config.d_model, warmup=200, factor=0.12)
        src = rng.integers(3, V, (30, LENGTH))
        optimizer.zero_grad()
        model.loss(src, src).backward()
        optimizer.step(max_norm=1.0)
    assert time.process_time() - begun < 60.0
    wanted = [tuple(row) for row in held_out.tolist()]
    for found in (greedy(model, held_out), [h for (h,) in beam_search(model, held_out[:20])]):
        assert all(h.finished for h in found)
        assert [h.tokens for h in found] == wanted[: len(found)]
