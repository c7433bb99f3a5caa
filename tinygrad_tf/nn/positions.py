"""Sinusoidal positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def sinusoidal_positions(length: int, d_model: int) -> npt.NDArray[Any]:
    """Return the table of Vaswani et al. 2017, section 3.5: (length, d_model), float64.

    PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same: the frequency depends
    on the pair of channels, and it is multiplied with the position.
    """
    channel = np.arange(d_model)
    frequency = 10000.0 ** (-2.0 * (channel // 2) / d_model)
    angle = np.arange(length)[:, None] * frequency
    return np.where(channel % 2 == 0, np.sin(angle), np.cos(angle))
