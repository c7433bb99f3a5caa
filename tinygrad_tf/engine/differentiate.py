"""Taking gradients of a Tensor: into `.grad`, or as a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from tinygrad_tf.engine.backward import walk_back
from tinygrad_tf.engine.graph import Node, enable_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array


def backward(result: Tensor, upstream: Any = None, retain_graph: bool = False) -> None:
    """See `Tensor.backward`."""
    root, start = _root(result), _upstream(result, upstream)
    for node, gradient in walk_back(root, start, retain=retain_graph).items():
        node.grad = gradient if node.grad is None else np.asarray(node.grad + gradient)


@overload
def grad(
    loss: Tensor,
    inputs: Tensor,
    *,
    upstream: Any = None,
    create_graph: Literal[False] = False,
    retain_graph: bool | None = None,
) -> Array: ...
@overload
def grad(
    loss: Tensor,
    inputs: Sequence[Tensor],
    *,
    upstream: Any = None,
    create_graph: Literal[False] = False,
    retain_graph: bool | None = None,
) -> list[Array]: ...
@overload
def grad(
    loss: Tensor,
    inputs: Mapping[str, Tensor],
    *,
    upstream: Any = None,
    create_graph: Literal[False] = False,
    retain_graph: bool | None = None,
) -> dict[str, Array]: ...
@overload
def grad(
    loss: Tensor,
    inputs: Tensor,
    *,
    upstream: Any = None,
    create_graph: Literal[True],
    retain_graph: bool | None = None,
) -> Tensor: ...
@overload
def grad(
    loss: Tensor,
    inputs: Sequence[Tensor],
    *,
    upstream: Any = None,
    create_graph: Literal[True],
    retain_graph: bool | None = None,
) -> list[Tensor]: ...
@overload
def grad(
    loss: Tensor,
    inputs: Mapping[str, Tensor],
    *,
    upstream: Any = None,
    create_graph: Literal[True],
    retain_graph: bool | None = None,
) -> dict[str, Tensor]: ...
@overload
def grad(
    loss: Tensor,
    inputs: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    *,
    upstream: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Any: ...
def grad(
    loss: Tensor,
    inputs: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    *,
    upstream: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Any:
    """The gradient of `loss` for each of `inputs`, without touching any `.grad`.

    Returns arrays in the structure of `inputs` (one Tensor, a sequence, a mapping); with
    `create_graph`, Tensors that can be differentiated again. An input that the loss does not
    depend on has gradient zero. Raises as `Tensor.backward` does.
    """
    root, start = _root(loss), _upstream(loss, upstream)
    listed: list[Tensor]
    if isinstance(inputs, Tensor):
        listed = [inputs]
    else:
        listed = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    nodes = [_place(x) for x in listed]
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        seed = upstream if isinstance(upstream, Tensor) else Tensor(start)
        with enable_grad():
            found = walk_back(root, seed, lift=Tensor._of, retain=retain, wanted=frozenset(nodes))
    else:
        found = walk_back(root, start, retain=retain, wanted=frozenset(nodes))
    results: list[Any] = []
    given: set[int] = set()
    for x, node in zip(listed, nodes, strict=True):
        gradient = found[node] if node in found else np.zeros_like(x.data)
        place = gradient.node if isinstance(gradient, Tensor) else None
        memory = gradient.data if isinstance(gradient, Tensor) else gradient
        if id(memory) in given:
            # Asked for twice, or passed on unchanged: each gets memory of its own.
            memory = memory.copy()
        given.add(id(memory))
        results.append(Tensor._of(memory, place) if create_graph else memory)
    if isinstance(inputs, Mapping):
        return dict(zip(inputs, results, strict=True))
    return results[0] if isinstance(inputs, Tensor) else results


def _place(x: Tensor) -> Node:
    if not isinstance(x, Tensor):
        raise TypeError(f"gradients are taken for Tensors, not for {type(x).__name__}")
    if x.node is None:
        raise RuntimeError(
            f"an input of shape {x.shape} does not require a gradient; "
            f"make it with requires_grad=True"
        )
    return x.node


def _root(result: Tensor) -> Node:
    if not isinstance(result, Tensor):
        raise TypeError(f"gradients are taken of a Tensor, not of {type(result).__name__}")
    if result.node is None:
        raise RuntimeError(
            "nothing was recorded for this Tensor; "
            "make its inputs with requires_grad=True, outside no_grad()"
        )
    return result.node


def _upstream(result: Tensor, upstream: Any) -> Array:
    if upstream is None:
        if result.size != 1:
            raise ValueError(
                f"a gradient starts from one number, but this Tensor has shape {result.shape}; "
                f"take .sum() or .mean() first, or give upstream"
            )
        return np.ones_like(result.data)
    given = np.asarray(upstream.data if isinstance(upstream, Tensor) else upstream)
    if given.shape != result.shape:
        raise ValueError(
            f"upstream has shape {given.shape}, but this Tensor has shape {result.shape}"
        )
    return given.astype(result.dtype, copy=False)
