"""Compare the gradients of a function with slopes measured by differences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tinygrad_tf.checking import diagnosis
from tinygrad_tf.checking.differences import (
    COMPLEX_STEP,
    Line,
    Slope,
    best_slope,
    complex_slope,
    direction_line,
    entry_line,
    slope,
    step_for,
)
from tinygrad_tf.checking.report import GradcheckError, GradientEntry, Report, place
from tinygrad_tf.checking.trial import Trial
from tinygrad_tf.types import Array

LARGEST_JACOBIAN = 4096  # entries
DIRECTIONS = 3


@dataclass
class _Tally:
    """The comparisons that are done, and what could not be compared."""

    decided: int = 0
    worst: float = 0.0
    ill: list[str] = field(default_factory=list)
    kinks: list[str] = field(default_factory=list)

    def add(self, analytic: float, measured: Slope, verdict: str, where: str) -> None:
        """Count one comparison; a wrong one is reported by the caller."""
        if verdict == "right":
            self.decided += 1
            error = abs(analytic - measured.value) / max(1.0, abs(measured.value))
            self.worst = max(self.worst, error)
        elif verdict == "ill":
            self.ill.append(
                f"{where}: no step decides; analytic {analytic:.6g}, "
                f"numeric {measured.value:.6g} ± {measured.error:.1e}"
            )

    def report(self, trial: Trial) -> Report:
        """The report of all comparisons."""
        ill, kinks = tuple(self.ill), tuple(self.kinks)
        return Report(trial.function.name, trial.method, self.decided, self.worst, None, ill, kinks)


def compare(trial: Trial, analytic: Sequence[Array]) -> Report:
    """Compare the gradients by the method of the trial; raises GradcheckError where they differ."""
    _check_shapes(trial, analytic)
    if trial.method == "directional":
        return _compare_directions(trial, analytic)
    reason = _no_complex_step(trial) if trial.method == "complex" else ""
    if reason:
        trial = replace(trial, method="central")
    report = _compare_entries(trial, analytic)
    if reason:
        note = f"no complex step for {trial.function.name}: {reason}"
        report = report.joined(Report("", notes=(note,)))
    return report


def _check_shapes(trial: Trial, analytic: Sequence[Array]) -> None:
    for which, (gradient, x) in enumerate(zip(analytic, trial.arrays, strict=True)):
        if gradient.shape != x.shape:
            pattern, rows = "", _jacobian(trial, which)
            if rows is not None:
                numeric = (trial.up.reshape(-1) @ rows).reshape(x.shape)
                pattern = diagnosis.shape_pattern(gradient, numeric)
            text = f"the gradient has shape {gradient.shape}, not {x.shape}"
            raise trial.error("shape", text, which, (), pattern)


def _measure(trial: Trial, line: Line, size: float, analytic: float) -> tuple[Slope, str]:
    """The slope along a line and the verdict on the gradient: "kink", "right", "wrong", or "ill".

    "ill" means ill-conditioned: no step of differences can decide. size: of the number that moves.
    """
    if trial.method == "complex":
        measured = complex_slope(line, trial.up)  # type: ignore[arg-type]  # its lines take complex
    else:
        h = step_for(trial.eps, size)
        measured = slope(line, trial.centre, trial.up, h)
    if measured.sides is not None:
        return measured, "kink"

    def tolerance(s: Slope) -> float:
        return trial.atol + trial.rtol * max(abs(s.value), abs(analytic))

    def right(s: Slope) -> bool:
        return abs(analytic - s.value) <= tolerance(s)

    if not right(measured) and measured.error > tolerance(measured) and trial.method != "complex":
        measured = best_slope(line, trial.centre, trial.up, h, trial.atol, measured)
    if right(measured):
        return measured, "right"
    # This is false where either side is nan.
    within = abs(analytic - measured.value) <= tolerance(measured) + 4 * measured.error
    return measured, "ill" if within else "wrong"


# --- entry by entry -------------------------------------------------------------------------------
def _compare_entries(trial: Trial, analytic: Sequence[Array]) -> Report:
    """Compare every entry of every gradient with the slope along it."""
    tally = _Tally()
    numeric = [np.zeros(x.shape) for x in trial.arrays]
    wrong = [np.zeros(x.shape, bool) for x in trial.arrays]
    for which, x in enumerate(trial.arrays):
        for index in np.ndindex(x.shape):
            a = float(analytic[which][index])
            line = entry_line(trial.function, trial.arrays, which, index)
            measured, verdict = _measure(trial, line, abs(float(x[index])), a)
            where = place(trial.function.names[which], index)
            if measured.sides is not None:
                text = f"argument {which} index {index} ({where}): {_kink(*measured.sides)}"
                tally.kinks.append(_skipped(trial, f"not differentiable at {text}", which))
                numeric[which][index] = a
                continue
            tally.add(a, measured, verdict, where)
            numeric[which][index] = measured.value
            wrong[which][index] = verdict == "wrong"
    shares = [float(np.mean(w)) if w.size else 0.0 for w in wrong]
    if any(shares):
        worst = shares.index(max(shares))
        raise _mismatch(trial, analytic, numeric, wrong[worst], worst)
    return tally.report(trial)


def _kink(left: float, right: float) -> str:
    if np.isclose(left, right):
        return "f jumps there"
    if np.isfinite(left) and np.isfinite(right):
        return f"slope {left:.6g} from below, {right:.6g} from above"
    return "f is not finite just beside it"


def _skipped(trial: Trial, text: str, which: int | None = None) -> str:
    """The text of a kink that is skipped; raises its error where kinks are not skipped."""
    if trial.on_kink == "raise":
        raise trial.error("kink", f"{text}; move the point, or give `on_kink=skip`", which)
    return text


def _mismatch(
    trial: Trial, analytic: Sequence[Array], numeric: Sequence[Array], wrong: Array, which: int
) -> GradcheckError:
    a, n = analytic[which], numeric[which]
    name = trial.function.names[which]
    places = [tuple(int(i) for i in at) for at in np.argwhere(wrong)]
    entries = [GradientEntry(name, at, float(a[at]), float(n[at])) for at in places]
    entries.sort(key=lambda e: -e.absolute if e.absolute == e.absolute else -np.inf)
    text = diagnosis.pattern(
        analytic, numeric, which, wrong, trial.up, lambda: _jacobian(trial, which)
    )
    step = "" if trial.method == "complex" else f" eps={trial.eps:.1e}"
    headline = f"{len(entries)} of {a.size} entries differ, method={trial.method}{step}"
    return trial.error("value", headline, which, entries, text)


def _jacobian(trial: Trial, which: int) -> Array | None:
    """The derivative of every output (rows) by every entry of an argument (columns).

    None where it has more than LARGEST_JACOBIAN entries.
    """
    x = trial.arrays[which]
    if x.size * trial.up.size > LARGEST_JACOBIAN:
        return None
    columns = np.zeros((x.size, trial.up.size))
    for column, index in zip(columns, np.ndindex(x.shape), strict=True):
        line = entry_line(trial.function, trial.arrays, which, index)
        h = step_for(trial.eps, abs(float(x[index])))
        column[...] = ((line(h) - line(-h)) / (2 * h)).reshape(-1)
    return columns.T


# --- the complex step -----------------------------------------------------------------------------
def _no_complex_step(trial: Trial) -> str:
    """The reason why the function cannot be differentiated by the complex step, "" where it can.

    It must take complex numbers, return them, and be analytic: |x| takes them, and is wrong.
    """
    rng = np.random.default_rng(trial.seed)
    along = [rng.standard_normal(x.shape) for x in trial.arrays]
    moved = [x + COMPLEX_STEP * 1j * u for x, u in zip(trial.arrays, along, strict=True)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            y = trial.function.value(moved)
    except Exception as fault:  # anything that a function of real numbers may raise
        return f"it raises {type(fault).__name__} for complex numbers"
    if y.dtype.kind != "c":
        return "it gives real numbers for complex ones"
    line = direction_line(trial.function, trial.arrays, along)
    complex_step = float(np.sum(trial.up * y.imag)) / COMPLEX_STEP
    central = slope(line, trial.centre, trial.up, step_for(trial.eps, 1.0))
    tolerance = 1e-4 * (1 + abs(central.value)) + 4 * central.error
    if not abs(complex_step - central.value) <= tolerance:
        return "it is not analytic: the complex step and central differences disagree"
    return ""


# --- random directions ----------------------------------------------------------------------------
def _compare_directions(trial: Trial, analytic: Sequence[Array]) -> Report:
    """Compare Σ u·gradient with the slope along u, for a few random u; bisect a wrong one."""
    rng = np.random.default_rng(trial.seed)
    tally = _Tally()
    for _ in range(DIRECTIONS):
        along = [rng.standard_normal(x.shape) for x in trial.arrays]
        a, measured, verdict = _direction(trial, analytic, along)
        if verdict == "kink":
            text = "not differentiable along a random direction"
            tally.kinks.append(_skipped(trial, text))
        elif verdict == "wrong":
            raise _bisected(trial, analytic, along)
        else:
            tally.add(a, measured, verdict, "a random direction")
    return tally.report(trial)


def _direction(
    trial: Trial, analytic: Sequence[Array], along: Sequence[Array]
) -> tuple[float, Slope, str]:
    """The analytic and the measured slope along a direction, and the verdict."""
    line = direction_line(trial.function, trial.arrays, along)
    a = float(sum(np.sum(g * u) for g, u in zip(analytic, along, strict=True)))
    return a, *_measure(trial, line, 1.0, a)


def _bisected(trial: Trial, analytic: Sequence[Array], along: Sequence[Array]) -> GradcheckError:
    """Halve the direction down to one entry, each time keeping the half that differs more."""
    places = [(w, i) for w, u in enumerate(along) for i in np.ndindex(u.shape)]

    def only(kept: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[float, float]:
        """The analytic and the measured slope along the direction at these places, 0 elsewhere."""
        masked = [np.zeros_like(u) for u in along]
        for which, index in kept:
            masked[which][index] = along[which][index] if len(kept) > 1 else 1.0
        a, measured, _ = _direction(trial, analytic, masked)
        return a, measured.value

    while len(places) > 1:
        halves = places[: len(places) // 2], places[len(places) // 2 :]
        first, second = (abs(a - numeric) for a, numeric in map(only, halves))
        places = halves[1] if first <= second else halves[0]  # a gap of nan is in the first half
    which, index = places[0]
    entry = GradientEntry(trial.function.names[which], index, *only(places))
    text = "a random direction differs, bisected to one entry, method=directional"
    return trial.error("value", text, which, [entry])
