"""Derivatives by differences, with an estimate of their own error and an eye for kinks.

Everything here looks at a function along a line: `line(t)` is f(x + t·direction), so that an entry
and a random direction are the same to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.checking.subjects import Subject
from tinygrad_tf.types import Array

Line = Callable[[float], Array]

UNIT = float(np.finfo(np.float64).eps)
# Where the error of cutting Taylor's series off (h²) meets the error of rounding (1/h).
EPS = float(np.cbrt(UNIT))
COMPLEX_STEP = 1e-30

CLOSER = 2.0**-8  # how much nearer to look when something strange is in reach of a step
LADDER = tuple(2.0**k for k in (-24, -16, -8, -4, 4, 8, 12))


@dataclass(frozen=True)
class Slope:
    """A derivative: value, what it may be off by, and the one-sided slopes where they differ."""

    value: float
    error: float
    sides: tuple[float, float] | None = None


def step_for(eps: float, size: float) -> float:
    """eps·max(1, size), as a power of two: adding it to a number of that size is then exact."""
    return float(2.0 ** round(math.log2(eps * max(1.0, size))))


def entry_line(
    subject: Subject, arrays: Sequence[Array], which: int, index: tuple[int, ...]
) -> Line:
    """The function as one entry of one array moves."""

    def line(t: float) -> Array:
        moved = [x.astype(complex) for x in arrays] if isinstance(t, complex) else list(arrays)
        moved[which] = moved[which].copy()
        moved[which][index] += t
        return subject.value(moved)

    return line


def direction_line(subject: Subject, arrays: Sequence[Array], along: Sequence[Array]) -> Line:
    """The function as all arrays move along a direction."""
    return lambda t: subject.value([x + t * u for x, u in zip(arrays, along, strict=True)])


def slope(line: Line, centre: Array, up: Array, h: float) -> Slope:
    """The derivative of Σ up·line at 0 by central differences of two steps, h and h/2.

    Where the one-sided slopes do not approach each other the point is looked at from nearer: a
    kink that stands beside it is then out of reach, one that stands on it (or within h/256, some
    3e-8) is reported.
    """
    found = _two_steps(line, centre, up, h)
    if found.sides is not None:
        found = _two_steps(line, centre, up, h * CLOSER)
    if math.isnan(found.value):  # the edge of the domain may be nearer still
        found = _two_steps(line, centre, up, h * CLOSER**2)
    return found


def best_slope(line: Line, centre: Array, up: Array, h: float, atol: float, found: Slope) -> Slope:
    """The most certain slope over many steps, for a point where the usual one decides nothing."""

    def doubt(s: Slope) -> float:
        return s.error / (abs(s.value) + atol)

    others = (_two_steps(line, centre, up, h * factor) for factor in LADDER)
    return min([found, *(s for s in others if s.sides is None)], key=doubt)


def complex_slope(line: Callable[[complex], Array], up: Array) -> Slope:
    """The derivative by a step into the imaginary direction: nothing is subtracted, so no digit
    is lost (Squire & Trapp 1998)."""
    value = float(np.sum(up * line(COMPLEX_STEP * 1j).imag) / COMPLEX_STEP)
    return Slope(value, 64 * UNIT * abs(value))


def _two_steps(line: Line, centre: Array, up: Array, h: float) -> Slope:
    """Central differences with h and h/2; their distance tells how far off they may be."""
    ahead, behind, size = {}, {}, float(np.max(np.abs(centre), initial=1.0))
    for step in (h, h / 2):
        above, below = line(step), line(-step)
        if not (np.all(np.isfinite(above)) and np.all(np.isfinite(below))):
            return Slope(math.nan, math.inf, _sides(above, centre, below, up, step))
        ahead[step], behind[step] = (above - centre) / step, (centre - below) / step
        size = max(size, float(np.max(np.abs(above), initial=0.0)))
    coarse, fine = (float(np.sum(up * (ahead[s] + behind[s]))) / 2 for s in (h, h / 2))
    weight = float(np.sum(np.abs(up)))
    noise = UNIT * size / h
    error = abs(coarse - fine) + 4 * noise * weight
    value = fine + (fine - coarse) / 3  # the h² term cancels (Richardson 1911)
    # Smooth, the sides differ by h·f'', which halves with h; at a kink the gap stays. At a jump the
    # slopes double, maybe both alike. What rounding makes does not count.
    gap, before = (np.abs(ahead[s] - behind[s]) for s in (h / 2, h))
    steep, flat = (np.maximum(np.abs(ahead[s]), np.abs(behind[s])) for s in (h / 2, h))
    kink = (gap > 0.75 * before) & (gap > 64 * noise) & (gap > 1e-3 * steep)
    jump = (steep > 1.5 * flat) & (steep > 64 * noise)
    if np.any((kink | jump) & (up != 0)):
        left, right = (float(np.sum(up * side[h / 2])) for side in (behind, ahead))
        return Slope(value, error, (left, right))
    return Slope(value, error)


def _sides(
    above: Array, centre: Array, below: Array, up: Array, step: float
) -> tuple[float, float]:
    left = float(np.sum(up * (centre - below))) / step
    return left, float(np.sum(up * (above - centre))) / step
