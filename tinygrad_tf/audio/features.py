"""From a sound to the dense vectors that an encoder reads in place of embedded words.

As at the end of source document S4: every vector is a word that never comes twice, and needs
neither a tokenizer nor an embedding.
"""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinygrad_tf.audio.cepstrum import MFCCSettings, delta, mfcc
from tinygrad_tf.audio.resampling import resample
from tinygrad_tf.audio.samples import Floats, checked
from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class SpeechFeatures:
    """Vectors of speech: MFCCs with both deltas, normalised, `stack` frames in each.

    With the defaults a vector of 156 numbers stands for 40 ms, so three seconds are 75 positions.
    Raises InputError where `stack` or `delta_width` cannot be.
    """

    mfcc: MFCCSettings = field(default_factory=MFCCSettings)
    delta_width: int = 9
    stack: int = 4

    def __post_init__(self) -> None:
        if self.stack < 1 or self.delta_width < 3 or self.delta_width % 2 == 0:
            raise InputError(
                f"stack={self.stack}, delta_width={self.delta_width}",
                "take stack >= 1 and an odd delta_width from 3 up",
            )

    @property
    def n_dim(self) -> int:
        """The length of one vector."""
        return 3 * self.mfcc.n_mfcc * self.stack

    def length(self, seconds: float) -> int:
        """Return the number of vectors of a sound of so many seconds."""
        frames = 1 + int(seconds * self.mfcc.rate) // self.mfcc.hop_length
        return -(-frames // self.stack)


def normalize(features: ArrayLike) -> Floats:
    """Features [T, D] with mean 0 and variance 1 in each column; a constant column becomes 0."""
    values = np.asarray(features, dtype=np.float64)
    centered = values - values.mean(axis=0)
    deviation = centered.std(axis=0)
    # What rounding leaves of a constant must not be blown up to a signal.
    constant = deviation <= 1e-9 * (1 + np.abs(values).max(axis=0))
    return cast(Floats, np.where(constant, 0, centered / np.where(constant, 1, deviation)))


def stack_frames(features: ArrayLike, size: int) -> Floats:
    """Features [T, D] as [ceil(T / size), size * D]; the last frame fills up the last vector.

    Raises InputError where `size` is below 1.
    """
    values = np.asarray(features, dtype=np.float64)
    if size < 1:
        raise InputError(f"{size} frames cannot be stacked", "take a size from 1 up")
    missing = -len(values) % size
    return np.pad(values, [(0, missing), (0, 0)], mode="edge").reshape(-1, size * values.shape[1])


def speech_vectors(
    samples: ArrayLike, rate: int, features: SpeechFeatures | None = None
) -> NDArray[np.float32]:
    """The vectors [T, n_dim] of a sound [N] at any rate, normalised over the utterance.

    Raises InputError where the sound is shorter than `delta_width` frames (80 ms by default), or
    silent.
    """
    how = features or SpeechFeatures()
    sound = resample(samples, rate, how.mfcc.rate)
    least = (how.delta_width - 1) * how.mfcc.hop_length
    if len(sound) < least:
        raise InputError(
            f"a sound of {len(checked(samples)) / rate:.3f} s is too short",
            f"record at least {least / how.mfcc.rate:.2f} s",
        )
    if sound.min() == sound.max():
        raise InputError("the sound is silent: all its samples are equal", "record it again")
    static = mfcc(sound, how.mfcc)
    slopes = [delta(static, how.delta_width, order) for order in (1, 2)]
    columns = normalize(np.concatenate([static, *slopes], axis=1))
    return stack_frames(columns, how.stack).astype(np.float32)
