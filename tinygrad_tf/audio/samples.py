"""The check that all audio code makes: one channel of finite samples."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinygrad_tf.errors import InputError

Floats = NDArray[np.float64]


def checked(samples: ArrayLike) -> Floats:
    """The samples [N] as float64; InputError where they are no sound at all."""
    sound = np.asarray(samples, dtype=np.float64)
    if sound.ndim != 1:
        raise InputError(
            f"samples must have one axis and have the shape {list(sound.shape)}",
            "mix the channels: samples.mean(axis=1)",
        )
    if not sound.size:
        raise InputError("there is not a single sample", "give a sound that is not empty")
    if not np.isfinite(sound).all():
        bad = int(np.flatnonzero(~np.isfinite(sound))[0])
        raise InputError(f"sample {bad} is {sound[bad]}", "give finite samples")
    return sound


def checked_rate(rate: int) -> int:
    """A sampling rate in hertz; InputError where it is not a whole number from 1 up."""
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or rate < 1:
        raise InputError(f"a rate of {rate} Hz is none", "give a whole number of hertz, as 16000")
    return int(rate)
