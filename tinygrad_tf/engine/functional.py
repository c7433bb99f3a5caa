"""Derivatives of functions, as in JAX: each takes a function of arrays and gives derivatives.

All of them are walks back with the rules recorded, so whatever they return is itself a Tensor
that can be differentiated, and they nest to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.graph import enable_grad, walk_back
from tinygrad_tf.engine.tensor import Tensor

Function = Callable[..., Any]


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives f's value, a single number, and its gradient.

    The gradient is for the argument, or the tuple of arguments, that `argnums` names. Raises
    ValueError where f does not give a single number.
    """

    def both(*inputs: Any) -> tuple[Tensor, Any]:
        at, doors = _open(inputs, argnums)
        y = _result(f(*doors))
        if y.size != 1:
            raise ValueError(
                f"a gradient starts from one number, but f gives shape {y.shape}; "
                f"take its sum or mean, or use vjp or jacobian"
            )
        gradients = _pull(y, [doors[i] for i in at], Tensor(np.ones_like(y.data)))
        return y, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return both


def vjp(f: Function, *inputs: Any) -> tuple[Tensor, Callable[[Any], tuple[Tensor, ...]]]:
    """f(*inputs), and a function that takes an upstream u to (uᵀ ∂f/∂x for each input x)."""
    at, doors = _open(inputs, range(len(inputs)))
    y = _result(f(*doors))

    def pull(upstream: Any) -> tuple[Tensor, ...]:
        return tuple(_pull(y, [doors[i] for i in at], _like(upstream, y, "upstream")))

    return y, pull


def jvp(f: Function, inputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """f(*inputs), and its derivative along the tangents, Σ ∂f/∂x · v: both of f's shape.

    Taken backward twice: uᵀ J is linear in u, and its derivative for u, applied to v, is J v.
    """
    if len(inputs) != len(tangents):
        raise ValueError(f"{len(inputs)} inputs, but {len(tangents)} tangents")
    at, doors = _open(inputs, range(len(inputs)))
    y = _result(f(*doors))
    upstream = Tensor(np.zeros_like(y.data), requires_grad=True)
    along = _dot(_pull(y, [doors[i] for i in at], upstream), tangents, doors)
    return y, _pull(along, [upstream], Tensor(np.ones_like(along.data)))[0]


def hvp(f: Function, inputs: Sequence[Any], vectors: Sequence[Any]) -> tuple[Tensor, ...]:
    """The Hessian of f, a single number, times the vectors, for each input."""
    if len(inputs) != len(vectors):
        raise ValueError(f"{len(inputs)} inputs, but {len(vectors)} vectors")
    at, doors = _open(inputs, range(len(inputs)))
    gradients = value_and_grad(f, at)(*doors)[1]
    along = _dot(gradients, vectors, doors)
    return tuple(_pull(along, [doors[i] for i in at], Tensor(np.ones_like(along.data))))


def jacobian(f: Function, argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives ∂f/∂x, of f's shape followed by x's."""

    def rows(*inputs: Any) -> Tensor:
        _, doors = _open(inputs, argnums)
        x, y = doors[argnums], _result(f(*doors))
        units = np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
        found = [_pull(y, [x], Tensor(unit))[0] for unit in units]
        if not found:
            return Tensor(np.zeros((*y.shape, *x.shape), x.dtype))
        return ops.reshape(ops.stack(found), (*y.shape, *x.shape))

    return rows


def hessian(f: Function, argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives ∂²f/∂x², of x's shape twice, for f that gives a single number."""
    both = value_and_grad(f, argnums)
    return jacobian(lambda *inputs: both(*inputs)[1], argnums)


def _open(inputs: Sequence[Any], argnums: int | Sequence[int]) -> tuple[list[int], list[Any]]:
    """The inputs, those asked for as Tensors that the walk back stops at.

    A Tensor that an outer function differentiates stays connected to it.
    """
    at = [argnums] if isinstance(argnums, int) else list(argnums)
    doors = list(inputs)
    with enable_grad():
        for i in at:
            x = doors[i]
            if isinstance(x, Tensor) and x.requires_grad:
                doors[i] = x * 1.0
            else:
                doors[i] = Tensor(x.data if isinstance(x, Tensor) else x, requires_grad=True)
    return at, doors


def _pull(y: Tensor, inputs: Sequence[Tensor], upstream: Tensor) -> list[Tensor]:
    """The gradients of y times upstream for the inputs, recorded."""
    nodes = [x.node for x in inputs]
    border = frozenset(node for node in nodes if node is not None)
    found: dict[Any, Any] = {}
    if y.node is not None:
        with enable_grad():
            found = walk_back(
                y.node, upstream, lift=Tensor._of, retain=True, wanted=border, stop=border
            )
    return [
        found[node] if node in found else Tensor(np.zeros_like(x.data))
        for node, x in zip(nodes, inputs, strict=True)
    ]


def _dot(gradients: Sequence[Tensor], vectors: Sequence[Any], inputs: Sequence[Tensor]) -> Tensor:
    parts = [
        ops.sum(g * _like(v, x, "a tangent"))
        for g, v, x in zip(gradients, vectors, inputs, strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _like(given: Any, x: Tensor, what: str) -> Tensor:
    made = given if isinstance(given, Tensor) else Tensor(np.asarray(given, x.dtype))
    if made.shape != x.shape:
        raise ValueError(f"{what} has shape {made.shape} where {x.shape} is needed")
    return made


def _result(y: Any) -> Tensor:
    return y if isinstance(y, Tensor) else Tensor(y)
