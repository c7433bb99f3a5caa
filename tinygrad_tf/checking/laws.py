"""Laws that every gradient obeys, checked without differences, and so almost without tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.checking.report import place
from tinygrad_tf.checking.trial import Trial, eighths
from tinygrad_tf.types import Array

SAME = 1e-9  # the effect of another order of addition, relative to the largest entry
FLOAT32 = 3e-5  # the largest error in float32, relative to 1 + the largest entry


def check_structure(trial: Trial) -> list[Array]:
    """Compute the gradients and check their number, their types, and what they write to.

    `comparison` checks the shapes, since it can say more about a wrong one.
    """
    before = [x.copy() for x in (*trial.arrays, trial.up)]
    first = trial.gradients()
    if len(first) != len(trial.arrays):
        raise trial.error("count", f"{len(first)} gradients for {len(trial.arrays)} arrays")
    for which, (g, x) in enumerate(zip(first, trial.arrays, strict=True)):
        if not isinstance(g, np.ndarray):
            raise trial.error("dtype", f"the gradient is {type(g).__name__}, not an array", which)
        if g.dtype != x.dtype:
            raise trial.error("dtype", f"the gradient is {g.dtype}, not {x.dtype}", which)
    _unmutated(trial, before)
    kept = [g.copy() for g in first]
    second = trial.gradients()
    for which, (a, b, c) in enumerate(zip(first, second, kept, strict=True)):
        if not _same(c, b, 0.0):
            raise trial.error(
                "repeatability",
                "two runs give different gradients; if f draws random numbers, seed them inside f",
                which,
            )
        if not _same(a, c, 0.0):
            raise trial.error("memory", "the gradient of one run is overwritten by the next", which)
    if not _same(trial.centre, trial.function.value(trial.arrays), 0.0):
        raise trial.error(
            "repeatability", "two runs give different values; seed the random numbers of f"
        )
    _unmutated(trial, before)
    return first


def _unmutated(trial: Trial, before: Sequence[Array]) -> None:
    for which, (x, old) in enumerate(zip((*trial.arrays, trial.up), before, strict=True)):
        if not _same(x, old, 0.0):
            if which == len(trial.arrays):
                raise trial.error("mutation", "the upstream gradient is written to")
            raise trial.error("mutation", "the argument is written to", which)


def check_laws(trial: Trial, gradients: Sequence[Array], *, float32: bool) -> None:
    """Check all other laws; raises the error of the first one that is broken."""
    _memory(trial, gradients)
    _state(trial, gradients)
    _linearity(trial, gradients)
    _same_array(trial)
    _layouts(trial, gradients)
    if float32:
        check_single_precision(trial)


def _memory(trial: Trial, gradients: Sequence[Array]) -> None:
    others = list(zip(trial.function.names, trial.arrays, strict=True))
    others.append(("the upstream", trial.up))
    together = trial.gradients()
    for which, g in enumerate(together):
        for other, earlier in enumerate(together[:which]):
            if np.shares_memory(g, earlier):
                name = trial.function.names[other]
                text = f"the gradient shares memory with that of {name}; return a copy"
                raise trial.error("memory", text, which)
    for which, (g, old) in enumerate(zip(trial.gradients(), gradients, strict=True)):
        for name, x in others:
            if np.shares_memory(g, x):
                text = f"the gradient shares memory with {name}; return a copy"
                raise trial.error("memory", text, which)
        if np.shares_memory(g, old):
            raise trial.error("memory", "two runs give their gradients in the same memory", which)
        others.append((f"the gradient of argument {which}", g))


def _state(trial: Trial, gradients: Sequence[Array]) -> None:
    # Nearer to 0, where most functions are defined, too.
    elsewhere = [x * (1 - 1 / 64) for x in trial.arrays]
    after = trial.gradients(between=lambda: trial.function.value(elsewhere))
    text = "changes when f runs at another point before the backward pass"
    _expect(trial, after, gradients, "state", text)


def _linearity(trial: Trial, gradients: Sequence[Array]) -> None:
    zero = trial.gradients(up=np.zeros_like(trial.up))
    for which, g in enumerate(zero):
        if np.any(g != 0) and np.all(np.isfinite(gradients[which])):
            at = tuple(int(i) for i in np.argwhere(g != 0)[0])
            raise trial.error(
                "zero upstream",
                f"an upstream of zeros gives {place('gradient', at)} = {g[at]:.6g}, not 0",
                which,
            )
    other = eighths(trial.seed + 1, trial.up.shape)
    parts = trial.gradients(up=other)
    both = trial.gradients(up=other - 2.0 * trial.up)
    expected = [b - 2.0 * a for a, b in zip(gradients, parts, strict=True)]
    # The sum of infinite slopes cannot be compared.
    both = [np.where(np.isfinite(e), g, e) for g, e in zip(both, expected, strict=True)]
    _expect(trial, both, expected, "linearity", "is not linear in the upstream")


def _same_array(trial: Trial) -> None:
    """Check f(x, x): an array that is passed as two arguments gets the sum of both gradients."""
    arrays = trial.arrays
    for i in range(len(arrays)):
        for j in range(i + 1, len(arrays)):
            if arrays[i].shape != arrays[j].shape:
                continue
            apart, shared = list(arrays), list(arrays)
            apart[j], shared[j] = arrays[i].copy(), arrays[i]
            if trial.function.value(apart).shape != trial.up.shape:
                continue
            expected, ours = trial.gradients(apart), trial.gradients(shared)
            if trial.function.adds_shared:
                total = expected[i] + expected[j]
                expected[i] = expected[j] = total
            elif np.shares_memory(ours[i], ours[j]):
                raise trial.error(
                    "same array", f"the gradients of arguments {i} and {j} share memory", i
                )
            what = f"is wrong where arguments {i} and {j} are the same array"
            _expect(trial, ours, expected, "same array", what)


def _layouts(trial: Trial, gradients: Sequence[Array]) -> None:
    def check(name: str, expected: Sequence[Array], **changed: Any) -> None:
        """Compare the gradients for inputs or an upstream in another memory layout."""
        ours = trial.gradients(**changed, what=f"with {name} the gradient")
        _expect(trial, ours, expected, "layout", f"differs: {name}")

    for name, change in LAYOUTS.items():
        check(f"{name} inputs", gradients, arrays=[change(x) for x in trial.arrays])
        check(f"{name} upstream", gradients, up=change(trial.up))
    one = np.broadcast_to(np.float64(0.75), trial.up.shape)
    check("upstream of stride 0", trial.gradients(up=one.copy()), up=one)
    flat = [np.broadcast_to(x.reshape(-1)[0] if x.size else 0.0, x.shape) for x in trial.arrays]
    check("inputs of stride 0", trial.gradients([x.copy() for x in flat]), arrays=flat)


def _read_only(x: Array) -> Array:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _reversed(x: Array) -> Array:
    """A copy in reversed order of memory, with a gap after each number."""
    room = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    every_other: Any = (..., *(slice(None, None, -2),) * x.ndim)
    view: Array = room[every_other]
    view[...] = x
    return view


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "read-only": _read_only,
    "F-order": lambda x: np.array(x, order="F"),
    "reversed": _reversed,
}


def check_single_precision(trial: Trial) -> None:
    """Compare the float32 gradient with the float64 gradient at the same point."""
    single = [x.astype(np.float32) for x in trial.arrays]
    up = trial.up.astype(np.float32)
    value = trial.function.value(single)
    if value.dtype.kind == "f" and value.dtype != np.float32:
        raise trial.error("float32", f"inputs of float32 give an output of {value.dtype}")
    ours = trial.gradients(single, up)
    double = [x.astype(np.float64) for x in single]
    exact = trial.gradients(double, up.astype(np.float64))
    # The change of the gradient where the inputs change by a rounding error of float32.
    near = trial.gradients([x * (1 + 2.0**-23) for x in double], up.astype(np.float64))
    for which, (g, right, moved) in enumerate(zip(ours, exact, near, strict=True)):
        if g.dtype != np.float32:
            raise trial.error("float32", f"an input of float32 has a gradient of {g.dtype}", which)
        finite = np.isfinite(right) & np.isfinite(moved)
        size = 1.0 + _largest(right[finite])
        error = _largest((g - right)[finite])
        if not error <= FLOAT32 * size + 16 * _largest((moved - right)[finite]):
            raise trial.error(
                "float32",
                f"in float32 the gradient is {error:.1e} off, "
                f"where its largest entry is {size:.3g}",
                which,
            )


def _largest(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _expect(
    trial: Trial, ours: Sequence[Array], expected: Sequence[Array], kind: str, what: str
) -> None:
    for which, (g, right) in enumerate(zip(ours, expected, strict=True)):
        if not _same(g, right, SAME):
            raise trial.error(kind, f"the gradient {what}", which)


def _same(a: Array, b: Array, tolerance: float) -> bool:
    """Equal up to `tolerance` times the largest finite entry; nan and infinities must agree."""
    if a.shape != b.shape:
        return False
    if not tolerance:
        return bool(np.array_equal(a, b, equal_nan=True))
    finite = np.isfinite(b)
    if not np.array_equal(np.where(finite, 0.0, a), np.where(finite, 0.0, b), equal_nan=True):
        return False
    limit = tolerance * (_largest(b[finite]) + 1e-3)
    return bool(np.all(np.abs(a[finite] - b[finite]) <= limit))
