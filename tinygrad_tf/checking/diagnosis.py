"""Diagnose a wrong gradient: cheap tests, each of which recognizes a usual mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tinygrad_tf.types import Array

CLOSE = 1e-4  # the largest difference of similar gradients, relative to the largest entry
SINGLE = 4e-6  # the relative error of a few operations in float32


def pattern(
    analytic: Sequence[Array],
    numeric: Sequence[Array],
    which: int,
    wrong: Array,
    up: Array,
    jacobian: Callable[[], Array | None],
) -> str:
    """Name the mistake in the gradient of argument `which`, in one line; "" for an unknown one.

    analytic, numeric: the gradients of all arguments; wrong: the entries that differ; jacobian:
    returns the measured derivative of every output (rows) by every entry (columns), or None where
    it is too large.
    """
    a, n = analytic[which], numeric[which]
    patterns = itertools.chain(
        _by_values(a, n, wrong),
        _by_arguments(analytic, numeric, which),
        _by_order(a, n),
        _by_jacobian(a, up, jacobian),
        _by_places(a, n, wrong),
    )
    return next(patterns, "")


def shape_pattern(a: Array, n: Array) -> str:
    """Name the mistake in a gradient whose shape is not that of its argument; "" for an unknown."""
    extra = a.ndim - n.ndim
    padded = (1,) * extra + n.shape
    if extra >= 0 and all(m in (1, k) for m, k in zip(padded, a.shape, strict=True)):
        axes = tuple(i for i, (m, k) in enumerate(zip(padded, a.shape, strict=True)) if m != k)
        axes = tuple(sorted({*axes, *range(extra)}))
        if alike(np.sum(a, axis=axes, keepdims=True).reshape(n.shape), n):
            return f"summed over axis {_listed(axes)} it is right -> the broadcast is not un-summed"
    if a.shape == n.shape[::-1] and alike(a.T, n):
        return "transposed"
    if a.size == n.size and alike(a.reshape(n.shape), n):
        return "the right numbers in another shape"
    return ""


def alike(a: Array, b: Array) -> bool:
    """True where two gradients differ by at most CLOSE times the largest entry of b, not 0."""
    size = float(np.max(np.abs(b), initial=0.0))
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= CLOSE * size)) and size > 0


def _by_values(a: Array, n: Array, wrong: Array) -> Iterator[str]:
    size = float(np.max(np.abs(n), initial=0.0))
    # The caller takes the first pattern only.
    if not np.all(np.isfinite(a)):
        yield f"{np.count_nonzero(~np.isfinite(a))} entries are nan or infinite -> 0/0 or overflow"
    if size and np.max(np.abs(a - n)) <= SINGLE * size:
        yield "equal to float32 rounding -> something in it is computed or stored in float32"
    if not np.any(a):
        yield "zero where numeric is not -> the path to this argument is missed"
    if alike(-a, n):
        yield "sign flipped"
    square = float(np.sum(n * n))
    factor = float(np.sum(a * n)) / square if square else 0.0
    if factor and n.size > 1 and alike(a, factor * n):
        yield f"analytic = {factor:.6g} x numeric -> {_cause(factor, n)}"
    elif n.size == 1 and size:
        factor = float(a.item() / n.item())
        if abs(factor * 12 - round(factor * 12)) < CLOSE or abs(12 / factor % 1) < CLOSE:
            yield f"analytic = {factor:.6g} x numeric -> {_cause(factor, n)}"
    elif np.all(a[wrong] == 0):
        yield (
            f"zero at {np.count_nonzero(wrong)} entries where numeric is not, the others agree "
            f"-> a missed path: a mask or an index"
        )
    elif not np.any(np.abs(n[wrong]) > CLOSE * size) and size:
        yield "numeric is zero where they differ -> a mask is missing"


def _cause(factor: float, n: Array) -> str:
    """The probable cause of a factor: the length of an axis means a mean in place of a sum."""
    for length in {*n.shape, n.size} - {0, 1, 2}:  # 2 has many other causes
        if abs(factor - length) < CLOSE * length or abs(factor * length - 1) < CLOSE:
            return f"{length} is the length of an axis or the size: a mean in place of a sum?"
    return "a factor is dropped, or applied twice" if factor > 0 else "sign and a factor are wrong"


def _by_arguments(analytic: Sequence[Array], numeric: Sequence[Array], which: int) -> Iterator[str]:
    for other, n in enumerate(numeric):
        if other != which and alike(analytic[which], n):
            back = alike(analytic[other], numeric[which])
            yield (
                f"the gradients of arguments {which} and {other} are exchanged"
                if back
                else f"it is the gradient of argument {other}"
            )


def _by_order(a: Array, n: Array) -> Iterator[str]:
    for axes in itertools.permutations(range(a.ndim)):
        if axes != tuple(range(a.ndim)) and a.ndim <= 4 and alike(np.transpose(a, axes), n):
            yield "transposed" if a.ndim == 2 else f"transposed: right as transpose(axes={axes})"
    for axis in range(a.ndim):
        if alike(np.flip(a, axis), n):
            yield f"reversed along axis {axis}"
        for shift in (1, -1):
            if alike(np.roll(a, shift, axis), n):
                yield f"shifted by one along axis {axis} -> off by one"
    ours, theirs = float(np.sum(a)), float(np.sum(n))
    scale = float(np.sum(np.abs(n)))
    if scale and abs(ours - theirs) <= CLOSE * 1e-2 * scale and a.size > 1:
        yield (
            f"totals agree ({ours:.6g} = {theirs:.6g}), positions differ "
            f"-> right tensor, wrong axis or element order"
        )


def _by_jacobian(a: Array, up: Array, jacobian: Callable[[], Array | None]) -> Iterator[str]:
    rows = jacobian()
    if rows is None or not rows.size:
        return
    flat, g = a.reshape(-1), up.reshape(-1)
    if alike(flat, np.sum(rows, axis=0)):
        yield "equals the gradient for an upstream of ones -> g is not multiplied in"
    square = rows.shape[0] == rows.shape[1] and not alike(rows, rows.T)
    if square and alike(flat, rows @ g):
        yield "the Jacobian is transposed -> J·g in place of Jᵀ·g"
    if alike(flat, np.abs(g) @ rows) or alike(flat, (g * g) @ rows):
        yield "the upstream enters as |g| or g² -> g is used wrongly"


def _by_places(a: Array, n: Array, wrong: Array) -> Iterator[str]:
    for axis, indices in enumerate(np.nonzero(np.atleast_1d(wrong))):
        if len(set(indices.tolist())) == 1 and a.size > 2 and a.shape[axis] > 2:
            yield f"only index {indices[0]} of axis {axis} differs -> an edge, or off by one"


def _listed(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))
