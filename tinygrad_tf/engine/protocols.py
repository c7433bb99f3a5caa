"""NumPy's protocols: what `np.exp(t)`, `ndarray * t` and `np.concatenate([t, u])` come to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor


def _clip(x: Any, a_min: Any = None, a_max: Any = None, **bounds: Any) -> Tensor:
    """np.clip has two names for each bound."""
    return ops.clip(x, **({"min": a_min, "max": a_max} | bounds))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """np.linalg.norm takes `ord` of two axes for a norm of matrices."""
    axes = np.ndim(x) if axis is None else np.size(axis)
    if axes > 1 and ord not in (None, "fro"):
        raise TypeError(f"np.linalg.norm with ord={ord!r} of a matrix has no derivative here")
    return ops.norm(x, ord, axis, keepdims)


_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: ops.add,
    np.subtract: ops.subtract,
    np.multiply: ops.multiply,
    np.true_divide: ops.divide,
    np.power: ops.power,
    np.negative: ops.negative,
    np.square: ops.square,
    np.reciprocal: ops.reciprocal,
    np.exp: ops.exp,
    np.expm1: ops.expm1,
    np.log: ops.log,
    np.log1p: ops.log1p,
    np.sqrt: ops.sqrt,
    np.sin: ops.sin,
    np.cos: ops.cos,
    np.tan: ops.tan,
    np.arcsin: ops.arcsin,
    np.arccos: ops.arccos,
    np.arctan: ops.arctan,
    np.arctan2: ops.arctan2,
    np.sinh: ops.sinh,
    np.cosh: ops.cosh,
    np.tanh: ops.tanh,
    np.absolute: ops.absolute,
    np.fabs: ops.absolute,
    np.sign: ops.sign,
    np.floor: ops.floor,
    np.ceil: ops.ceil,
    np.trunc: ops.trunc,
    np.rint: ops.round,
    np.maximum: ops.maximum,
    np.minimum: ops.minimum,
    np.matmul: ops.matmul,
}
# What ufunc.reduce comes to.
_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: ops.sum,
    np.multiply: ops.prod,
    np.maximum: ops.max,
    np.minimum: ops.min,
}
_RUNNING: dict[Any, Callable[..., Any]] = {np.add: ops.cumsum, np.multiply: ops.cumprod}
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
    np.signbit,
)
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: ops.sum,
    np.mean: ops.mean,
    np.var: ops.var,
    np.std: ops.std,
    np.prod: ops.prod,
    np.max: ops.max,
    np.min: ops.min,
    np.argmax: ops.argmax,
    np.argmin: ops.argmin,
    np.cumsum: ops.cumsum,
    np.cumprod: ops.cumprod,
    np.linalg.norm: _norm,
    np.clip: _clip,
    np.round: ops.round,
    np.where: ops.where,
    np.reshape: ops.reshape,
    np.ravel: ops.ravel,
    np.transpose: ops.transpose,
    np.swapaxes: ops.swapaxes,
    np.moveaxis: ops.moveaxis,
    np.expand_dims: ops.expand_dims,
    np.squeeze: ops.squeeze,
    np.broadcast_to: ops.broadcast_to,
    np.concatenate: ops.concatenate,
    np.stack: ops.stack,
    np.split: ops.split,
    np.tile: ops.tile,
    np.repeat: ops.repeat,
    np.roll: ops.roll,
    np.flip: ops.flip,
    np.pad: ops.pad,
    np.triu: ops.triu,
    np.tril: ops.tril,
    np.take: ops.take,
    np.take_along_axis: ops.take_along_axis,
    np.sort: ops.sort,
    np.argsort: ops.argsort,
    np.dot: ops.dot,
    np.outer: ops.outer,
    np.einsum: ops.einsum,
}
# These say something about the numbers, and have no gradient either.
_PLAIN_FUNCTIONS = (
    np.all,
    np.allclose,
    np.any,
    np.array_equal,
    np.count_nonzero,
    np.isclose,
    np.ndim,
    np.nonzero,
    np.ones_like,
    np.shape,
    np.size,
    np.zeros_like,
)


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `np.exp(t)` and `ndarray * t` come to."""
    if method == "__call__" and not kwargs:
        if ufunc in _UFUNCS:
            return _UFUNCS[ufunc](*inputs)
        if ufunc in _PLAIN_UFUNCS:
            return Tensor(ufunc(*map(_plain, inputs)))
    if method == "reduce" and ufunc in _REDUCTIONS:
        given = {k: v for k, v in kwargs.items() if v is not None or k == "axis"}
        return _REDUCTIONS[ufunc](*inputs, **({"axis": 0} | given))
    if method == "accumulate" and ufunc in _RUNNING and not set(kwargs) - {"axis"}:
        return _RUNNING[ufunc](*inputs, **({"axis": 0} | kwargs))
    raise TypeError(
        f"np.{ufunc.__name__} ({method}) with {sorted(kwargs) or 'these arguments'} "
        f"has no derivative here; use tinygrad_tf.ops, or t.detach().numpy()"
    )


def apply_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `np.concatenate([t, u])` and the like come to."""
    if func in _PLAIN_FUNCTIONS:
        plain = func(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
        return Tensor(plain) if isinstance(plain, np.ndarray | np.generic) else plain
    if func not in _FUNCTIONS:
        raise TypeError(
            f"np.{func.__name__} has no derivative here; use tinygrad_tf.ops, or t.detach().numpy()"
        )
    return _call(func, args, kwargs)


# NumPy's names of arguments where ours differ.
_RENAMED = {"indices_or_sections": "sections", "newshape": "shape"}


def _call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Our function with NumPy's arguments, by their names; TypeError for those it lacks."""
    ours = _FUNCTIONS[func]
    theirs = _signature(func)
    if theirs is None or func in (np.where, np.einsum, np.clip):
        return ours(*args, **kwargs)
    first, *rest = theirs.bind(*args, **kwargs).arguments.items()
    known = signature(ours).parameters
    given: dict[str, Any] = {}
    for name, value in rest:
        parameter = theirs.parameters[name]
        named = value if parameter.kind is Parameter.VAR_KEYWORD else {name: value}
        for key, part in named.items():
            key = _RENAMED.get(key, key)
            if key in known:
                given[key] = part
            elif part is not None and part is not parameter.default:
                raise TypeError(
                    f"np.{func.__name__} with {key}= has no derivative here; "
                    f"use tinygrad_tf.ops, or t.detach().numpy()"
                )
    return ours(first[1], **given)


@cache
def _signature(func: Any) -> Signature | None:
    try:
        return signature(func)
    except ValueError:  # some are written in C
        return None


def _plain(x: Any) -> Any:
    return x.data if isinstance(x, Tensor) else x
