"""The small voice: filters with the right resonances, and words that can be told apart."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tinygrad_tf.audio.cepstrum import delta, mfcc
from tinygrad_tf.audio.features import normalize
from tinygrad_tf.audio.formants import HOP, N_FFT, overlap_add, spectra, teeth, throat
from tinygrad_tf.audio.phonemes import PHONEMES, WORDS, pronounce
from tinygrad_tf.audio.voice import Speaker, draw_speaker, glide, glottal_flow, speak
from tinygrad_tf.errors import InputError

HERTZ = np.arange(N_FFT // 2 + 1) * 16_000 / N_FFT
STEADY = Speaker(melody=0, jitter=0)


def say(text: str, speaker: Speaker = STEADY, seed: int = 0, snr_db: float = 40) -> np.ndarray:
    return speak(text, speaker, np.random.default_rng(seed), snr_db)


@given(st.integers(0, 2**32 - 1), st.integers(3, 20))
def test_pieces_add_up_to_the_signal(seed: int, frames: int) -> None:
    signal = np.random.default_rng(seed).normal(size=(frames + 1) * HOP)
    again = overlap_add(spectra(signal))
    assert len(again) == len(signal)
    np.testing.assert_allclose(again[HOP:-HOP], signal[HOP:-HOP], atol=1e-5)


def test_a_delay_as_filter_delays() -> None:
    signal = np.random.default_rng(0).normal(size=20 * HOP)
    late = overlap_add(spectra(signal) * np.exp(-2j * np.pi * HERTZ / 16_000 * 200))
    np.testing.assert_allclose(late[HOP + 200 : -HOP], signal[HOP : -HOP - 200], atol=1e-5)


@settings(max_examples=30)
@given(st.floats(300, 700), st.floats(1000, 1500), st.floats(2000, 2600), st.floats(0.9, 1.2))
def test_a_throat_resonates_at_its_formants(f1: float, f2: float, f3: float, tract: float) -> None:
    columns = [np.array([value]) for value in (f1, f2, f3, 270.0)]
    gain = np.abs(throat(*columns, tract, 0.0)[0])
    assert gain[0] == pytest.approx(1, abs=1e-3)
    for formant in (f1 * tract, f2 * tract, f3 * tract):
        near = np.abs(HERTZ - formant) < 150
        peak = HERTZ[near][gain[near].argmax()]
        assert abs(peak - formant) < 60


def test_formants_beyond_the_band_do_not_come_back_mirrored() -> None:
    columns = [np.array([value]) for value in (500.0, 1500.0, 2500.0, 270.0)]
    gain = np.abs(throat(*columns, 1.2, 0.0)[0])
    peaks = HERTZ[1:-1][(gain[1:-1] > gain[:-2]) & (gain[1:-1] > gain[2:])]
    # 7500 Hz times 1.2 would sound at 7000 Hz.
    np.testing.assert_allclose(peaks[peaks > 3200], [4200, 5400, 6600], atol=60)


def test_the_nose_takes_away_at_its_zero() -> None:
    columns = [np.array([value]) for value in (480.0, 1500.0, 2600.0)]
    mouth, nose = (np.abs(throat(*columns, np.array([z]), 1.0, 0.0)[0]) for z in (270.0, 1000.0))
    share = nose / mouth
    assert HERTZ[share[:80].argmin()] == pytest.approx(1000, abs=32) and share.min() < 0.1


@given(st.floats(800, 7000), st.floats(300, 4000))
def test_teeth_hiss_around_their_center(center: float, width: float) -> None:
    gain = np.abs(teeth(np.array([center]), np.array([width]))[0])
    assert gain[0] < 1e-3
    assert np.interp(center, HERTZ, gain) == pytest.approx(1, abs=0.1)


@given(st.floats(80, 300))
def test_the_glottis_is_shut_for_two_fifths_of_each_cycle(pitch: float) -> None:
    slope = glottal_flow(np.full(200, pitch), 201 * HOP)
    assert np.mean(slope**2) == pytest.approx(1)
    assert np.mean(slope == 0) == pytest.approx(0.4, abs=0.02)
    assert abs(slope.mean()) < 0.03  # what flows out has stopped when the glottis shuts
    assert -slope.min() > 2 * slope.max()  # and stops at once


@given(st.integers(0, 2**32 - 1), st.sampled_from(["show me my photos please", "stop"]))
@settings(max_examples=10)
def test_the_seed_decides_everything(seed: int, text: str) -> None:
    speaker = draw_speaker(np.random.default_rng(seed))
    assert speaker == draw_speaker(np.random.default_rng(seed))
    one, again, other = (say(text, speaker, s) for s in (seed, seed, seed + 1))
    assert np.array_equal(one, again) and not np.array_equal(one[:1000], other[:1000])


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(WORDS)), st.floats(0, 60))
def test_every_word_is_a_sound_of_fair_length(seed: int, word: str, snr_db: float) -> None:
    speaker = draw_speaker(np.random.default_rng(seed))
    sound = say(word, speaker, seed, snr_db)
    assert np.isfinite(sound).all() and 0.05 < np.abs(sound).max() <= 0.9
    assert 0.15 < len(sound) / 16_000 < 1.6


@pytest.mark.parametrize("pitch", [90.0, 120.0, 200.0])
def test_the_pitch_is_the_speakers(pitch: float) -> None:
    sound = say("all", dataclasses.replace(STEADY, pitch=pitch))
    middle = sound[len(sound) // 2 - 800 : len(sound) // 2 + 800]
    echo = np.correlate(middle, middle, mode="full")[len(middle) - 1 :]
    period = 50 + int(echo[50:400].argmax())  # from 40 to 320 Hz
    assert 16_000 / period == pytest.approx(pitch, rel=0.15)


@pytest.mark.parametrize("trait", [field.name for field in dataclasses.fields(Speaker)])
def test_every_trait_of_a_speaker_is_heard(trait: str) -> None:
    other = dataclasses.replace(Speaker(), **{trait: getattr(Speaker(), trait) * 1.3})
    one, changed = say("show me", Speaker()), say("show me", other)
    assert len(one) != len(changed) or np.abs(one - changed).max() > 1e-3


@given(st.integers(0, 2**32 - 1), st.integers(10, 30))
def test_targets_are_reached_in_a_glide(seed: int, at: int) -> None:
    before, after = np.random.default_rng(seed).uniform(0, 1000, size=(2, 9))
    targets = np.where(np.arange(40)[:, None] < at, before, after)
    reached = glide(targets)
    np.testing.assert_allclose(reached[: at - 5], targets[: at - 5])
    np.testing.assert_allclose(reached[at + 5 :], targets[at + 5 :])
    way = (reached - before) / (after - before)
    assert (np.diff(way, axis=0) > -1e-9).all()
    between = ((way > 0.01) & (way < 0.99)).sum(axis=0)
    # Loudness changes within 16 ms, formants take 48 ms.
    assert between.tolist() == [2] * 3 + [6] * 6


def test_twice_the_speed_is_half_the_length() -> None:
    text = "check the battery log and find out whether it ran down please"
    slow, fast = (len(say(text, dataclasses.replace(STEADY, speed=s))) for s in (1.0, 2.0))
    assert fast / slow == pytest.approx(0.5, abs=0.06)


def test_a_shorter_tract_sounds_higher() -> None:
    centers = []
    for tract in (1.0, 1.2):
        power = np.abs(np.fft.rfft(say("my", dataclasses.replace(STEADY, tract=tract)))) ** 2
        centers.append((power * np.arange(len(power))).sum() / power.sum() / len(power))
    assert centers[1] > 1.05 * centers[0]


@pytest.mark.parametrize("snr_db", [10.0, 30.0])
def test_the_noise_is_as_far_below_the_speech_as_asked(snr_db: float) -> None:
    measured = []
    for seed in range(20):
        sound = say("find my files", seed=seed, snr_db=snr_db)
        noise, all_of_it = np.mean(sound[:500] ** 2), np.mean(sound**2)
        measured.append(10 * np.log10(all_of_it / noise - 1))
    assert np.mean(measured) == pytest.approx(snr_db, abs=0.5)


def test_hiss_is_high_and_voice_is_low() -> None:
    # The beginning of "show" hisses, its end hums.
    sound = say("show")
    quiet = np.flatnonzero(np.abs(sound) > 0.05)
    start, end = sound[quiet[0] : quiet[0] + 800], sound[quiet[-1] - 1600 : quiet[-1] - 800]
    crossings = [np.mean(np.diff(np.sign(part)) != 0) for part in (start, end)]
    assert crossings[0] > 0.2 > 0.12 > crossings[1]


def test_the_tables_fit_together() -> None:
    used = {phoneme for sounds in WORDS.values() for phoneme in sounds}
    assert used == set(PHONEMES)
    assert len(set(WORDS.values())) == len(WORDS)
    for segments in PHONEMES.values():
        for s in segments:
            assert s.ms > 0 and max(s.voice, s.breath, s.hiss) <= 1
            assert 200 <= s.f1 < s.f2 < s.f3 < 3500 and s.zero < s.f2 and s.center < 8000


@pytest.mark.parametrize("text, what", [("", "nothing to say"), ("find my elephants", "elephants")])
def test_what_cannot_be_said_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        say(text)
    assert caught.value.next
    assert pronounce("show") == ("SH", "OW")


@pytest.mark.parametrize("wrong", [{"pitch": 0}, {"tract": -1}, {"speed": 0}, {"tilt": 1}], ids=str)
def test_a_voice_that_nobody_has_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="nobody speaks"):
        Speaker(**wrong)


def spoken_words(speakers: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Each word by each speaker, stretched to 20 frames: [speakers * words, 20 * 26]."""
    rows = []
    for speaker in [draw_speaker(generator) for _ in range(speakers)]:
        for word in WORDS:
            static = mfcc(speak(word, speaker, generator, generator.uniform(15, 40)))
            frames = normalize(np.concatenate([static, delta(static)], axis=1))
            at = np.rint(np.linspace(0, len(frames) - 1, 20)).astype(int)
            rows.append(frames[at].ravel())
    return np.array(rows)


@pytest.mark.slow
def test_words_of_unheard_speakers_are_known_by_their_nearest_neighbours() -> None:
    generator = np.random.default_rng(0)
    known, heard = spoken_words(24, generator), spoken_words(6, generator)
    distance = (known**2).sum(axis=1) - 2 * heard @ known.T
    guessed = distance.argmin(axis=1) % len(WORDS)
    right = np.mean(guessed == np.arange(len(heard)) % len(WORDS))
    assert right >= 0.9  # chance is 1 in 30
