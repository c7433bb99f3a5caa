"""NumPy's protocols: what `np.exp(t)`, `ndarray * t` and `np.concatenate([t, u])` come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor

_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: ops.add,
    np.subtract: ops.subtract,
    np.multiply: ops.multiply,
    np.true_divide: ops.divide,
    np.power: ops.power,
    np.negative: ops.negative,
    np.square: ops.square,
    np.exp: ops.exp,
    np.log: ops.log,
    np.sqrt: ops.sqrt,
    np.tanh: ops.tanh,
    np.absolute: ops.absolute,
    np.sign: ops.sign,
    np.maximum: ops.maximum,
    np.minimum: ops.minimum,
    np.matmul: ops.matmul,
}
# Comparisons and tests have no gradient: they run on the arrays.
_PLAIN_UFUNCS = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.isfinite,
    np.isnan,
    np.isinf,
    np.logical_and,
    np.logical_or,
    np.logical_not,
    np.bitwise_and,
    np.bitwise_or,
    np.invert,
)
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: ops.sum,
    np.mean: ops.mean,
    np.var: ops.var,
    np.max: ops.max,
    np.argmax: ops.argmax,
    np.reshape: ops.reshape,
    np.transpose: ops.transpose,
    np.swapaxes: ops.swapaxes,
    np.expand_dims: ops.expand_dims,
    np.squeeze: ops.squeeze,
    np.broadcast_to: ops.broadcast_to,
    np.concatenate: ops.concatenate,
    np.stack: ops.stack,
    np.split: ops.split,
    np.where: ops.where,
}


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `np.exp(t)` and `ndarray * t` come to."""
    if method == "__call__" and not kwargs:
        if ufunc in _UFUNCS:
            return _UFUNCS[ufunc](*inputs)
        if ufunc in _PLAIN_UFUNCS:
            return Tensor(ufunc(*(x.data if isinstance(x, Tensor) else x for x in inputs)))
    if method == "reduce" and ufunc is np.add:
        given = {k: v for k, v in kwargs.items() if v is not None or k == "axis"}
        return ops.sum(*inputs, **({"axis": 0} | given))
    raise TypeError(
        f"np.{ufunc.__name__} ({method}) with {sorted(kwargs) or 'these arguments'} "
        f"has no derivative here; use tinygrad_tf.ops, or t.detach().numpy()"
    )


def apply_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `np.concatenate([t, u])` and the like come to."""
    if func not in _FUNCTIONS:
        raise TypeError(
            f"np.{func.__name__} has no derivative here; use tinygrad_tf.ops, or t.detach().numpy()"
        )
    return _FUNCTIONS[func](*args, **kwargs)
