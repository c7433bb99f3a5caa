"""Gradients of a Tensor, as in PyTorch, and derivatives of functions, as in JAX.

The transforms of functions run the backward pass with the rules recorded, so their results are
Tensors that an outer function can differentiate, and they nest to any order; without an outer
function the results hold no graph. The function is recorded also within `no_grad()`. Arguments and
results may also be dicts, lists or tuples of arrays: derivatives then have the same structure. So
the parameters of a model are one argument (see `Module.substituted`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.backward import start_of, walk_back
from tinygrad_tf.engine.graph import Node, enable_grad
from tinygrad_tf.engine.pytree import leaves, matched, rebuilt
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array

Function = Callable[..., Any]
Inputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


# --- types of `grad`: arrays, or Tensors with `create_graph`, in the structure of the inputs ---
class _Options(TypedDict, total=False):
    upstream: Any
    retain_graph: bool | None


class _ForArrays(_Options, total=False):
    create_graph: Literal[False]


class _ForTensors(_Options):
    create_graph: Literal[True]


class _ForEither(_Options):
    create_graph: bool


@overload
def grad(loss: Tensor, inputs: Tensor, **options: Unpack[_ForArrays]) -> Array: ...
@overload
def grad(loss: Tensor, inputs: Tensor, **options: Unpack[_ForTensors]) -> Tensor: ...
@overload
def grad(loss: Tensor, inputs: Sequence[Tensor], **options: Unpack[_ForArrays]) -> list[Array]: ...
@overload
def grad(
    loss: Tensor, inputs: Sequence[Tensor], **options: Unpack[_ForTensors]
) -> list[Tensor]: ...
@overload
def grad(
    loss: Tensor, inputs: Mapping[str, Tensor], **options: Unpack[_ForArrays]
) -> dict[str, Array]: ...
@overload
def grad(
    loss: Tensor, inputs: Mapping[str, Tensor], **options: Unpack[_ForTensors]
) -> dict[str, Tensor]: ...
@overload
def grad(loss: Tensor, inputs: Inputs, **options: Unpack[_ForEither]) -> Any: ...
def grad(
    loss: Tensor,
    inputs: Inputs,
    *,
    upstream: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Any:
    """Return the gradient of `loss` for each of `inputs`, without changing any `.grad`.

    Returns arrays in the structure of `inputs` (one Tensor, a sequence, a mapping); with
    `create_graph`, Tensors that can be differentiated again. An input that the loss does not
    depend on has gradient zero. Raises as `Tensor.backward` does.
    """
    root, start = start_of(loss, upstream)
    listed: list[Tensor]
    if isinstance(inputs, Tensor):
        listed = [inputs]
    else:
        listed = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    nodes = [_node(x) for x in listed]
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        seed = upstream if isinstance(upstream, Tensor) else Tensor(start)
        with enable_grad():
            reached = walk_back(root, seed, lift=Tensor._of, retain=retain, wanted=frozenset(nodes))
    else:
        reached = walk_back(root, start, retain=retain, wanted=frozenset(nodes))
    results: list[Any] = []
    returned: set[int] = set()
    for x, node in zip(listed, nodes, strict=True):
        gradient = reached[node] if node in reached else np.zeros_like(x.data)
        place = gradient.node if isinstance(gradient, Tensor) else None
        memory = gradient.data if isinstance(gradient, Tensor) else gradient
        if id(memory) in returned:
            # One input named twice, or a gradient passed on unchanged: each has its own memory.
            memory = memory.copy()
        returned.add(id(memory))
        results.append(Tensor._of(memory, place) if create_graph else memory)
    if isinstance(inputs, Mapping):
        return dict(zip(inputs, results, strict=True))
    return results[0] if isinstance(inputs, Tensor) else results


def _node(x: Tensor) -> Node:
    if not isinstance(x, Tensor):
        raise TypeError(f"gradients are taken for Tensors, not for {type(x).__name__}")
    if x.node is None:
        raise RuntimeError(
            f"an input of shape {x.shape} does not require a gradient; "
            f"make it with requires_grad=True"
        )
    return x.node


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of f's arguments that returns the value of f, and its gradient.

    The gradient is for the argument, or the tuple of arguments, with the numbers `argnums`. Raises
    ValueError where f does not return a single number.
    """

    def both(*inputs: Any) -> tuple[Tensor, Any]:
        traced = _Traced(inputs, argnums)
        y = traced.result(f)
        if not isinstance(y, Tensor) or y.size != 1:
            shape = y.shape if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise ValueError(
                f"a gradient starts from one number, but f returns shape {shape}; "
                f"take its sum or mean, or use vjp or jacobian"
            )
        gradients = _pull(y, traced.chosen, np.ones_like(y.data))
        both = (y, gradients[0] if isinstance(argnums, int) else tuple(gradients))
        return traced.detached(both)  # type: ignore[no-any-return]

    return both


def vjp(f: Function, *inputs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return f(*inputs), and a function from an upstream u to uᵀ ∂f/∂x for each input x."""
    traced = _Traced(inputs, range(len(inputs)))
    y = traced.result(f)

    def pull(upstream: Any) -> tuple[Any, ...]:
        return tuple(traced.detached(_pull(y, traced.chosen, upstream)))

    return traced.detached(y), pull


def jvp(f: Function, inputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return f(*inputs), and its derivative along the tangents, Σ ∂f/∂x · v, in f's structure.

    It takes two backward passes: uᵀ J is linear in u, and its derivative for u, times v, is J v.
    """
    if len(inputs) != len(tangents):
        raise ValueError(f"{len(inputs)} inputs, but {len(tangents)} tangents")
    traced = _Traced(inputs, range(len(inputs)))
    y = traced.result(f)
    zeros = [Tensor(np.zeros_like(part.data), requires_grad=True) for part in leaves(y)]
    traced.fresh |= {zero.node for zero in zeros}
    upstream = rebuilt(y, zeros)
    along = _dot(_pull(y, traced.chosen, upstream), list(tangents), "a tangent")
    moved = _pull(along, [upstream], np.ones_like(along.data))[0]
    return traced.detached((y, moved))  # type: ignore[no-any-return]


def hvp(f: Function, inputs: Sequence[Any], vectors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the Hessian of f times the vectors, for each input; f returns a single number."""
    if len(inputs) != len(vectors):
        raise ValueError(f"{len(inputs)} inputs, but {len(vectors)} vectors")
    traced = _Traced(inputs, range(len(inputs)))
    gradients = value_and_grad(f, traced.at)(*traced.inputs)[1]
    along = _dot(list(gradients), list(vectors), "a vector")
    return tuple(traced.detached(_pull(along, traced.chosen, np.ones_like(along.data))))


def jacobian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """Return a function that computes the Jacobian ∂f/∂x, of f's shape followed by x's.

    Where f's result is a tree, each of its leaves becomes a tree with the structure of x.
    """
    if not isinstance(argnums, int):
        raise TypeError(f"argnums is {argnums!r}; give one number, or make the inputs one tuple")

    def rows(*inputs: Any) -> Any:
        traced = _Traced(inputs, argnums)
        y = traced.result(f)
        parts = [_rows(part, traced.inputs[argnums]) for part in leaves(y)]
        return traced.detached(rebuilt(y, parts))

    return rows


def hessian(f: Function, argnums: int = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian ∂²f/∂x², of x's shape twice."""
    both = value_and_grad(f, argnums)
    return jacobian(lambda *inputs: both(*inputs)[1], argnums)


class _Traced:
    """The inputs of a function; those at `argnums` are Tensors at which the backward pass stops.

    A Tensor that an outer function differentiates stays connected to it; the others become new
    leaves of the graph, which are `fresh`.
    """

    def __init__(self, inputs: Sequence[Any], argnums: int | Sequence[int]) -> None:
        self.at = [argnums] if isinstance(argnums, int) else list(argnums)
        self.inputs = list(inputs)
        self.fresh: set[Node | None] = set()
        for i in self.at:
            self.inputs[i] = rebuilt(
                self.inputs[i], [self._input(x) for x in leaves(self.inputs[i])]
            )

    def _input(self, x: Any) -> Tensor:
        if isinstance(x, Tensor) and x.requires_grad:
            with enable_grad():
                return x * 1.0
        leaf = Tensor(x.data if isinstance(x, Tensor) else x, requires_grad=True)
        self.fresh.add(leaf.node)
        return leaf

    @property
    def chosen(self) -> list[Any]:
        """The inputs for which derivatives are computed."""
        return [self.inputs[i] for i in self.at]

    def result(self, f: Function) -> Any:
        """Call f, record it and return its result as a tree of Tensors."""
        with enable_grad():
            y = f(*self.inputs)
        return rebuilt(y, [x if isinstance(x, Tensor) else Tensor(x) for x in leaves(y)])

    def detached(self, results: Any) -> Any:
        """Return the results, without their graph if no outer function can differentiate them.

        Otherwise a loop that continues from its results would keep the graph of every step.
        """
        tensors = leaves(results)
        if self._reaches_outside([x.node for x in tensors]):
            return results
        return rebuilt(results, [x.detach() for x in tensors])

    def _reaches_outside(self, ends: Sequence[Node | None]) -> bool:
        """Say whether the graph of these nodes has a leaf that is not `fresh`."""
        waiting = [node for node in ends if node is not None]
        visited = set(waiting)
        while waiting:
            node = waiting.pop()
            if node.op is None and node not in self.fresh:
                return True
            for parent in node.parents or ():
                if parent is not None and parent not in visited:
                    visited.add(parent)
                    waiting.append(parent)
        return False


def _rows(y: Tensor, x: Any) -> Any:
    """Compute the Jacobian of one Tensor for a tree, row by row."""
    units = np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
    rows = [leaves(_pull(y, [x], unit)[0]) for unit in units]
    with enable_grad():
        jacobians = [
            ops.reshape(ops.stack([row[i] for row in rows]), (*y.shape, *part.shape))
            if rows
            else Tensor(np.zeros((*y.shape, *part.shape), part.dtype))
            for i, part in enumerate(leaves(x))
        ]
    return rebuilt(x, jacobians)


def _pull(y: Any, inputs: Sequence[Any], upstream: Any) -> list[Any]:
    """Return the gradients of y times upstream for the inputs, recorded; all may be trees."""
    if not isinstance(y, Tensor):
        y = _dot(y, upstream, "upstream")
        upstream = np.ones_like(y.data)
    start = _like(upstream, y, "upstream")
    tensors = leaves(list(inputs))
    border = frozenset(x.node for x in tensors if x.node is not None)
    reached: dict[Any, Any] = {}
    if y.node is not None:
        with enable_grad():
            reached = walk_back(
                y.node, start, lift=Tensor._of, retain=True, wanted=border, stop=border
            )
    gradients = [
        _unshared(reached[x.node], start) if x.node in reached else Tensor(np.zeros_like(x.data))
        for x in tensors
    ]
    return list(rebuilt(list(inputs), gradients))


def _unshared(gradient: Tensor, start: Tensor) -> Tensor:
    """Return the gradient, copied where it shares the memory of the upstream."""
    if np.may_share_memory(gradient.data, start.data):
        return Tensor._of(gradient.data.copy(), gradient.node)
    return gradient


def _dot(tree: Any, vectors: Any, what: str) -> Tensor:
    """Return the sum of all products of two trees of the same structure, recorded."""
    pairs = zip(leaves(tree), matched(tree, vectors, what), strict=True)
    with enable_grad():
        parts = [ops.sum(x * _like(v, x, what)) for x, v in pairs]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
    return total


def _like(value: Any, x: Tensor, what: str) -> Tensor:
    tensor = value if isinstance(value, Tensor) else Tensor(np.asarray(value, x.dtype))
    if tensor.shape != x.shape:
        raise ValueError(f"{what} has shape {tensor.shape} where {x.shape} is needed")
    return tensor
