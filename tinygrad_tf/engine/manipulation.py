"""Public functions that move entries: shapes, joining, cutting, indexing, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as index_of
from typing import Any

import numpy as np

from tinygrad_tf.engine import shape_rules as rules
from tinygrad_tf.engine.arguments import as_array, as_axes, as_axis, as_tensor
from tinygrad_tf.engine.elementwise import where
from tinygrad_tf.engine.tensor import Tensor

_record = Tensor.record


def reshape(x: Any, shape: Any) -> Tensor:
    """The same entries in another shape; one length may be -1."""
    x = as_tensor(x)
    return _record(rules.reshape, x, shape=shape, old=x.shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order, by default reversed."""
    x = as_tensor(x)
    order = tuple(range(x.ndim - 1, -1, -1)) if axes is None else as_axes(x, axes)
    return _record(rules.transpose, x, axes=order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = as_tensor(x)
    order, a, b = list(range(x.ndim)), as_axis(x, axis1), as_axis(x, axis2)
    order[a], order[b] = order[b], order[a]
    return _record(rules.transpose, x, axes=tuple(order))


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Some axes moved to other places, the rest in their old order."""
    x = as_tensor(x)
    start, end = as_axes(x, source), as_axes(x, destination)
    if len(start) != len(end):
        raise ValueError(f"{len(start)} axes cannot move to {len(end)} places")
    order = [a for a in range(x.ndim) if a not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return _record(rules.transpose, x, axes=tuple(order))


def ravel(x: Any) -> Tensor:
    """All entries along one axis."""
    return reshape(x, (-1,))


def expand_dims(x: Any, axis: Any) -> Tensor:
    """New axes of length 1 at the places given."""
    x = as_tensor(x)
    return reshape(x, np.expand_dims(x.data, axis).shape)


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Without the axes of length 1, or without those given."""
    x = as_tensor(x)
    return reshape(x, np.squeeze(x.data, axis).shape)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Tensor:
    """Repeated along new axes and axes of length 1 until it has the shape."""
    return _record(rules.broadcast_to, x, shape=shape)


def tile(x: Any, reps: int | Sequence[int]) -> Tensor:
    """The whole array set side by side, so many times along each axis."""
    x = as_tensor(x)
    times = (int(reps),) if isinstance(reps, int | np.integer) else tuple(int(n) for n in reps)
    ndim = max(len(times), x.ndim)
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    # Each axis becomes two, copies and entries, which are then one again.
    apart = reshape(x, tuple(k for n in shape for k in (1, n)))
    wide = broadcast_to(apart, tuple(k for r, n in zip(times, shape, strict=True) for k in (r, n)))
    return reshape(wide, tuple(r * n for r, n in zip(times, shape, strict=True)))


def repeat(x: Any, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Each entry so many times in a row along an axis; None joins all axes first."""
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    at, times = as_axis(x, axis), np.asarray(repeats)
    if times.size != 1:
        return take(
            x, np.repeat(np.arange(x.shape[at]), times if times.size else times.astype(int)), at
        )
    n, shape = index_of(times.item()), x.shape
    wide = broadcast_to(expand_dims(x, at + 1), (*shape[: at + 1], n, *shape[at + 1 :]))
    return reshape(wide, (*shape[:at], shape[at] * n, *shape[at + 1 :]))


def roll(x: Any, shift: int | Sequence[int], axis: Any = None) -> Tensor:
    """Entries moved on along the axis or axes, those beyond the end back to the start."""
    x = as_tensor(x)
    if axis is None:
        return reshape(roll(ravel(x), int(np.sum(shift)), 0), x.shape)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    places = tuple(as_axis(x, int(a)) for a in axes)
    return _record(rules.roll, x, shift=tuple(int(s) for s in shifts), axis=places)


def flip(x: Any, axis: Any = None) -> Tensor:
    """The order reversed along the axis or axes."""
    x = as_tensor(x)
    axes = as_axes(x, axis)
    return getitem(x, tuple(slice(None, None, -1 if a in axes else None) for a in range(x.ndim)))


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0.0) -> Tensor:
    """Room before and after along each axis, filled with one number.

    pad_width: (before, after) for each axis, or one pair or one number for all. Raises ValueError
    for another mode than "constant", and for negative widths.
    """
    if mode != "constant":
        raise ValueError(f"pad has no mode {mode!r} here; it pads with a constant")
    x = as_tensor(x)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad_width {pad_width} has a negative width")
    index = tuple(slice(a, a + n) for (a, _), n in zip(widths, x.shape, strict=True))
    shape = tuple(a + n + b for (a, b), n in zip(widths, x.shape, strict=True))
    return _record(rules.pad, x, index=index, shape=shape, value=float(constant_values))


def tril(x: Any, k: int = 0) -> Tensor:
    """The lower triangles of matrices (..., n, m), 0 above the k-th diagonal."""
    x = as_tensor(x)
    return where(_triangle(x, k), x, 0.0)


def triu(x: Any, k: int = 0) -> Tensor:
    """The upper triangles of matrices (..., n, m), 0 below the k-th diagonal."""
    x = as_tensor(x)
    return where(_triangle(x, k - 1), 0.0, x)


def _triangle(x: Tensor, k: int) -> Any:
    rows, columns = x.shape[-2:] if x.ndim > 1 else x.shape * 2
    return np.tri(rows, columns, k, dtype=bool)


def concatenate(xs: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Joined along an axis that they have; None joins all axes of each first."""
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        raise ValueError("concatenate needs at least one array")
    if axis is None:
        tensors, axis = [ravel(x) for x in tensors], 0
    at = as_axis(tensors[0], axis)
    ends = tuple(int(n) for n in np.cumsum([t.shape[at] for t in tensors]))
    return _record(rules.concatenate, *tensors, axis=at, ends=ends)


def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Joined along a new axis."""
    return concatenate([expand_dims(x, axis) for x in xs], axis)


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut along an axis into equal parts, or at the places given."""
    x = as_tensor(x)
    at = as_axis(x, axis)
    length, lead = x.shape[at], (slice(None),) * at
    if isinstance(sections, int | np.integer):
        if sections < 1 or length % sections:
            raise ValueError(
                f"an axis of length {length} does not split into {sections} equal parts"
            )
        step = length // sections
        places = [step * i for i in range(1, int(sections))]
    else:
        places = [int(p) for p in sections]
    cuts = zip([0, *places], [*places, length], strict=True)
    return [x[(*lead, slice(start, end))] for start, end in cuts]


def getitem(x: Any, index: Any) -> Tensor:
    """x[index], as in NumPy; an entry taken several times receives all its gradients."""
    x = as_tensor(x)
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(map(_place, parts))
    chosen = plain if isinstance(index, tuple) else plain[0]
    return _record(rules.getitem, x, index=chosen, shape=x.shape)


def _place(part: Any) -> Any:
    """A part of an index; lists become arrays, as the caller may go on to change them."""
    if isinstance(part, Tensor):
        return part.data
    if isinstance(part, list):
        return np.array(part) if part else np.array(part, np.intp)
    return part


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The entries or slices at the places given along an axis; None joins all axes first."""
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    return getitem(x, (slice(None),) * as_axis(x, axis) + (as_array(indices),))


def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Tensor:
    """Of each line along an axis, the entries at the places that `indices` has for that line."""
    x = as_tensor(x)
    at, places = as_axis(x, axis), as_array(indices)
    if places.ndim != x.ndim:
        raise ValueError(f"indices of {places.ndim} axes for an array of {x.ndim}")
    index = [np.arange(n).reshape((-1,) + (1,) * (x.ndim - 1 - a)) for a, n in enumerate(x.shape)]
    index[at] = places
    return getitem(x, tuple(index))


# --- order ---
def argsort(x: Any, axis: int | None = -1, descending: bool = False) -> Tensor:
    """The places of the entries in rising order, equals in the order they had; no gradient."""
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    return Tensor(_order(x.data, as_axis(x, axis), descending))


def sort(x: Any, axis: int | None = -1, descending: bool = False) -> Tensor:
    """The entries in rising order along an axis; each gradient goes where its entry came from."""
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    at = as_axis(x, axis)
    return take_along_axis(x, _order(x.data, at, descending), at)


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) entries along an axis, the first first, and their places.

    Among equals the earlier come first. Raises ValueError where there are not k of them.
    """
    x = as_tensor(x)
    at = as_axis(x, axis)
    if not 0 <= k <= x.shape[at]:
        raise ValueError(f"the {k} largest of {x.shape[at]} entries are asked for")
    order = _order(x.data, at, largest)
    places = order[(slice(None),) * at + (slice(0, k),)]
    return take_along_axis(x, places, at), Tensor(places)


def _order(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Sorted backwards and turned round, so that equals keep their order.
    turned = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - turned
