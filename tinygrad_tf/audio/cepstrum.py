"""Mel-frequency cepstral coefficients: waveform, frames, power, mel, logarithm, cosine transform.

After Davis and Mermelstein 1980. Settings and results are those of librosa, but for the order of
the axes: here time comes first, as a transformer wants it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from tinygrad_tf.audio.samples import Floats, checked, checked_rate
from tinygrad_tf.errors import InputError

BLOCK = 4096  # frames transformed at a time, so that an hour of sound needs little memory
# Slaney's mel scale: linear up to 1000 Hz, logarithmic above (Auditory Toolbox, 1998).
LINEAR_STEP, BREAK_HZ, LOG_STEP = 200 / 3, 1000.0, math.log(6.4) / 27


@dataclass(frozen=True)
class MFCCSettings:
    """Settings of MFCCs; the defaults suit speech: windows of 25 ms, one each 10 ms.

    `htk` takes the mel scale 2595 log10(1 + f / 700) instead of Slaney's; `norm` "slaney" gives
    each filter the same area; `center` puts frame t around sample t * hop_length, with silence
    beyond the ends; `top_db` lifts whatever is further below the loudest value. Raises InputError
    for settings that do not fit together.
    """

    rate: int = 16_000
    n_fft: int = 512
    win_length: int = 400
    hop_length: int = 160
    n_mels: int = 40
    n_mfcc: int = 13
    fmin: float = 0.0
    fmax: float | None = None
    htk: bool = False
    norm: Literal["slaney"] | None = "slaney"
    center: bool = True
    top_db: float | None = 80.0
    amin: float = 1e-10

    def __post_init__(self) -> None:
        checked_rate(self.rate)
        if not 1 <= self.win_length <= self.n_fft or self.hop_length < 1:
            raise InputError(
                f"windows of {self.win_length} samples, one each {self.hop_length}, do not fit "
                f"n_fft={self.n_fft}",
                "take 1 <= win_length <= n_fft and hop_length >= 1",
            )
        if not 1 <= self.n_mfcc <= self.n_mels:
            raise InputError(
                f"{self.n_mfcc} coefficients cannot be made of {self.n_mels} mel bands",
                "take 1 <= n_mfcc <= n_mels",
            )
        if not 0 <= self.fmin < self.top_hz <= self.rate / 2:
            raise InputError(
                f"a band from {self.fmin} to {self.top_hz} Hz does not fit a rate of {self.rate}",
                "take 0 <= fmin < fmax <= rate / 2",
            )
        if self.amin <= 0 or (self.top_db is not None and self.top_db < 0):
            raise InputError(
                f"amin={self.amin}, top_db={self.top_db}", "take amin > 0 and top_db >= 0"
            )

    @property
    def top_hz(self) -> float:
        """The upper end of the highest filter."""
        return self.rate / 2 if self.fmax is None else self.fmax


SPEECH = MFCCSettings()


def hz_to_mel(hz: ArrayLike, htk: bool = False) -> Floats:
    """Frequencies in mel: 2595 log10(1 + f / 700) with `htk`, else Slaney's scale."""
    f = np.asarray(hz, dtype=np.float64)
    if htk:
        return np.asarray(2595 * np.log10(1 + f / 700))
    above = BREAK_HZ / LINEAR_STEP + np.log(np.maximum(f, BREAK_HZ) / BREAK_HZ) / LOG_STEP
    return np.where(f < BREAK_HZ, f / LINEAR_STEP, above)


def mel_to_hz(mel: ArrayLike, htk: bool = False) -> Floats:
    """The inverse of `hz_to_mel`."""
    m = np.asarray(mel, dtype=np.float64)
    if htk:
        return np.asarray(700 * (10 ** (m / 2595) - 1))
    bend = BREAK_HZ / LINEAR_STEP
    return np.where(
        m < bend, m * LINEAR_STEP, BREAK_HZ * np.exp(LOG_STEP * np.maximum(m - bend, 0))
    )


@lru_cache(maxsize=8)
def mel_filterbank(settings: MFCCSettings = SPEECH) -> Floats:
    """Overlapping triangles [n_mels, n_fft // 2 + 1], evenly spaced in mel; read-only.

    Raises InputError where a triangle is so narrow that it meets no frequency of the transform.
    """
    low, high = hz_to_mel([settings.fmin, settings.top_hz], settings.htk)
    corners = mel_to_hz(np.linspace(low, high, settings.n_mels + 2), settings.htk)
    hz = np.fft.rfftfreq(settings.n_fft, 1 / settings.rate)
    left, peak, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    bank: Floats = np.maximum(
        0, np.minimum((hz - left) / (peak - left), (right - hz) / (right - peak))
    )
    empty = np.flatnonzero(bank.max(axis=1) == 0)
    if empty.size:
        raise InputError(
            f"{empty.size} of {settings.n_mels} mel bands lie between two frequencies of "
            f"n_fft={settings.n_fft}",
            "take fewer n_mels or a larger n_fft",
        )
    if settings.norm == "slaney":
        bank *= 2 / (right - left)
    bank.flags.writeable = False
    return bank


def dct_matrix(n_mfcc: int, n_mels: int) -> Floats:
    """The orthonormal DCT-II as rows [n_mfcc, n_mels]: s_k cos(pi k (2 j + 1) / (2 n_mels))."""
    k, j = np.arange(n_mfcc)[:, None], np.arange(n_mels)
    rows: Floats = math.sqrt(2 / n_mels) * np.cos(np.pi * k * (2 * j + 1) / (2 * n_mels))
    rows[0] /= math.sqrt(2)
    return rows


def mel_power(samples: ArrayLike, settings: MFCCSettings = SPEECH) -> Floats:
    """The power [T, n_mels] in each mel band of each frame, through a Hann window.

    Raises InputError where there are no samples, or without `center` fewer than n_fft.
    """
    sound, bank = checked(samples), mel_filterbank(settings).T
    if settings.center:
        sound = np.pad(sound, settings.n_fft // 2)
    if len(sound) < settings.n_fft:
        raise InputError(
            f"{len(sound)} samples do not fill one frame of {settings.n_fft}",
            "give a longer sound, or center=True",
        )
    frames = sliding_window_view(sound, settings.n_fft)[:: settings.hop_length]
    window = _window(settings)
    blocks = (frames[at : at + BLOCK] * window for at in range(0, len(frames), BLOCK))
    return np.concatenate([np.abs(np.fft.rfft(block)) ** 2 @ bank for block in blocks])


def power_to_db(power: ArrayLike, top_db: float | None = 80.0, amin: float = 1e-10) -> Floats:
    """10 log10 of a power not below `amin`, and not more than `top_db` below the largest value."""
    decibels: Floats = 10 * np.log10(np.maximum(np.asarray(power, dtype=np.float64), amin))
    return decibels if top_db is None else np.maximum(decibels, decibels.max() - top_db)


def mfcc(samples: ArrayLike, settings: MFCCSettings = SPEECH) -> Floats:
    """MFCCs [T, n_mfcc] of a sound [N]; T is 1 + N // hop_length where `center` is on.

    A sound n times as loud differs only in the first coefficient. Raises InputError as
    `mel_power` does.
    """
    decibels = power_to_db(mel_power(samples, settings), settings.top_db, settings.amin)
    return decibels @ dct_matrix(settings.n_mfcc, settings.n_mels).T


def delta(features: ArrayLike, width: int = 9, order: Literal[1, 2] = 1) -> Floats:
    """First or second derivative in time of features [T, D], from a polynomial over `width` frames.

    It is fitted by least squares around each frame (Savitzky and Golay 1964); frames closer to an
    end than half of `width` share the fit of the first or last whole one. Raises InputError where
    `width` is not odd, is not above `order`, or exceeds T.
    """
    values = np.asarray(features, dtype=np.float64)
    if width % 2 == 0 or width <= order or width > len(values):
        raise InputError(
            f"the slope over {width} frames cannot be had from {len(values)}",
            f"take an odd width above {order}, at most the number of frames",
        )
    half = width // 2
    powers = np.vander(np.arange(-half, half + 1), order + 1, increasing=True)
    weights = math.factorial(order) * np.linalg.pinv(powers)[order]
    slopes = sliding_window_view(values, width, axis=0) @ weights
    return np.pad(slopes, [(half, half)] + [(0, 0)] * (values.ndim - 1), mode="edge")


def _window(settings: MFCCSettings) -> Floats:
    """A periodic Hann window of win_length in the middle of n_fft."""
    n = settings.win_length
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
    before = (settings.n_fft - n) // 2
    return np.pad(hann, (before, settings.n_fft - n - before))
