"""Derivatives of functions, as in JAX: each takes a function of arrays and gives derivatives.

All of them are walks back with the rules recorded, so whatever they return is itself a Tensor
that can be differentiated by a function around them, and they nest to any order; where there is
none, it holds no graph. The function is recorded also within `no_grad()`. An argument, and what a
function returns, may also be a dict, list or tuple of arrays: derivatives are then built alike. So
the parameters of a model are one argument (see `Module.substituted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.backward import walk_back
from tinygrad_tf.engine.graph import Node, enable_grad
from tinygrad_tf.engine.pytree import leaves, matched, rebuilt
from tinygrad_tf.engine.tensor import Tensor

Function = Callable[..., Any]


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives f's value, a single number, and its gradient.

    The gradient is for the argument, or the tuple of arguments, that `argnums` names. Raises
    ValueError where f does not give a single number.
    """

    def both(*inputs: Any) -> tuple[Tensor, Any]:
        opened = _Opened(inputs, argnums)
        y = opened.result(f)
        if not isinstance(y, Tensor) or y.size != 1:
            shape = y.shape if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise ValueError(
                f"a gradient starts from one number, but f gives shape {shape}; "
                f"take its sum or mean, or use vjp or jacobian"
            )
        gradients = _pull(y, opened.chosen, np.ones_like(y.data))
        both = (y, gradients[0] if isinstance(argnums, int) else tuple(gradients))
        return opened.closed(both)  # type: ignore[no-any-return]

    return both


def vjp(f: Function, *inputs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """f(*inputs), and a function that takes an upstream u to (uᵀ ∂f/∂x for each input x)."""
    opened = _Opened(inputs, range(len(inputs)))
    y = opened.result(f)

    def pull(upstream: Any) -> tuple[Any, ...]:
        return tuple(opened.closed(_pull(y, opened.chosen, upstream)))

    return opened.closed(y), pull


def jvp(f: Function, inputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """f(*inputs), and its derivative along the tangents, Σ ∂f/∂x · v: both built as f's result.

    Taken backward twice: uᵀ J is linear in u, and its derivative for u, applied to v, is J v.
    """
    if len(inputs) != len(tangents):
        raise ValueError(f"{len(inputs)} inputs, but {len(tangents)} tangents")
    opened = _Opened(inputs, range(len(inputs)))
    y = opened.result(f)
    zeros = [Tensor(np.zeros_like(part.data), requires_grad=True) for part in leaves(y)]
    opened.fresh |= {zero.node for zero in zeros}
    upstream = rebuilt(y, zeros)
    along = _dot(_pull(y, opened.chosen, upstream), list(tangents), "a tangent")
    moved = _pull(along, [upstream], np.ones_like(along.data))[0]
    return opened.closed((y, moved))  # type: ignore[no-any-return]


def hvp(f: Function, inputs: Sequence[Any], vectors: Sequence[Any]) -> tuple[Any, ...]:
    """The Hessian of f, a single number, times the vectors, for each input."""
    if len(inputs) != len(vectors):
        raise ValueError(f"{len(inputs)} inputs, but {len(vectors)} vectors")
    opened = _Opened(inputs, range(len(inputs)))
    gradients = value_and_grad(f, opened.at)(*opened.doors)[1]
    along = _dot(list(gradients), list(vectors), "a vector")
    return tuple(opened.closed(_pull(along, opened.chosen, np.ones_like(along.data))))


def jacobian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """A function that gives ∂f/∂x, of f's shape followed by x's.

    Where these are trees: built as f's result, each leaf of it built as x.
    """
    if not isinstance(argnums, int):
        raise TypeError(f"argnums is {argnums!r}; give one number, or make the inputs one tuple")

    def rows(*inputs: Any) -> Any:
        opened = _Opened(inputs, argnums)
        y = opened.result(f)
        found = rebuilt(y, [_rows(part, opened.doors[argnums]) for part in leaves(y)])
        return opened.closed(found)

    return rows


def hessian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """A function that gives ∂²f/∂x², of x's shape twice, for f that gives a single number."""
    both = value_and_grad(f, argnums)
    return jacobian(lambda *inputs: both(*inputs)[1], argnums)


class _Opened:
    """The inputs of a function, those asked for as trees of Tensors that the walk back stops at.

    A Tensor that an outer function differentiates stays connected to it; the others become leaves
    of their own, which are `fresh`.
    """

    def __init__(self, inputs: Sequence[Any], argnums: int | Sequence[int]) -> None:
        self.at = [argnums] if isinstance(argnums, int) else list(argnums)
        self.doors = list(inputs)
        self.fresh: set[Node | None] = set()
        for i in self.at:
            self.doors[i] = rebuilt(self.doors[i], [self._door(x) for x in leaves(self.doors[i])])

    def _door(self, x: Any) -> Tensor:
        if isinstance(x, Tensor) and x.requires_grad:
            with enable_grad():
                return x * 1.0
        made = Tensor(x.data if isinstance(x, Tensor) else x, requires_grad=True)
        self.fresh.add(made.node)
        return made

    @property
    def chosen(self) -> list[Any]:
        """The inputs that derivatives are asked for."""
        return [self.doors[i] for i in self.at]

    def result(self, f: Function) -> Any:
        """What f gives, recorded, as a tree of Tensors."""
        with enable_grad():
            y = f(*self.doors)
        return rebuilt(y, [x if isinstance(x, Tensor) else Tensor(x) for x in leaves(y)])

    def closed(self, results: Any) -> Any:
        """The results, without their graph if nobody outside could differentiate them.

        Else a loop that goes on from its results would keep every step it ever made.
        """
        found = leaves(results)
        if self._is_seen_outside([x.node for x in found]):
            return results
        return rebuilt(results, [x.detach() for x in found])

    def _is_seen_outside(self, ends: Sequence[Node | None]) -> bool:
        """Whether the graph behind these nodes has a leaf that is not one of ours."""
        waiting = [node for node in ends if node is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            if node.op is None and node not in self.fresh:
                return True
            for parent in node.parents or ():
                if parent is not None and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False


def _rows(y: Tensor, x: Any) -> Any:
    """The Jacobian of one Tensor for a tree, one row of it at a time."""
    units = np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
    rows = [leaves(_pull(y, [x], unit)[0]) for unit in units]
    with enable_grad():
        found = [
            ops.reshape(ops.stack([row[i] for row in rows]), (*y.shape, *part.shape))
            if rows
            else Tensor(np.zeros((*y.shape, *part.shape), part.dtype))
            for i, part in enumerate(leaves(x))
        ]
    return rebuilt(x, found)


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
    gradients = [
        _apart(found[x.node], start) if x.node in found else Tensor(np.zeros_like(x.data))
        for x in doors
    ]
    return list(rebuilt(list(inputs), gradients))


def _apart(gradient: Tensor, start: Tensor) -> Tensor:
    """The gradient with memory of its own, where it is the upstream passed on."""
    if np.may_share_memory(gradient.data, start.data):
        return Tensor._of(gradient.data.copy(), gradient.node)
    return gradient


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
