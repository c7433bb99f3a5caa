"""The schedule of Vaswani et al. 2017."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.train.schedule import noam_rate


@given(st.integers(0, 10**6), st.integers(1, 4096), st.integers(1, 10**5))
def test_the_formula_of_the_paper(step: int, d_model: int, warmup: int) -> None:
    n = step + 1
    expected = d_model**-0.5 * min(n**-0.5, n * warmup**-1.5)
    assert noam_rate(step, d_model, warmup) == pytest.approx(expected, rel=1e-12)
    assert noam_rate(step, d_model, warmup, 0.5) == pytest.approx(expected / 2, rel=1e-12)


def test_it_rises_to_its_peak_and_falls() -> None:
    rates = [noam_rate(step, 512, 4000) for step in range(20000)]
    assert rates.index(max(rates)) == 3999
    assert max(rates) == pytest.approx(1 / math.sqrt(512 * 4000)) == pytest.approx(6.9877e-4, 1e-4)
    assert rates[1999] == pytest.approx(max(rates) / 2)
    assert rates[15999] == pytest.approx(max(rates) / 2)


def test_no_warm_up_begins_at_the_peak() -> None:
    assert noam_rate(0, 64, 0) == noam_rate(0, 64, 1) == 1 / 8
