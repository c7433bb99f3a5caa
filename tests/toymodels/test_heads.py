"""The shapes of attention with several heads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.heads import Sizes, attention_parameters, trace_shapes


def test_shapes_of_the_papers_heads():
    trace = trace_shapes(Sizes(vocabulary=13, length=12))
    assert trace.shape("Q") == (12, 64) and trace.shape("W_O") == (512, 512)
    assert trace.shape("joined heads") == (12, 512) and trace.shape("probabilities") == (12, 13)
    assert attention_parameters(Sizes(13, 12)) == 1_048_576
    assert trace.parameters("W_1", "b_1", "W_2", "b_2") == 2_099_712
    assert len(trace.heads) == 8
    for weights in trace.heads:
        assert np.triu(weights.data, 1).sum() == 0
        assert weights.data.sum(axis=1) == pytest.approx(np.ones(12))


@given(st.data())
def test_symbols_and_shapes_agree_for_any_sizes(data):
    n, N, d_model, d_k, d_v, h, d_ff, n_s = (data.draw(st.integers(1, 7)) for _ in range(8))
    cross = data.draw(st.booleans())
    trace = trace_shapes(Sizes(N, n, d_model, d_k, d_v, h, d_ff, n_s if cross else None))
    size = {"n": n, "N": N, "d_model": d_model, "d_k": d_k, "d_v": d_v, "d_ff": d_ff, "n_s": n_s}
    size["h·d_v"] = h * d_v
    for stage in trace.stages:
        assert stage.shape == tuple(size[symbol] for symbol in stage.symbols.split())
    assert len(trace.heads) == h
    if cross:
        assert trace.shape("scores") == (n, n_s) and trace.shape("V") == (n_s, d_v)


def test_sizes_are_positive():
    with pytest.raises(InputError, match="heads is 0"):
        Sizes(13, 12, heads=0)
