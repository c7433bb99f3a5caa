"""Functions that move entries: reshaping, joining, padding, indexing and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as index_of
from typing import Any

import numpy as np

from tinygrad_tf.engine.elementwise import where
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import (
    as_array,
    as_axes,
    as_axis,
    as_tensor,
    primitive,
    public,
    record,
    register,
)
from tinygrad_tf.engine.tensor import Tensor

# --- shape ---
# The old shape is a parameter, so that the input itself need not be kept.
_reshape = Op(
    "reshape",
    lambda x, shape, old: np.reshape(x, shape),
    (lambda g, _y, _x, shape, old: np.reshape(g, old),),
)
_transpose = Op(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    (lambda g, _y, _x, axes: np.transpose(g, np.argsort(axes)),),
)


def _reshape_method(self: Tensor, *shape: Any) -> Tensor:
    """Arrange the same entries in another shape, a tuple or numbers; one length may be -1."""
    return reshape(self, shape[0] if len(shape) == 1 else shape)


@public(_reshape, numpy=np.reshape, method=_reshape_method)
def reshape(x: Any, shape: Any) -> Tensor:
    """Arrange the same entries in another shape; one length may be -1."""
    x = as_tensor(x)
    return record(_reshape, x, shape=shape, old=x.shape)


def _transpose_method(self: Tensor, *axes: Any) -> Tensor:
    """Put the axes in another order, a tuple or numbers; reverse them by default."""
    return transpose(self, (axes[0] if len(axes) == 1 else axes) or None)


@public(_transpose, numpy=np.transpose, method=_transpose_method)
def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Put the axes in another order; reverse them by default."""
    x = as_tensor(x)
    order = tuple(range(x.ndim - 1, -1, -1)) if axes is None else as_axes(x, axes)
    return record(_transpose, x, axes=order)


@public(numpy=np.swapaxes, method=True)
def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes."""
    x = as_tensor(x)
    order, a, b = list(range(x.ndim)), as_axis(x, axis1), as_axis(x, axis2)
    order[a], order[b] = order[b], order[a]
    return record(_transpose, x, axes=tuple(order))


@public(numpy=np.moveaxis)
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move some axes to other places; the rest keep their order."""
    x = as_tensor(x)
    start, end = as_axes(x, source), as_axes(x, destination)
    if len(start) != len(end):
        raise ValueError(f"{len(start)} axes cannot move to {len(end)} places")
    order = [a for a in range(x.ndim) if a not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return record(_transpose, x, axes=tuple(order))


@public(numpy=np.ravel, method=True)
def ravel(x: Any) -> Tensor:
    """Flatten x to one axis."""
    return reshape(x, (-1,))


def as_line(x: Any, axis: int | None) -> tuple[Tensor, int]:
    """Return x and the axis as a non-negative int; for None, x flattened and its only axis."""
    x = as_tensor(x)
    return (ravel(x), 0) if axis is None else (x, as_axis(x, axis))


@public(numpy=np.expand_dims)
def expand_dims(x: Any, axis: Any) -> Tensor:
    """Insert new axes of length 1 at the given places."""
    x = as_tensor(x)
    return reshape(x, np.expand_dims(x.data, axis).shape)


@public(numpy=np.squeeze, method=True)
def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Remove all axes of length 1, or the given ones."""
    x = as_tensor(x)
    return reshape(x, np.squeeze(x.data, axis).shape)


@primitive(lambda g, _y, _x, shape: g, numpy=np.broadcast_to)
def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat x along new axes and along axes of length 1, to reach the shape."""
    return np.broadcast_to(x, shape)


# --- repetition and padding ---
@public(numpy=np.tile)
def tile(x: Any, reps: int | Sequence[int]) -> Tensor:
    """Repeat the whole array `reps` times along each axis."""
    x = as_tensor(x)
    times = (int(reps),) if isinstance(reps, int | np.integer) else tuple(int(n) for n in reps)
    ndim = max(len(times), x.ndim)
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    # Each axis becomes two, copies and entries, which are then joined again.
    apart = reshape(x, tuple(k for n in shape for k in (1, n)))
    wide = broadcast_to(apart, tuple(k for r, n in zip(times, shape, strict=True) for k in (r, n)))
    return reshape(wide, tuple(r * n for r, n in zip(times, shape, strict=True)))


@public(numpy=np.repeat, method=True)
def repeat(x: Any, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Repeat each entry `repeats` times along an axis; None flattens x first."""
    x, at = as_line(x, axis)
    times = np.asarray(repeats)
    if times.size != 1:
        return take(
            x, np.repeat(np.arange(x.shape[at]), times if times.size else times.astype(int)), at
        )
    n, shape = index_of(times.item()), x.shape
    wide = broadcast_to(expand_dims(x, at + 1), (*shape[: at + 1], n, *shape[at + 1 :]))
    return reshape(wide, (*shape[:at], shape[at] * n, *shape[at + 1 :]))


_roll = Op(
    "roll",
    lambda x, shift, axis: np.roll(x, shift, axis),
    (lambda g, _y, _x, shift, axis: np.roll(g, tuple(-s for s in shift), axis),),
)


@public(_roll, numpy=np.roll)
def roll(x: Any, shift: int | Sequence[int], axis: Any = None) -> Tensor:
    """Shift entries along the axis or axes; those beyond the end return at the start."""
    x = as_tensor(x)
    if axis is None:
        return reshape(roll(ravel(x), int(np.sum(shift)), 0), x.shape)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    places = tuple(as_axis(x, int(a)) for a in axes)
    return record(_roll, x, shift=tuple(int(s) for s in shifts), axis=places)


@public(numpy=np.flip)
def flip(x: Any, axis: Any = None) -> Tensor:
    """Reverse the order along the axis or axes; along all of them by default."""
    x = as_tensor(x)
    axes = as_axes(x, axis)
    return getitem(x, tuple(slice(None, None, -1 if a in axes else None) for a in range(x.ndim)))


def _pad_forward(x: Any, index: tuple[slice, ...], shape: tuple[int, ...], value: Any) -> Any:
    out = np.full(shape, value, x.dtype)
    out[index] = x
    return out


# `index` is the place of x in the larger array.
_pad = Op("pad", _pad_forward, (lambda g, _y, _x, index, shape, value: g[index],))


@public(_pad, numpy=np.pad)
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0.0) -> Tensor:
    """Add entries of one value before and after x along each axis.

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
    return record(_pad, x, index=index, shape=shape, value=float(constant_values))


@public(numpy=np.tril)
def tril(x: Any, k: int = 0) -> Tensor:
    """Return the lower triangles of matrices (..., n, m), with 0 above the k-th diagonal."""
    x = as_tensor(x)
    return where(_triangle(x, k), x, 0.0)


@public(numpy=np.triu)
def triu(x: Any, k: int = 0) -> Tensor:
    """Return the upper triangles of matrices (..., n, m), with 0 below the k-th diagonal."""
    x = as_tensor(x)
    return where(_triangle(x, k - 1), 0.0, x)


def _triangle(x: Tensor, k: int) -> Any:
    rows, columns = x.shape[-2:] if x.ndim > 1 else x.shape * 2
    return np.tri(rows, columns, k, dtype=bool)


# --- joining and splitting ---
def _concatenate_rule(
    g: Any, _y: Any, *_inputs: Any, axis: Any, ends: tuple[int, ...], which: int
) -> Any:
    start = ends[which - 1] if which else 0
    return g[(slice(None),) * axis + (slice(start, ends[which]),)]


_concatenate = Op(
    "concatenate",
    lambda *xs, axis, ends: np.concatenate(xs, axis=axis),
    (_concatenate_rule,),
    variadic=True,
)


@public(_concatenate, numpy=np.concatenate)
def concatenate(xs: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Join arrays along an axis that they have; None flattens each first."""
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        raise ValueError("concatenate needs at least one array")
    if axis is None:
        tensors, axis = [ravel(x) for x in tensors], 0
    at = as_axis(tensors[0], axis)
    ends = tuple(int(n) for n in np.cumsum([t.shape[at] for t in tensors]))
    return record(_concatenate, *tensors, axis=at, ends=ends)


@public(numpy=np.stack)
def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Join arrays along a new axis."""
    return concatenate([expand_dims(x, axis) for x in xs], axis)


@public(numpy=np.split)
def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Split x along an axis into equal parts, or at the given places.

    Raises ValueError where the axis does not split into so many equal parts.
    """
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


# --- indexing ---
def reaches_once(index: Any) -> bool:
    """Say whether an index surely reaches no entry twice: ints, slices, None, ...; or a mask."""
    if isinstance(index, np.ndarray) and index.dtype == np.bool_:
        return True
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, int | np.integer) and not isinstance(part, bool | np.bool_))
        for part in parts
    )


def _scatter_forward(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    if reaches_once(index):
        out[index] = g
    else:
        np.add.at(out, index, g)
    return out


# The derivative of getitem, and its own derivative is getitem again.
scatter = register(Op("scatter", _scatter_forward, (lambda g, _y, _x, index, shape: g[index],)))
_getitem = Op(
    "getitem",
    lambda x, index, shape: x[index],
    (lambda g, _y, _x, index, shape: scatter(g, index=index, shape=shape),),
)


@public(_getitem, operators=("__getitem__",))
def getitem(x: Any, index: Any) -> Tensor:
    """Return x[index], as in NumPy; an entry taken several times receives the sum of gradients."""
    x = as_tensor(x)
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(map(_plain_index, parts))
    chosen = plain if isinstance(index, tuple) else plain[0]
    return record(_getitem, x, index=chosen, shape=x.shape)


def _plain_index(part: Any) -> Any:
    """Return a part of an index; lists become arrays, since the caller may change them later."""
    if isinstance(part, Tensor):
        return part.data
    if isinstance(part, list):
        return np.array(part) if part else np.array(part, np.intp)
    return part


@public(numpy=np.take, method=True)
def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return the entries or slices at `indices` along an axis; None flattens x first."""
    x, at = as_line(x, axis)
    return getitem(x, (slice(None),) * at + (as_array(indices),))


@public(numpy=np.take_along_axis)
def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Tensor:
    """Return, from each line along an axis, the entries at that line's `indices`."""
    x = as_tensor(x)
    at, places = as_axis(x, axis), as_array(indices)
    if places.ndim != x.ndim:
        raise ValueError(f"indices of {places.ndim} axes for an array of {x.ndim}")
    index = [np.arange(n).reshape((-1,) + (1,) * (x.ndim - 1 - a)) for a, n in enumerate(x.shape)]
    index[at] = places
    return getitem(x, tuple(index))


# --- sorting ---
@public(numpy=np.argsort, method=True)
def argsort(x: Any, axis: int | None = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort x, equal entries in their old order; there is no gradient."""
    x, at = as_line(x, axis)
    return Tensor(_order(x.data, at, descending))


@public(numpy=np.sort)
def sort(x: Any, axis: int | None = -1, descending: bool = False) -> Tensor:
    """Sort the entries along an axis; None flattens x first."""
    x, at = as_line(x, axis)
    return take_along_axis(x, _order(x.data, at, descending), at)


@public()
def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Return the k largest (or smallest) entries along an axis, in order, and their indices.

    Among equal entries the earlier come first. Raises ValueError where there are not k of them.
    """
    x = as_tensor(x)
    at = as_axis(x, axis)
    if not 0 <= k <= x.shape[at]:
        raise ValueError(f"the {k} largest of {x.shape[at]} entries do not exist")
    order = _order(x.data, at, largest)
    places = order[(slice(None),) * at + (slice(0, k),)]
    return take_along_axis(x, places, at), Tensor(places)


def _order(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Sorted backwards and turned round, so that equal entries keep their order.
    turned = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - turned
