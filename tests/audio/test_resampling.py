"""Resampling: what a lower rate can hold is kept, what it cannot is gone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tinygrad_tf.audio.resampling import resample
from tinygrad_tf.errors import InputError

RATES = [8_000, 11_025, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]


def sine(hertz: float, rate: int, n: int) -> NDArray[np.float64]:
    return np.sin(2 * np.pi * hertz * np.arange(n) / rate)


def decibels(signal: NDArray[np.float64]) -> float:
    """The power beside that of a sine, away from the ends."""
    middle = signal[len(signal) // 4 : -len(signal) // 4]
    return 10 * math.log10(2 * float(np.mean(middle**2)))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hertz", [100, 1000, 3500])
def test_a_sine_keeps_frequency_phase_and_amplitude(rate: int, hertz: float) -> None:
    out = resample(sine(hertz, rate, rate // 2), rate)
    away = slice(500, -500)  # from the ends, where the sound begins and stops at once
    np.testing.assert_allclose(out[away], sine(hertz, 16_000, len(out))[away], atol=1e-4)


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("share", [1.001, 1.05, 1.2, 1.37])
def test_what_would_be_an_alias_is_60_decibels_down(rate: int, share: float) -> None:
    assert decibels(resample(sine(8000 * share, rate, rate // 2), rate)) < -60


@pytest.mark.parametrize("rate", [8_000, 11_025])
def test_a_higher_rate_adds_no_mirror_image(rate: int) -> None:
    hertz = 0.4 * rate
    out = resample(sine(hertz, rate, rate), rate)[2000:-2000]
    spectrum = np.abs(np.fft.rfft(out * np.kaiser(len(out), 20))) ** 2
    peak = int(spectrum.argmax())
    assert peak == pytest.approx(hertz * len(out) / 16_000, abs=1)
    elsewhere = np.delete(spectrum, slice(peak - 12, peak + 13))
    assert 10 * math.log10(elsewhere.max() / spectrum.max()) < -60


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=40),
    st.integers(1, 200),
    st.integers(1, 200),
)
def test_the_length_is_that_of_the_same_time(samples: list[float], rate: int, to: int) -> None:
    out = resample(samples, rate, to)
    assert len(out) == math.ceil(len(samples) * to / rate)
    assert np.isfinite(out).all()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(1, 10**6))
def test_the_same_rate_changes_nothing_and_copies(samples: list[float], rate: int) -> None:
    given_samples = np.array(samples)
    out = resample(given_samples, rate, rate)
    assert np.array_equal(out, given_samples) and not np.shares_memory(out, given_samples)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(RATES), st.floats(-3, 3))
def test_resampling_is_linear(seed: int, rate: int, factor: float) -> None:
    one, other = np.random.default_rng(seed).normal(size=(2, 300))
    apart = resample(one, rate) + factor * resample(other, rate)
    np.testing.assert_allclose(resample(one + factor * other, rate), apart, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([22_050, 44_100, 48_000]))
def test_up_and_down_again_is_the_identity_below_the_edge(seed: int, higher: int) -> None:
    draw = np.random.default_rng(seed)
    rate, n = 16_000, 4_000
    parts = zip(draw.uniform(50, 7000, 4), draw.uniform(-1, 1, 4), strict=True)
    sound = sum(size * sine(hertz, rate, n) for hertz, size in parts)
    again = resample(resample(sound, rate, higher), higher, rate)
    np.testing.assert_allclose(again[300:3700], sound[300:3700], atol=1e-3)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.sampled_from(RATES), st.floats(-1, 1))
def test_a_constant_stays_what_it_is(rate: int, value: float) -> None:
    out = resample(np.full(2_000, value), rate)
    middle = out[len(out) // 3 : -len(out) // 3]
    np.testing.assert_allclose(middle, value, atol=1e-12)


@pytest.mark.parametrize("rate, to", [(0, 16_000), (16_000, 0), (-8_000, 16_000), (8_000.5, 8_000)])
def test_rates_that_are_none_are_refused(rate: int, to: int) -> None:
    with pytest.raises(InputError, match="Hz"):
        resample([0.0], rate, to)


def test_no_sound_is_refused() -> None:
    for samples in ([], [[1.0]], [math.nan]):
        with pytest.raises(InputError):
            resample(samples, 8_000)
