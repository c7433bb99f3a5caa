"""Gradients as computed beside gradients as measured."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tinygrad_tf.checking import diagnose
from tinygrad_tf.checking.numeric import (
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
from tinygrad_tf.checking.report import Entry, GradcheckError, Report, place
from tinygrad_tf.checking.trial import Trial
from tinygrad_tf.types import Array

LARGEST_JACOBIAN = 4096  # entries
REPEATS = 3  # random directions


@dataclass
class Findings:
    """What the comparison of every entry came to."""

    numeric: list[Array]
    wrong: list[Array]
    worst: float = 0.0
    ill: list[str] = field(default_factory=list)
    kinks: list[str] = field(default_factory=list)


def compare_entries(trial: Trial, analytic: Sequence[Array], centre: Array) -> Report:
    """Every entry of every gradient against a slope measured along it."""
    shapes = [x.shape for x in trial.arrays]
    found = Findings([np.zeros(s) for s in shapes], [np.zeros(s, bool) for s in shapes])
    for which, x in enumerate(trial.arrays):
        for index in np.ndindex(x.shape):
            a = float(analytic[which][index]) if _fits(trial, analytic, which) else None
            _compare_entry(trial, centre, found, which, index, a)
    for which, x in enumerate(trial.arrays):
        if not _fits(trial, analytic, which):
            shape = analytic[which].shape
            text = f"the gradient has shape {shape}, not {x.shape}"
            pattern = diagnose.shape_pattern(analytic[which], found.numeric[which])
            raise trial.error("shape", text, which, (), pattern)
    shares = [float(np.mean(wrong)) if wrong.size else 0.0 for wrong in found.wrong]
    if any(shares):
        raise _mismatch(trial, analytic, found, shares.index(max(shares)), centre)
    entries = sum(x.size for x in trial.arrays) - len(found.kinks) - len(found.ill)
    return Report(
        trial.subject.name,
        trial.method,
        entries,
        found.worst,
        ill_conditioned=tuple(found.ill),
        kinks=tuple(found.kinks),
    )


def _fits(trial: Trial, analytic: Sequence[Array], which: int) -> bool:
    return analytic[which].shape == trial.arrays[which].shape


def _compare_entry(
    trial: Trial,
    centre: Array,
    found: Findings,
    which: int,
    index: tuple[int, ...],
    analytic: float | None,
) -> None:
    line = entry_line(trial.subject, trial.arrays, which, index)
    where = place(trial.subject.names[which], index)
    h = step_for(trial.eps, abs(float(trial.arrays[which][index])))
    measured = _measure(trial, line, centre, h)
    if measured.sides is not None:
        left, right = measured.sides
        text = f"not differentiable at argument {which} index {index} ({where}): "
        if np.isclose(left, right):
            text += "f jumps there"
        elif np.isfinite(left) and np.isfinite(right):
            text += f"slope {left:.6g} from below, {right:.6g} from above"
        else:
            text += "f is not finite just beside it"
        if trial.on_kink == "raise":
            raise trial.error("kink", f"{text}; move the point, or give on_kink='skip'", which)
        found.kinks.append(text)
        found.numeric[which][index] = np.nan if analytic is None else analytic
        return
    if analytic is None:
        found.numeric[which][index] = measured.value
        return
    measured, verdict = _judge(trial, line, centre, h, analytic, measured)
    found.numeric[which][index] = measured.value
    if verdict == "wrong":
        found.wrong[which][index] = True
    elif verdict == "ill":
        found.ill.append(
            f"{where}: no step decides; analytic {analytic:.6g}, "
            f"numeric {measured.value:.6g} ± {measured.error:.1e}"
        )
    else:
        error = abs(analytic - measured.value) / max(1.0, abs(measured.value))
        found.worst = max(found.worst, error)


def _measure(trial: Trial, line: Line, centre: Array, h: float) -> Slope:
    if trial.method == "complex":
        return complex_slope(line, trial.up)  # type: ignore[arg-type]  # its lines take complex
    return slope(line, centre, trial.up, h)


def _judge(
    trial: Trial, line: Line, centre: Array, h: float, analytic: float, measured: Slope
) -> tuple[Slope, str]:
    """ "right", "wrong", or "ill" where differences cannot tell, with the slope that says so."""

    def tolerance(s: Slope) -> float:
        return trial.atol + trial.rtol * max(abs(s.value), abs(analytic))

    def right(s: Slope) -> bool:
        return abs(analytic - s.value) <= tolerance(s)

    if not right(measured) and measured.error > tolerance(measured) and trial.method != "complex":
        measured = best_slope(line, centre, trial.up, h, trial.atol, measured)
    if right(measured):
        return measured, "right"
    # With nan on either side this is false.
    within = abs(analytic - measured.value) <= tolerance(measured) + 4 * measured.error
    return measured, "ill" if within else "wrong"


def _mismatch(
    trial: Trial, analytic: Sequence[Array], found: Findings, which: int, centre: Array
) -> GradcheckError:
    a, n, wrong = analytic[which], found.numeric[which], found.wrong[which]
    name = trial.subject.names[which]
    places = [tuple(int(i) for i in at) for at in np.argwhere(wrong)]
    entries = [Entry(name, at, float(a[at]), float(n[at])) for at in places]
    entries.sort(key=lambda e: -e.absolute if e.absolute == e.absolute else -np.inf)

    def jacobian() -> Array | None:
        return measured_jacobian(trial, which, centre)

    text = diagnose.pattern(analytic, found.numeric, which, wrong, trial.up, jacobian)
    step = "" if trial.method == "complex" else f" eps={trial.eps:.1e}"
    headline = f"{len(entries)} of {a.size} entries differ, method={trial.method}{step}"
    return trial.error("value", headline, which, entries, text)


def measured_jacobian(trial: Trial, which: int, centre: Array) -> Array | None:
    """The derivative of every output (rows) for every entry of an argument (columns)."""
    x = trial.arrays[which]
    if x.size * trial.up.size > LARGEST_JACOBIAN:
        return None
    columns = []
    for index in np.ndindex(x.shape):
        line = entry_line(trial.subject, trial.arrays, which, index)
        h = step_for(trial.eps, abs(float(x[index])))
        columns.append(((line(h) - line(-h)) / (2 * h)).reshape(-1))
    return np.stack(columns, axis=1)


# --- the complex step -----------------------------------------------------------------------------
def refuses_complex(trial: Trial) -> str:
    """Why the function cannot be differentiated by the complex step, "" where it can.

    It must take complex numbers, give them back, and be analytic: |x| takes them, and is wrong.
    """
    rng = np.random.default_rng(trial.seed)
    along = [rng.standard_normal(x.shape) for x in trial.arrays]
    moved = [x + COMPLEX_STEP * 1j * u for x, u in zip(trial.arrays, along, strict=True)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            y = trial.subject.value(moved)
    except Exception as fault:  # whatever the function answers to numbers it was not made for
        return f"it raises {type(fault).__name__} for complex numbers"
    if y.dtype.kind != "c":
        return "it gives real numbers for complex ones"
    line = direction_line(trial.subject, trial.arrays, along)
    ours = float(np.sum(trial.up * y.imag)) / COMPLEX_STEP
    theirs = slope(line, trial.value(), trial.up, step_for(trial.eps, 1.0))
    if not abs(ours - theirs.value) <= 1e-4 * (1 + abs(theirs.value)) + 4 * theirs.error:
        return "it is not analytic: the complex step and central differences disagree"
    return ""


# --- random directions ----------------------------------------------------------------------------
def compare_directions(trial: Trial, analytic: Sequence[Array], centre: Array) -> Report:
    """Σ u·gradient against the slope along u, for a few random u; a bad one is bisected."""
    rng = np.random.default_rng(trial.seed)
    for which, (g, x) in enumerate(zip(analytic, trial.arrays, strict=True)):
        if g.shape != x.shape:
            raise trial.error("shape", f"the gradient has shape {g.shape}, not {x.shape}", which)
    worst = 0.0
    ill: list[str] = []
    kinks: list[str] = []
    for _ in range(REPEATS):
        along = [rng.standard_normal(x.shape) for x in trial.arrays]
        a, measured, verdict = _direction(trial, analytic, centre, along)
        if verdict == "kink":
            text = "not differentiable along a random direction"
            if trial.on_kink == "raise":
                raise trial.error("kink", f"{text}; move the point, or give on_kink='skip'")
            kinks.append(text)
        elif verdict == "ill":
            ill.append(f"a random direction: analytic {a:.6g}, numeric {measured.value:.6g}")
        elif verdict == "wrong":
            raise _bisected(trial, analytic, centre, along)
        else:
            worst = max(worst, abs(a - measured.value) / max(1.0, abs(measured.value)))
    return Report(
        trial.subject.name,
        "directional",
        REPEATS - len(kinks) - len(ill),
        worst,
        ill_conditioned=tuple(ill),
        kinks=tuple(kinks),
    )


def _direction(
    trial: Trial, analytic: Sequence[Array], centre: Array, along: Sequence[Array]
) -> tuple[float, Slope, str]:
    line = direction_line(trial.subject, trial.arrays, along)
    a = float(sum(np.sum(g * u) for g, u in zip(analytic, along, strict=True)))
    h = step_for(trial.eps, 1.0)
    measured = slope(line, centre, trial.up, h)
    if measured.sides is not None:
        return a, measured, "kink"
    measured, verdict = _judge(trial, line, centre, h, a, measured)
    return a, measured, verdict


def _bisected(
    trial: Trial, analytic: Sequence[Array], centre: Array, along: Sequence[Array]
) -> GradcheckError:
    """Halve the direction, keeping the half that differs more, down to one entry."""
    places = [(w, i) for w, u in enumerate(along) for i in np.ndindex(u.shape)]
    while len(places) > 1:
        halves = places[: len(places) // 2], places[len(places) // 2 :]
        gaps = []
        for half in halves:
            a, measured, _ = _direction(trial, analytic, centre, _only(half, along))
            gaps.append(abs(a - measured.value))
        # A gap that is nan is what is looked for.
        places = halves[0] if not gaps[0] <= gaps[1] else halves[1]
    which, index = places[0]
    unit = [np.zeros_like(u) for u in along]
    unit[which][index] = 1.0
    a, measured, _ = _direction(trial, analytic, centre, unit)
    entry = Entry(trial.subject.names[which], index, a, measured.value)
    text = "a random direction differs, bisected to one entry, method=directional"
    return trial.error("value", text, which, [entry])


def _only(places: Sequence[tuple[int, tuple[int, ...]]], along: Sequence[Array]) -> list[Array]:
    """The direction at these places, 0 elsewhere."""
    masked = [np.zeros_like(u) for u in along]
    for which, index in places:
        masked[which][index] = along[which][index]
    return masked
