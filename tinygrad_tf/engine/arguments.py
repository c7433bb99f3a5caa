"""How the public functions read their arguments: arrays and axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.tensor import Tensor


def as_tensor(x: Any) -> Tensor:
    """The Tensor itself, or one of the numbers given."""
    return x if isinstance(x, Tensor) else Tensor(x)


def as_real(x: Any) -> Tensor:
    """As `as_tensor`; whole numbers become float64, as NumPy's functions make them."""
    made = as_tensor(x)
    return Tensor(made.data.astype(np.float64)) if made.dtype.kind in "biu" else made


def as_array(x: Any) -> Any:
    """The numbers, without their graph."""
    return x.data if isinstance(x, Tensor) else np.asarray(x)


def as_axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    """An axis argument as non-negative ints: None is all, () is none."""
    if axis is None:
        return tuple(range(x.ndim))
    given = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    axes = tuple(int(a) + x.ndim * (a < 0) for a in given)
    for a, asked in zip(axes, given, strict=True):
        if not 0 <= a < x.ndim:
            raise np.exceptions.AxisError(int(asked), x.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names an axis twice")
    return axes


def as_axis(x: Tensor, axis: int) -> int:
    """One axis, as a non-negative int."""
    (at,) = as_axes(x, axis)
    return at
