"""Gradients beside differences: kinks, jumps, steep functions, the complex step, directions."""

from typing import Any

import numpy as np
import pytest

from tests.checking.failures import X, failure
from tinygrad_tf import gradcheck, ops
from tinygrad_tf.checking.differences import slope, step_for


@pytest.mark.parametrize(
    ("f", "slopes"),
    [
        (lambda x: np.maximum(x, 0.0), "slope 0 from below, 1 from above"),
        (np.abs, "slope -1 from below, 1 from above"),
        (np.sqrt, "not finite just beside it"),
    ],
)
def test_a_kink_is_named_or_skipped(f: Any, slopes: str) -> None:
    point = np.array([1.0, 2.0, 0.0])
    up = np.ones(3)
    slope_there = {np.abs: np.sign, np.sqrt: lambda x: 0.5 / np.sqrt(x)}.get(f, lambda x: x > 0)

    def backward(g: Any, x: Any) -> Any:
        with np.errstate(all="ignore"):
            return g * slope_there(x)

    error = failure(f, point, up=up, backward=backward)
    assert (
        error.kind == "kink" and "at argument 0 index (2,)" in str(error) and slopes in str(error)
    )
    report = gradcheck(f, point, up=up, backward=backward, on_kink="skip")
    assert report.entries == 2 and len(report.kinks) == 1 and "index (2,)" in str(report)


@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_a_jump_is_a_kink_wherever_its_middle_lies(at_zero: float) -> None:
    def step(x: Any) -> Any:
        return np.heaviside(x, at_zero)

    error = failure(step, np.array([1.0, 0.0]), backward=lambda g, x: g * 0.0)
    assert error.kind == "kink" and "index (1,)" in str(error)
    assert gradcheck(step, np.array([1.0, 1e-7]), backward=lambda g, x: g * 0.0).entries == 2


def test_the_second_order_skips_the_kinks_of_the_first() -> None:
    report = gradcheck(lambda x: ops.maximum(x, 0.5), np.array([0.5, 1.0]), on_kink="skip", order=2)
    assert len(report.kinks) == 2 and not report.ill_conditioned


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-6, -1e-6, 1e-7, -1e-7])
def test_a_kink_beside_the_point_is_no_kink(distance: float) -> None:
    assert not gradcheck(ops.relu, np.array([distance])).kinks
    wrong = failure(np.abs, np.array([distance]), backward=lambda g, x: -g * np.sign(x))
    assert wrong.kind == "value" and wrong.pattern == "sign flipped"


@pytest.mark.parametrize(
    ("f", "slope_of", "at"),
    [
        (lambda x: x + 1e8, lambda x: 1.0, 1.25),
        (lambda x: 1 / x, lambda x: -1 / x**2, 1e-6),
        (lambda x: np.exp(20 * x), lambda x: 20 * np.exp(20 * x), 1.1),
        (lambda x: np.sqrt(x), lambda x: 0.5 / np.sqrt(x), 1e-9),
        (lambda x: 1e6 * np.sin(x), lambda x: 1e6 * np.cos(x), 0.3),
        (lambda x: np.cos(3e4 * x), lambda x: -3e4 * np.sin(3e4 * x), 0.7),
    ],
)
def test_steep_flat_and_large_functions_pass_and_their_mutants_fail(
    f: Any, slope_of: Any, at: float
) -> None:
    point = np.array([at])
    gradcheck(f, point, backward=lambda g, x: g * slope_of(x), float32=False)
    wrong = failure(f, point, backward=lambda g, x: g * 1.01 * slope_of(x), float32=False)
    assert wrong.kind == "value"


def test_digits_that_rounding_took_are_not_held_against_a_gradient() -> None:
    def lifted(x: Any) -> Any:
        return 1e8 + np.sin(x)

    point = np.linspace(0.0, 1.0, 40)
    gradcheck(lifted, point, backward=lambda g, x: g * np.cos(x), float32=False)
    wrong = failure(lifted, point, backward=lambda g, x: g * 1.1 * np.cos(x), float32=False)
    assert wrong.kind == "value"


def test_what_no_step_decides_is_reported_and_not_a_failure() -> None:
    def jagged(x: Any) -> Any:
        return np.sin(1e9 * x)

    report = gradcheck(
        jagged, np.array([0.3]), backward=lambda g, x: g * 1e9 * np.cos(1e9 * x), float32=False
    )
    assert len(report.ill_conditioned) == 1 and "x[0]: no step decides" in str(report)


def test_the_error_of_a_slope_bounds_its_distance_from_the_truth() -> None:
    for f, truth in ((np.exp, np.exp), (np.sin, np.cos), (lambda x: x**5, lambda x: 5 * x**4)):
        for x in (0.1, 1.0, 1.7):
            measured = slope(lambda t, f=f, x=x: f(x + t), f(x), np.array(1.0), step_for(6e-6, x))
            assert abs(measured.value - truth(x)) <= 4 * measured.error and measured.error < 1e-6


def test_the_complex_step_is_exact_and_says_where_it_cannot_be() -> None:
    assert gradcheck(ops.exp, X, method="complex").worst < 1e-15
    for f, why in ((ops.absolute, "real numbers"), (lambda x: ops.exp(ops.absolute(x)), "real")):
        report = gradcheck(f, X, method="complex")
        assert report.method == "central" and why in report.notes[0]

    def conjugated(x: Any) -> Any:
        return np.conj(x) * x

    report = gradcheck(conjugated, X, backward=lambda g, x: g * 2 * x, method="complex")
    assert "not analytic" in report.notes[0]
    assert failure(np.exp, X, backward=lambda g, x: g * x, method="complex").kind == "value"


def test_a_random_direction_is_bisected_to_the_entry() -> None:
    x = np.linspace(-2.0, 2.0, 300).reshape(3, 100)

    def backward(g: Any, x: Any) -> Any:
        out = g * np.cos(x)
        out[2, 37] *= 1.5
        return out

    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return np.sin(x)

    error = failure(counted, x, backward=backward, method="directional")
    assert [e.index for e in error.entries] == [(2, 37)] and len(calls) < 400
    assert np.isclose(error.entries[0].analytic, 1.5 * error.entries[0].numeric)
