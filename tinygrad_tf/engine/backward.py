"""The backward pass: from a result, run the rules of every node in turn and add up gradients.

The pass runs on NumPy arrays. With `lift` the same rules run on Tensors and are recorded in their
turn: derivatives of derivatives need nothing else.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine import mutation
from tinygrad_tf.engine.graph import Context, Fused, Node, Recorded, mode
from tinygrad_tf.types import Array

Lift = Callable[[Any, "Node | None"], Any]

# Above this many rows a float32 column sum drifts, since NumPy adds down a column one by one.
TALL = 4096


def walk_back(
    root: Node,
    upstream: Any,
    *,
    lift: Lift | None = None,
    retain: bool = False,
    wanted: frozenset[Node] = frozenset(),
    stop: frozenset[Node] = frozenset(),
) -> dict[Node, Any]:
    """Return the gradients of the root for every leaf and every wanted node.

    Nodes are numbered as they are made, so in descending order every node comes after all nodes
    that use it: no recursion, whatever the depth. With `lift` the rules run on Tensors. Unless
    `retain`, the arrays that a node kept are freed once they are used. The pass does not go
    beyond nodes in `stop`. Raises RuntimeError for a graph that was freed before.
    """
    arrived: dict[Node, Any] = {root: upstream}
    owned: set[Node] = set()
    gradients: dict[Node, Any] = {}
    anomaly = mode.anomaly
    heap = [(-root.seq, root)]
    while heap:
        node = heapq.heappop(heap)[1]
        gradient = arrived.pop(node)
        if node.keeps_grad or node in wanted:
            # The caller may write to it, so it must share memory with nothing else.
            if lift is None and node not in owned:
                gradient = np.array(gradient)
            gradients[node] = gradient
        owned.discard(node)
        if node.op is None or node in stop:
            continue
        if node.parents is None:
            raise RuntimeError(
                "this graph was already walked and freed; "
                "call backward(retain_graph=True) the first time to walk it again"
            )
        shares = _shares(node, gradient, lift)
        for parent, share in zip(node.parents, shares, strict=True):
            if parent is None or share is None:
                continue
            fitted = _fit(share, parent, node.op.name)
            if anomaly:
                mutation.check_backward(node, parent, fitted, gradient)
            if parent not in arrived:
                arrived[parent] = fitted
                heapq.heappush(heap, (-parent.seq, parent))
                if lift is None and _is_fresh(fitted, gradient, node, shares):
                    owned.add(parent)
            elif parent in owned:
                arrived[parent] += fitted
            else:
                total = arrived[parent] + fitted
                if lift is None:
                    total = np.asarray(total)  # NumPy makes scalars of sums of 0-d arrays
                    owned.add(parent)
                arrived[parent] = total
        if not retain:
            node.free()
    return gradients


def _shares(node: Node, gradient: Any, lift: Lift | None) -> Sequence[Any]:
    """Return the gradient of each input of the node, None for those that need none."""
    op, parents, inputs = node.op, node.parents, node.inputs
    assert op is not None and parents is not None and inputs is not None
    if node.stamps is not None:
        mutation.require_unchanged(node)
    if lift is not None and mode.anomaly:
        # A fault within a rule is reported as the fault of the operation that it belongs to.
        with Context("anomaly", False):
            return _shares(node, gradient, lift)
    if lift is None:
        if isinstance(op, Fused):
            needs = [parent is not None for parent in parents]
            return op.backward(gradient, inputs, node.extras, needs, **node.params)
        output = node.output
    else:
        inputs = tuple(
            x if parent is None else lift(x, parent)
            for x, parent in zip(inputs, parents, strict=True)
        )
        if isinstance(op, Fused):
            return _composite_shares(op, inputs, node, gradient, lift)
        output = None if node.output is None else lift(node.output, node)
    shares: list[Any] = []
    for which, parent in enumerate(parents):
        rule = None if parent is None else op.rule_for(which)
        shares.append(None if rule is None else rule(gradient, output, *inputs, **node.params))
    return shares


def _composite_shares(
    op: Fused, inputs: tuple[Any, ...], node: Node, gradient: Any, lift: Lift
) -> list[Any]:
    """Differentiate the composite of a fused op, from its output to its inputs only."""
    assert node.parents is not None
    copies = [
        x if parent is None else x * 1.0 for x, parent in zip(inputs, node.parents, strict=True)
    ]
    ends = [None if p is None else x.node for x, p in zip(copies, node.parents, strict=True)]
    border = frozenset(end for end in ends if end is not None)
    output = op.composite(*copies, **node.params)
    gradients = walk_back(output.node, gradient, lift=lift, retain=True, wanted=border, stop=border)
    return [None if end is None else gradients.get(end) for end in ends]


def _is_fresh(result: Any, gradient: Any, node: Node, shares: Sequence[Any]) -> bool:
    """Say whether a rule made this array itself, so that writing to it changes nothing else."""
    if result.base is not None or result is gradient or result is node.output:
        return False
    times = 0
    for share in shares:
        times += share is result
    if times > 1:
        return False
    assert node.inputs is not None
    return all(result is not x for x in node.inputs) and all(result is not x for x in node.extras)


def _fit(gradient: Any, parent: Node, name: str) -> Any:
    """Give a gradient the shape and dtype of the value that it belongs to: the only such place."""
    if isinstance(gradient, np.generic):
        gradient = np.asarray(gradient)
    if gradient.shape != parent.shape:
        gradient = unbroadcast(gradient, parent.shape, name)
    if gradient.dtype != parent.dtype:
        gradient = gradient.astype(parent.dtype)
    return gradient


def unbroadcast(gradient: Any, shape: tuple[int, ...], name: str = "") -> Any:
    """Sum over the axes along which `shape` was broadcast, so that the result has `shape`."""
    extra = gradient.ndim - len(shape)
    padded = (1,) * extra + shape
    if extra < 0 or any(n not in (1, m) for n, m in zip(padded, gradient.shape, strict=True)):
        raise ValueError(
            f"the rule of {name} gave a gradient of shape {gradient.shape} "
            f"for an input of shape {shape}"
        )
    axes = tuple(
        i
        for i, (n, m) in enumerate(zip(padded, gradient.shape, strict=True))
        if i < extra or n != m
    )
    lead = len(axes)
    if type(gradient) is np.ndarray and axes == tuple(range(lead)):
        rows = math.prod(gradient.shape[:lead])
        total = column_sum(gradient.reshape(rows, *gradient.shape[lead:]))
        return total if total.shape == shape else total.reshape(shape)
    return np.sum(gradient, axis=axes, keepdims=True).reshape(shape)


def column_sum(rows: Array) -> Array:
    """Sum over the first axis, in blocks where it is so long that float32 would drift."""
    if rows.shape[0] <= TALL:
        return np.asarray(np.add.reduce(rows, axis=0))
    blocks = np.add.reduceat(rows, np.arange(0, rows.shape[0], TALL // 4), axis=0)
    return column_sum(blocks)


def start_of(result: Any, upstream: Any) -> tuple[Node, Array]:
    """Return the node of a Tensor, and the upstream gradient as an array of its shape and dtype.

    Raises ValueError for a missing or misshapen upstream, RuntimeError where nothing was recorded.
    """
    if not isinstance(result, Recorded):
        raise TypeError(f"gradients are taken of a Tensor, not of {type(result).__name__}")
    if result.node is None:
        raise RuntimeError(
            "nothing was recorded for this Tensor; "
            "make its inputs with requires_grad=True, outside no_grad()"
        )
    shape, dtype = result.node.shape, result.node.dtype
    if upstream is None:
        if math.prod(shape) != 1:
            raise ValueError(
                f"a gradient starts from one number, but this Tensor has shape {shape}; "
                f"take .sum() or .mean() first, or give upstream"
            )
        return result.node, np.ones(shape, dtype)
    array = np.asarray(upstream.data if isinstance(upstream, Recorded) else upstream)
    if array.shape != shape:
        raise ValueError(f"upstream has shape {array.shape}, but this Tensor has shape {shape}")
    return result.node, array.astype(dtype, copy=False)
