"""The learning rate: its ends, its shape, and runs of hardly any steps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.train.schedule import learning_rate

COUNTS = st.integers(0, 300)


def rates(steps: int, warmup: int) -> list[float]:
    return [learning_rate(step, steps, 1.0, 0.1, warmup) for step in range(steps)]


def test_known_values() -> None:
    course = rates(1001, 100)
    assert course[0] == pytest.approx(1 / 101)
    assert course[49] == pytest.approx(50 / 101)
    assert course[99] == pytest.approx(100 / 101)
    assert course[100] == 1.0
    assert course[550] == pytest.approx(0.55)  # half way down the cosine
    assert course[325] == pytest.approx(0.55 + 0.45 * math.sqrt(0.5))
    assert course[1000] == pytest.approx(0.1)


@given(COUNTS, COUNTS)
def test_it_rises_once_then_falls_to_the_low(steps: int, warmup: int) -> None:
    course = rates(steps, warmup)
    assert all(0.0 < rate <= 1.0 for rate in course)
    if not course:
        return
    top = course.index(max(course))
    assert course[top] == 1.0 and top == min(warmup, steps // 10)
    assert course[: top + 1] == sorted(course[: top + 1])
    assert course[top:] == sorted(course[top:], reverse=True)
    if steps > 1:
        assert course[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("warmup", [0, 1, 100])
def test_runs_of_no_step_and_of_one(steps: int, warmup: int) -> None:
    assert learning_rate(0, steps, 1.0, 0.1, warmup) == 1.0


@given(COUNTS, COUNTS, COUNTS)
def test_beyond_the_end_it_stays_low(steps: int, warmup: int, more: int) -> None:
    assert learning_rate(steps + 1 + more, steps, 1.0, 0.1, warmup) == pytest.approx(0.1)


def test_a_constant_rate_is_constant() -> None:
    assert {learning_rate(step, 50, 0.3, 0.3, 0) for step in range(50)} == {0.3}
