"""The table, continued: shapes, joining and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Op

# --- shape ---
# The old shape comes as a parameter, so that the input itself need not be kept.
reshape = Op(
    "reshape",
    lambda x, shape, old: np.reshape(x, shape),
    (lambda g, _y, _x, shape, old: np.reshape(g, old),),
)
transpose = Op(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    (lambda g, _y, _x, axes: np.transpose(g, np.argsort(axes)),),
)
roll = Op(
    "roll",
    lambda x, shift, axis: np.roll(x, shift, axis),
    (lambda g, _y, _x, shift, axis: np.roll(g, tuple(-s for s in shift), axis),),
)
broadcast_to = Op(
    "broadcast_to", lambda x, shape: np.broadcast_to(x, shape), (lambda g, _y, _x, shape: g,)
)


def _pad(x: Any, index: tuple[slice, ...], shape: tuple[int, ...], value: Any) -> Any:
    out = np.full(shape, value, x.dtype)
    out[index] = x
    return out


# `index` is the place of x in the larger array.
pad = Op("pad", _pad, (lambda g, _y, _x, index, shape, value: g[index],))


def _concatenate_rule(
    g: Any, _y: Any, *_inputs: Any, axis: Any, ends: tuple[int, ...], which: int
) -> Any:
    start = ends[which - 1] if which else 0
    return g[(slice(None),) * axis + (slice(start, ends[which]),)]


concatenate = Op(
    "concatenate",
    lambda *xs, axis, ends: np.concatenate(xs, axis=axis),
    (_concatenate_rule,),
    variadic=True,
)


# --- indexing ---
def reaches_once(index: Any) -> bool:
    """Whether an index surely reaches no entry twice: ints, slices, None, Ellipsis; or a mask."""
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


def _scatter(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    if reaches_once(index):
        out[index] = g
    else:
        np.add.at(out, index, g)
    return out


def _getitem_rule(g: Any, _y: Any, _x: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
    return scatter(g, index=index, shape=shape)


getitem = Op("getitem", lambda x, index, shape: x[index], (_getitem_rule,))
# The transpose of getitem: its own derivative is getitem again.
scatter = Op("scatter", _scatter, (lambda g, _y, _x, index, shape: g[index],))
