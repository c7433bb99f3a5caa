"""Another sampling rate: a low-pass filter of windowed sinc, in polyphase form.

Output n lies at the time n * rate / target of the input. With the ratio in lowest terms, up / down,
these times fall on only `up` different places between two input samples: so there are `up`
filters, and each serves every up-th output (Crochiere and Rabiner 1983).
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from tinygrad_tf.audio.samples import Floats, checked, checked_rate

RATE = 16_000
# Flat to 0.9 of the lower of the two Nyquist frequencies, and 80 dB down from that on: Kaiser's
# formulas give the beta, and the number of zero crossings on either side of the centre.
EDGE, BETA, CROSSINGS = 0.95, 7.857, 52


def resample(samples: ArrayLike, rate: int, target: int = RATE) -> Floats:
    """The sound [N] at `rate` hertz as ceil(N * target / rate) samples at `target` hertz.

    What lies below 0.9 of the lower Nyquist frequency is kept, what lies above it is at least
    80 dB down; beyond its ends the sound is taken to be silent. Raises InputError where a rate is
    no whole number from 1 up or the samples are none.
    """
    sound, rate, target = checked(samples), checked_rate(rate), checked_rate(target)
    if rate == target:
        return sound.copy()
    common = math.gcd(rate, target)
    up, down = target // common, rate // common
    cutoff = EDGE * min(1.0, target / rate)
    reach = math.ceil(CROSSINGS / cutoff)
    count = -(-len(sound) * up // down)
    # Row i of the windows holds the input samples from i - reach to i + reach.
    windows = sliding_window_view(np.pad(sound, reach), 2 * reach + 1)
    out = np.empty(count)
    for phase in range(min(up, count)):
        first, part = divmod(phase * down, up)
        out[phase::up] = windows[first::down] @ _filter(cutoff, reach, part / up)
    return out


def _filter(cutoff: float, reach: int, shift: float) -> Floats:
    """Weights [2 * reach + 1] of the input samples around a time `shift` after the middle one."""
    away = np.arange(-reach, reach + 1) - shift
    inside = np.clip(1 - (away * cutoff / CROSSINGS) ** 2, 0, None)
    weights: Floats = np.sinc(cutoff * away) * np.i0(BETA * np.sqrt(inside)) * (inside > 0)
    weights /= weights.sum()  # a constant stays what it was
    return weights
