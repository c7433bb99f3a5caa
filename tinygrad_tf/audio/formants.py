"""Filters that change every 8 ms: a throat of formants, and teeth that hiss (Klatt 1980).

A filter is given by its poles and zeros, so by polynomials in z^-1, and those by their values on
the unit circle. Filtering is then a product of spectra of overlapping pieces: no loop over samples.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tinygrad_tf.audio.resampling import RATE
from tinygrad_tf.audio.samples import Floats

Spectra = NDArray[np.complex64]  # [T, N_FFT // 2 + 1]

HOP = 128  # samples, 8 ms: how often the filter changes
PIECE = 2 * HOP  # Hann windows of this length, one each HOP, add up to one
N_FFT = 4 * HOP  # room for a piece and for 16 ms of ringing
BANDWIDTHS = (70.0, 90.0, 130.0)
UPPER_FORMANTS = (3500.0, 4500.0, 5500.0, 6500.0, 7500.0)
UPPER_BANDWIDTH, NASAL_BANDWIDTH = 350.0, 100.0
NASAL_POLE = 270.0  # hertz; a zero at the same place cancels it, so that only nasals have it


def spectra(signal: Floats) -> Spectra:
    """Windowed pieces of a signal [(T + 1) * HOP], transformed."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(PIECE) / PIECE)
    pieces = sliding_window_view(signal.astype(np.float32), PIECE)[::HOP]
    return cast(Spectra, np.fft.rfft(pieces * window.astype(np.float32), N_FFT))


def overlap_add(pieces: Spectra) -> Floats:
    """The signal [(T + 1) * HOP] whose (filtered) `spectra` these are."""
    frames, blocks = len(pieces), N_FFT // HOP
    sounds = np.fft.irfft(pieces, N_FFT).reshape(frames, blocks, HOP)
    out = np.zeros((frames + blocks - 1, HOP))
    for late in range(blocks):
        out[late : late + frames] += sounds[:, late]
    return out.reshape(-1)[: (frames + 1) * HOP]


def throat(f1: Floats, f2: Floats, f3: Floats, zero: Floats, tract: float, tilt: float) -> Spectra:
    """A cascade of formants [T] in hertz, with gain 1 at 0 Hz.

    `zero` is where the nose takes away, `tract` multiplies all frequencies, `tilt` from 0 to 1
    dulls the sound.
    """
    poles = _times(np.array([[1.0, -tilt]]), _pair([NASAL_POLE * tract], NASAL_BANDWIDTH))
    for hertz in UPPER_FORMANTS:
        if hertz * tract < RATE / 2 - UPPER_BANDWIDTH:
            poles = _times(poles, _pair([hertz * tract], UPPER_BANDWIDTH))
    for formant, width in zip((f1, f2, f3), BANDWIDTHS, strict=True):
        poles = _times(poles, _pair(formant * tract, width))
    zeros = _pair(zero * tract, NASAL_BANDWIDTH)
    zeros *= poles.sum(axis=1, keepdims=True) / zeros.sum(axis=1, keepdims=True)
    return _on_circle(zeros) / _on_circle(poles)


def teeth(center: Floats, width: Floats) -> Spectra:
    """One resonance around `center`, `width` wide, with gain 1 there and 0 at 0 Hz."""
    r, angle = np.exp(-np.pi * width / RATE), 2 * np.pi * center / RATE
    peak = (1 - r) * np.sqrt(1 - 2 * r * np.cos(2 * angle) + r * r) / (2 * np.sin(angle / 2))
    return _on_circle(peak[:, None] * [[1.0, -1.0]]) / _on_circle(_pair(center, width))


def _pair(hertz: Floats | Sequence[float], width: Floats | float) -> Floats:
    """Polynomials [T, 3] of two conjugate poles or zeros: 1 - 2 r cos(a) z^-1 + r^2 z^-2."""
    angle = 2 * np.pi * np.asarray(hertz) / RATE
    r = np.broadcast_to(np.exp(-np.pi * np.asarray(width) / RATE), angle.shape)
    return np.stack([np.ones_like(r), -2 * r * np.cos(angle), r * r], axis=1)


def _times(left: Floats, right: Floats) -> Floats:
    """The products of polynomials [T or 1, m] and [T or 1, 3]: [T, m + 2]."""
    degree = left.shape[1]
    out = np.zeros((max(len(left), len(right)), degree + 2))
    for power in range(3):
        out[:, power : power + degree] += left * right[:, power, None]
    return out


def _on_circle(polynomials: Floats) -> Spectra:
    """Their values at the frequencies of the transform: [T, n] to [T, N_FFT // 2 + 1]."""
    bins, powers = np.arange(N_FFT // 2 + 1), np.arange(polynomials.shape[1])
    z = np.exp(-2j * np.pi / N_FFT * np.outer(powers, bins))
    # Real times complex as one real product is faster than NumPy's complex one. In single
    # precision the poles near 0 Hz would be off by a percent.
    values = (polynomials @ z.view(np.float64)).view(np.complex128)
    return cast(Spectra, values.astype(np.complex64))
