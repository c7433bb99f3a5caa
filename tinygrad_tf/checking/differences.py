"""Measure derivatives by differences, estimate the error of each, and detect kinks.

A function is measured along a line: `line(t)` is f(x + t·direction), where the direction is a
single entry or a random one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.checking.functions import Function
from tinygrad_tf.types import Array

Line = Callable[[float], Array]

UNIT = float(np.finfo(np.float64).eps)
# The step where the truncation error of the Taylor series (h²) equals the rounding error (1/h).
EPS = float(np.cbrt(UNIT))
COMPLEX_STEP = 1e-30

CLOSER = 2.0**-8  # the factor of the step where a kink may lie beside the point
LADDER = tuple(2.0**k for k in (-24, -16, -8, -4, 4, 8, 12))


@dataclass(frozen=True)
class Slope:
    """A derivative: its value, a bound of its error, and the one-sided slopes where they differ."""

    value: float
    error: float
    sides: tuple[float, float] | None = None


def step_for(eps: float, size: float) -> float:
    """eps·max(1, size), as a power of two: adding it to a number of that size is then exact."""
    return float(2.0 ** round(math.log2(eps * max(1.0, size))))


def entry_line(
    function: Function, arrays: Sequence[Array], which: int, index: tuple[int, ...]
) -> Line:
    """The function of t that moves one entry of one array by t."""

    def line(t: float) -> Array:
        moved = [x.astype(complex) for x in arrays] if isinstance(t, complex) else list(arrays)
        moved[which] = moved[which].copy()
        moved[which][index] += t
        return function.value(moved)

    return line


def direction_line(function: Function, arrays: Sequence[Array], along: Sequence[Array]) -> Line:
    """The function of t that moves all arrays by t along a direction."""
    return lambda t: function.value([x + t * u for x, u in zip(arrays, along, strict=True)])


def slope(line: Line, centre: Array, up: Array, h: float) -> Slope:
    """The derivative of Σ up·line at 0 by central differences of two steps, h and h/2.

    Where the one-sided slopes do not approach each other, it measures again with smaller steps: a
    kink beside the point is then out of reach, one at the point (or within h/256, about 3e-8) is
    reported.
    """
    measured = _two_steps(line, centre, up, h)
    if measured.sides is not None:
        measured = _two_steps(line, centre, up, h * CLOSER)
    if math.isnan(measured.value):  # the edge of the domain may be nearer still
        measured = _two_steps(line, centre, up, h * CLOSER**2)
    return measured


def best_slope(line: Line, centre: Array, up: Array, h: float, atol: float, first: Slope) -> Slope:
    """The slope of the smallest relative error over many steps, `first` being that of step h."""

    def doubt(s: Slope) -> float:
        return s.error / (abs(s.value) + atol)

    others = (_two_steps(line, centre, up, h * factor) for factor in LADDER)
    return min([first, *(s for s in others if s.sides is None)], key=doubt)


def complex_slope(line: Callable[[complex], Array], up: Array) -> Slope:
    """The derivative by an imaginary step: nothing is subtracted, so no digit is lost
    (Squire & Trapp 1998)."""
    value = float(np.sum(up * line(COMPLEX_STEP * 1j).imag) / COMPLEX_STEP)
    return Slope(value, 64 * UNIT * abs(value))


def _two_steps(line: Line, centre: Array, up: Array, h: float) -> Slope:
    """Central differences with steps h and h/2; their distance estimates the error."""
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
    # The sides of a smooth function differ by h·f'', which halves with h; at a kink the gap does
    # not. At a jump the slopes double, perhaps both alike. Rounding errors do not count.
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
