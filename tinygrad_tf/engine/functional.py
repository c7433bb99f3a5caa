"""Derivatives of functions, as in JAX: each takes a function of arrays and gives derivatives.

All of them are walks back with the rules recorded, so whatever they return is itself a Tensor
that can be differentiated, and they nest to any order. An argument, and what a function returns,
may also be a dict, list or tuple of arrays: derivatives are then built alike. So the parameters
of a model are one argument (see `Module.substituted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.graph import enable_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.engine.trees import leaves, matched, rebuilt
from tinygrad_tf.engine.walk import walk_back

Function = Callable[..., Any]


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives f's value, a single number, and its gradient.

    The gradient is for the argument, or the tuple of arguments, that `argnums` names. Raises
    ValueError where f does not give a single number.
    """

    def both(*inputs: Any) -> tuple[Tensor, Any]:
        at, doors = _open(inputs, argnums)
        y = _result(f(*doors))
        if not isinstance(y, Tensor) or y.size != 1:
            shape = y.shape if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise ValueError(
                f"a gradient starts from one number, but f gives shape {shape}; "
                f"take its sum or mean, or use vjp or jacobian"
            )
        gradients = _pull(y, [doors[i] for i in at], np.ones_like(y.data))
        return y, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return both


def vjp(f: Function, *inputs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """f(*inputs), and a function that takes an upstream u to (uᵀ ∂f/∂x for each input x)."""
    at, doors = _open(inputs, range(len(inputs)))
    y = _result(f(*doors))

    def pull(upstream: Any) -> tuple[Any, ...]:
        return tuple(_pull(y, [doors[i] for i in at], upstream))

    return y, pull


def jvp(f: Function, inputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """f(*inputs), and its derivative along the tangents, Σ ∂f/∂x · v: both built as f's result.

    Taken backward twice: uᵀ J is linear in u, and its derivative for u, applied to v, is J v.
    """
    if len(inputs) != len(tangents):
        raise ValueError(f"{len(inputs)} inputs, but {len(tangents)} tangents")
    at, doors = _open(inputs, range(len(inputs)))
    y = _result(f(*doors))
    zeros = [Tensor(np.zeros_like(part.data), requires_grad=True) for part in leaves(y)]
    upstream = rebuilt(y, zeros)
    along = _dot(_pull(y, [doors[i] for i in at], upstream), list(tangents), "a tangent")
    return y, _pull(along, [upstream], np.ones_like(along.data))[0]


def hvp(f: Function, inputs: Sequence[Any], vectors: Sequence[Any]) -> tuple[Any, ...]:
    """The Hessian of f, a single number, times the vectors, for each input."""
    if len(inputs) != len(vectors):
        raise ValueError(f"{len(inputs)} inputs, but {len(vectors)} vectors")
    at, doors = _open(inputs, range(len(inputs)))
    gradients = value_and_grad(f, at)(*doors)[1]
    along = _dot(list(gradients), list(vectors), "a vector")
    return tuple(_pull(along, [doors[i] for i in at], np.ones_like(along.data)))


def jacobian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """A function that gives ∂f/∂x, of f's shape followed by x's.

    Where these are trees: built as f's result, each leaf of it built as x.
    """

    def rows(*inputs: Any) -> Any:
        _, doors = _open(inputs, argnums)
        x, y = doors[argnums], _result(f(*doors))
        return rebuilt(y, [_rows(part, x) for part in leaves(y)])

    return rows


def hessian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """A function that gives ∂²f/∂x², of x's shape twice, for f that gives a single number."""
    both = value_and_grad(f, argnums)
    return jacobian(lambda *inputs: both(*inputs)[1], argnums)


def _rows(y: Tensor, x: Any) -> Any:
    """The Jacobian of one Tensor for a tree, one row of it at a time."""
    units = np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
    rows = [leaves(_pull(y, [x], unit)[0]) for unit in units]
    found = [
        ops.reshape(ops.stack([row[i] for row in rows]), (*y.shape, *part.shape))
        if rows
        else Tensor(np.zeros((*y.shape, *part.shape), part.dtype))
        for i, part in enumerate(leaves(x))
    ]
    return rebuilt(x, found)


def _open(inputs: Sequence[Any], argnums: int | Sequence[int]) -> tuple[list[int], list[Any]]:
    """The inputs, those asked for as trees of Tensors that the walk back stops at.

    A Tensor that an outer function differentiates stays connected to it.
    """
    at = [argnums] if isinstance(argnums, int) else list(argnums)
    doors = list(inputs)
    for i in at:
        doors[i] = rebuilt(doors[i], [_door(x) for x in leaves(doors[i])])
    return at, doors


def _door(x: Any) -> Tensor:
    if isinstance(x, Tensor) and x.requires_grad:
        with enable_grad():
            return x * 1.0
    return Tensor(x.data if isinstance(x, Tensor) else x, requires_grad=True)


def _pull(y: Any, inputs: Sequence[Any], upstream: Any) -> list[Any]:
    """The gradients of y times upstream for the inputs, recorded; all of them may be trees."""
    if not isinstance(y, Tensor):
        y = _dot(y, upstream, "upstream")
        upstream = np.ones_like(y.data)
    start = _like(upstream, y, "upstream")
    doors = leaves(list(inputs))
    border = frozenset(x.node for x in doors if x.node is not None)
    found: dict[Any, Any] = {}
    if y.node is not None:
        with enable_grad():
            found = walk_back(
                y.node, start, lift=Tensor._of, retain=True, wanted=border, stop=border
            )
    gradients = [found[x.node] if x.node in found else Tensor(np.zeros_like(x.data)) for x in doors]
    return list(rebuilt(list(inputs), gradients))


def _dot(tree: Any, vectors: Any, what: str) -> Tensor:
    """The sum of all products of two trees of the same build, recorded."""
    pairs = zip(leaves(tree), matched(tree, vectors, what), strict=True)
    with enable_grad():
        parts = [ops.sum(x * _like(v, x, what)) for x, v in pairs]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
    return total


def _like(given: Any, x: Tensor, what: str) -> Tensor:
    made = given if isinstance(given, Tensor) else Tensor(np.asarray(given, x.dtype))
    if made.shape != x.shape:
        raise ValueError(f"{what} has shape {made.shape} where {x.shape} is needed")
    return made


def _result(y: Any) -> Any:
    return rebuilt(y, [x if isinstance(x, Tensor) else Tensor(x) for x in leaves(y)])
