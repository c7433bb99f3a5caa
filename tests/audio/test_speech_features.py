"""From a sound of any rate to the vectors that an encoder reads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tinygrad_tf.audio.cepstrum import MFCCSettings, delta, mfcc
from tinygrad_tf.audio.features import SpeechFeatures, normalize, speech_vectors, stack_frames
from tinygrad_tf.audio.resampling import resample
from tinygrad_tf.audio.voice import Speaker, speak
from tinygrad_tf.errors import InputError

FEATURES = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=st.floats(-100, 100)
)
SPEECH = speak("find my files", Speaker(), np.random.default_rng(0))


@given(FEATURES)
def test_normalised_columns_have_mean_0_and_variance_1_or_are_0(features: np.ndarray) -> None:
    out = normalize(features)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-6)
    for before, after in zip(features.T, out.T, strict=True):
        if np.ptp(before) > 1e-6:
            assert after.std() == pytest.approx(1)
        elif np.ptp(before) == 0:
            assert not after.any()


@given(FEATURES, st.integers(1, 6))
def test_stacking_keeps_every_frame_in_order(features: np.ndarray, size: int) -> None:
    frames, columns = features.shape
    out = stack_frames(features, size)
    assert out.shape == (-(-frames // size), size * columns)
    flat = out.reshape(-1, columns)
    assert np.array_equal(flat[:frames], features)
    assert (flat[frames:] == features[-1]).all()


def test_vectors_are_mfccs_with_both_deltas() -> None:
    static = mfcc(SPEECH)
    columns = np.concatenate([static, delta(static), delta(static, order=2)], axis=1)
    expected = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    one_by_one = speech_vectors(SPEECH, 16_000, SpeechFeatures(stack=1))
    np.testing.assert_allclose(one_by_one, expected, atol=1e-4)
    assert one_by_one.dtype == np.float32


@settings(max_examples=20)
@given(st.floats(0.1, 10))
def test_loudness_changes_nothing(factor: float) -> None:
    np.testing.assert_allclose(
        speech_vectors(factor * SPEECH, 16_000), speech_vectors(SPEECH, 16_000), atol=1e-3
    )


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
def test_the_rate_of_the_file_hardly_matters(rate: int) -> None:
    again = speech_vectors(resample(SPEECH, 16_000, rate), rate)
    here = speech_vectors(SPEECH, 16_000)
    assert again.shape == here.shape
    # The top of the band, 7200 to 8000 Hz, is lost on the way.
    assert np.corrcoef(again.ravel(), here.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("stack", [1, 3, 4])
def test_shapes_are_those_announced(stack: int) -> None:
    how = SpeechFeatures(MFCCSettings(n_mfcc=10), stack=stack)
    out = speech_vectors(SPEECH, 16_000, how)
    assert out.shape == (how.length(len(SPEECH) / 16_000), how.n_dim)
    assert how.n_dim == 3 * 10 * stack


def test_three_seconds_are_at_most_80_positions() -> None:
    assert speech_vectors(np.random.default_rng(0).normal(size=48_000), 16_000).shape == (76, 156)


def test_what_is_no_speech_is_refused() -> None:
    with pytest.raises(InputError, match=r"a sound of 0.010 s is too short.*0.08 s"):
        speech_vectors(SPEECH[:160], 16_000)
    with pytest.raises(InputError, match="silent"):
        speech_vectors(np.zeros(16_000), 8_000)
    with pytest.raises(InputError, match="stack=0"):
        SpeechFeatures(stack=0)
    with pytest.raises(InputError, match="delta_width=4"):
        SpeechFeatures(delta_width=4)
    with pytest.raises(InputError, match="0 frames"):
        stack_frames([[1.0]], 0)


def test_the_shortest_sound_that_is_taken() -> None:
    assert speech_vectors(SPEECH[3000:4280], 16_000).shape == (3, 156)
