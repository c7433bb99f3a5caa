"""The trainer's two schedules have one peak, at the end of the warm-up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.train.schedule import learning_rate, noam_rate, scheduled_rate
from tinygrad_tf.train.trainer import TrainConfig


@given(st.integers(0, 5000), st.floats(1e-6, 1.0), st.integers(0, 500))
def test_noam_peaks_at_the_learning_rate(step: int, peak: float, warmup: int) -> None:
    rates = [scheduled_rate("noam", s, 1000, peak, 0.0, warmup) for s in (step, step + 1)]
    top = scheduled_rate("noam", max(0, warmup - 1), 1000, peak, 0.0, warmup)
    assert top == pytest.approx(peak) and max(rates) <= top * (1 + 1e-12)
    # The shape is the paper's, whatever its height.
    ratio = noam_rate(step, 512, warmup) / noam_rate(step + 1, 512, warmup)
    assert rates[0] / rates[1] == pytest.approx(ratio)


@given(st.integers(0, 1000), st.integers(1, 1000), st.integers(0, 50))
def test_cosine_is_the_schedule_there_was(step: int, steps: int, warmup: int) -> None:
    found = scheduled_rate("cosine", step, steps, 1e-3, 1e-4, warmup)
    assert found == learning_rate(step, steps, 1e-3, 1e-4, warmup)


def test_another_schedule_is_refused() -> None:
    with pytest.raises(InputError, match="`schedule` is linear; choose cosine or noam"):
        TrainConfig(schedule="linear")
