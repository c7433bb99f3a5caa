"""MFCCs: known values, properties, and equality with librosa."""

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tinygrad_tf.audio import cepstrum
from tinygrad_tf.audio.cepstrum import (
    MFCCSettings,
    dct_matrix,
    delta,
    hz_to_mel,
    mel_filterbank,
    mel_power,
    mel_to_hz,
    mfcc,
    power_to_db,
)
from tinygrad_tf.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)


def sound(seed: int = 0, n: int = 8_000) -> NDArray[np.float64]:
    """Noise, loud and soft by turns, over two tones."""
    draw, t = np.random.default_rng(seed), np.arange(n) / 16_000
    loud = np.interp(np.arange(n), np.linspace(0, n, 10), draw.uniform(0.01, 1, 10))
    tones = np.sin(2 * np.pi * 300 * t) + 0.3 * np.sin(2 * np.pi * 2500 * t)
    return loud * (draw.normal(size=n) + tones)


def test_mel_of_known_frequencies() -> None:
    assert float(hz_to_mel(1000, htk=True)) == pytest.approx(999.9855371396244, abs=1e-12)
    assert float(hz_to_mel(440, htk=True)) == pytest.approx(549.6386753811499, abs=1e-12)
    # Slaney's scale: 3 mel in 200 Hz up to 1000 Hz, then 27 mel for a factor of 6.4.
    np.testing.assert_allclose(hz_to_mel([0, 200, 1000, 6400]), [0, 3, 15, 42])


@given(st.floats(0, 20_000), st.booleans())
def test_mel_and_hertz_are_inverses(hertz: float, htk: bool) -> None:
    assert float(mel_to_hz(hz_to_mel(hertz, htk), htk)) == pytest.approx(hertz, abs=1e-8)


@given(st.floats(0, 20_000), st.floats(0, 20_000), st.booleans())
def test_higher_is_higher_in_mel(one: float, other: float, htk: bool) -> None:
    low, high = hz_to_mel(sorted([one, other]), htk)
    assert low <= high


def test_dct_is_orthonormal() -> None:
    whole = dct_matrix(40, 40)
    np.testing.assert_allclose(whole @ whole.T, np.eye(40), atol=1e-12)
    np.testing.assert_allclose(dct_matrix(13, 40), whole[:13])
    np.testing.assert_allclose(dct_matrix(1, 4) @ [1, 2, 3, 4], 5)


@pytest.mark.parametrize("htk", [False, True])
def test_triangles_cover_the_band_and_add_up_to_one(htk: bool) -> None:
    settings = MFCCSettings(htk=htk, norm=None, fmin=100, fmax=7000)
    bank = mel_filterbank(settings)
    hz = np.fft.rfftfreq(512, 1 / 16_000)
    corners = mel_to_hz(np.linspace(*hz_to_mel([100, 7000], htk), 42), htk)
    inner = (hz >= corners[1]) & (hz <= corners[-2])
    np.testing.assert_allclose(bank[:, inner].sum(axis=0), 1)
    assert bank[:, (hz <= 100) | (hz >= 7000)].max() < 1e-12 and bank.min() >= 0


def test_a_tone_is_loudest_in_the_band_around_it() -> None:
    centers = mel_to_hz(np.linspace(*hz_to_mel([0, 8000]), 42))[1:-1]
    for hertz in (500, 1000, 3000):
        tone = np.sin(2 * np.pi * hertz * np.arange(4_000) / 16_000)
        band = mel_power(tone, MFCCSettings(norm=None))[12].argmax()
        assert abs(centers[band] - hertz) == np.abs(centers - hertz).min()


def test_power_is_that_of_a_sum_written_out() -> None:
    signal = sound(n=1_000)
    settings = MFCCSettings(center=False, n_fft=300, win_length=200, n_mels=9, n_mfcc=9)
    bank = mel_filterbank(settings)
    power = []
    for k in range(151):
        terms = [
            signal[160 + 50 + j]
            * math.sin(math.pi * j / 200) ** 2
            * np.exp(-2j * math.pi * k * (50 + j) / 300)
            for j in range(200)
        ]
        power.append(abs(sum(terms)) ** 2)
    np.testing.assert_allclose(mel_power(signal, settings)[1], bank @ power)


@given(SEEDS, st.floats(0.01, 100), st.sampled_from([None, 80.0, 20.0]))
def test_loudness_changes_only_the_first_coefficient(
    seed: int, factor: float, top_db: float | None
) -> None:
    settings = MFCCSettings(top_db=top_db, amin=1e-30)
    quiet, loud = (mfcc(sound(seed, 2_000) * gain, settings) for gain in (1, factor))
    change = loud - quiet
    np.testing.assert_allclose(change[:, 1:], 0, atol=1e-9)
    np.testing.assert_allclose(change[:, 0], 20 * math.log10(factor) * math.sqrt(40), atol=1e-9)


@given(SEEDS, st.integers(1, 4))
def test_a_sound_later_by_whole_hops_has_the_same_frames_later(seed: int, hops: int) -> None:
    settings = MFCCSettings(top_db=None)
    early = sound(seed, 3_200)
    late = np.concatenate([np.zeros(160 * hops), early])
    np.testing.assert_allclose(mfcc(late, settings)[hops:], mfcc(early, settings), atol=1e-9)


@given(st.integers(1, 3_000), st.booleans(), st.integers(1, 400))
def test_the_number_of_frames(n: int, center: bool, hop: int) -> None:
    settings = MFCCSettings(center=center, hop_length=hop, n_mels=4, n_mfcc=2)
    if not center and n < 512:
        with pytest.raises(InputError, match="do not fill one frame"):
            mfcc(np.ones(n), settings)
    else:
        frames = 1 + (n if center else n - 512) // hop
        assert mfcc(np.ones(n), settings).shape == (frames, 2)


def test_long_sounds_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mfcc(sound())
    monkeypatch.setattr(cepstrum, "BLOCK", 7)
    np.testing.assert_allclose(mfcc(sound()), whole, atol=1e-9)


def test_decibels() -> None:
    np.testing.assert_allclose(power_to_db([1, 10, 0.5e-10, 0], top_db=None), [0, 10, -100, -100])
    np.testing.assert_allclose(power_to_db([1, 100, 1e-9], top_db=30), [0, 20, -10])


@given(st.floats(-1e3, 1e3), st.sampled_from([3, 5, 9]), st.sampled_from([1, 2]))
def test_delta_of_a_constant_is_zero(value: float, width: int, order: Literal[1, 2]) -> None:
    np.testing.assert_allclose(delta(np.full((12, 3), value), width, order), 0, atol=1e-9)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5), st.sampled_from([3, 5, 9]))
def test_deltas_of_a_parabola_are_its_derivatives(a: float, b: float, c: float, w: int) -> None:
    t = np.arange(20.0)
    parabola = (a * t * t + b * t + c)[:, None]
    inside = slice(w // 2, -(w // 2))
    np.testing.assert_allclose(delta(parabola, w)[inside, 0], (2 * a * t + b)[inside], atol=1e-8)
    np.testing.assert_allclose(delta(parabola, w, 2), 2 * a, atol=1e-8)


def test_delta_by_hand() -> None:
    # (x[t+1] - x[t-1]) / 2 over three frames; the ends share their neighbours' fit.
    column = delta(np.array([[1.0], [2.0], [4.0], [8.0]]), width=3)
    np.testing.assert_allclose(column[:, 0], [1.5, 1.5, 3, 3])


WRONG: list[dict[str, Any]] = [
    {"n_fft": 200}, {"win_length": 0}, {"hop_length": 0}, {"n_mfcc": 0}, {"n_mfcc": 41},
    {"fmin": -1.0}, {"fmin": 8000.0}, {"fmax": 9000.0}, {"amin": 0.0}, {"top_db": -1.0},
    {"rate": 0},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_settings_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        MFCCSettings(**wrong)
    assert caught.value.next


def test_bands_that_meet_no_frequency_are_refused() -> None:
    with pytest.raises(InputError, match="of 200 mel bands lie between two frequencies"):
        mfcc(sound(), MFCCSettings(n_mels=200))


@pytest.mark.parametrize("frames, width, order", [(8, 9, 1), (20, 4, 1), (20, 1, 1)])
def test_slopes_that_cannot_be_had_are_refused(frames: int, width: int, order: Any) -> None:
    with pytest.raises(InputError, match="slope"):
        delta(np.zeros((frames, 2)), width, order)


CASES = [
    MFCCSettings(htk=htk, norm=norm, top_db=top_db, center=center)
    for htk in (False, True)
    for norm in ("slaney", None)
    for top_db in (80.0, 15.0, None)
    for center in (True, False)
] + [
    MFCCSettings(n_fft=1024, win_length=1000, hop_length=250, n_mels=64, n_mfcc=20),
    MFCCSettings(rate=22_050, n_fft=2048, win_length=2048, hop_length=512, n_mels=128, n_mfcc=20),
    MFCCSettings(fmin=80, fmax=7600, n_mfcc=40),
    MFCCSettings(n_fft=511, win_length=333, hop_length=111),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("settings", CASES, ids=lambda s: str(dataclasses.astuple(s)))
def test_equal_to_librosa(settings: MFCCSettings) -> None:
    librosa = pytest.importorskip("librosa")
    power = librosa.feature.melspectrogram(
        y=sound(), sr=settings.rate, n_fft=settings.n_fft, win_length=settings.win_length,
        hop_length=settings.hop_length, center=settings.center, n_mels=settings.n_mels,
        fmin=settings.fmin, fmax=settings.fmax, htk=settings.htk, norm=settings.norm,
    )  # fmt: skip
    level = librosa.power_to_db(power, top_db=settings.top_db)
    theirs = librosa.feature.mfcc(S=level, n_mfcc=settings.n_mfcc)
    ours = mfcc(sound(), settings)
    closeness = {"rtol": 1e-3, "atol": 1e-6}
    np.testing.assert_allclose(ours, theirs.T, **closeness)
    for order in (1, 2):
        their_slope = librosa.feature.delta(theirs, order=order).T
        np.testing.assert_allclose(delta(ours, order=order), their_slope, **closeness)
    at_once = librosa.feature.mfcc(
        y=sound(), sr=settings.rate, n_mfcc=settings.n_mfcc, n_fft=settings.n_fft,
        win_length=settings.win_length, hop_length=settings.hop_length, n_mels=settings.n_mels,
        center=settings.center, fmin=settings.fmin, fmax=settings.fmax, htk=settings.htk,
    )  # fmt: skip
    if settings.norm == "slaney" and settings.top_db == 80:
        np.testing.assert_allclose(ours, at_once.T, **closeness)
