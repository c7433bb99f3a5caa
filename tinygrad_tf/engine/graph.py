"""The graph: what an operation is, what a node keeps, and the walk back from a result.

Nothing here knows what the numbers are. The walk runs on NumPy arrays; handed Tensors by
`lift`, the very same rules are recorded in their turn, and that is all that derivatives of
derivatives take.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rule = Callable[..., Any]
Lift = Callable[[Any, "Node | None"], Any]
F = TypeVar("F", bound=Callable[..., Any])

# Above this many rows a float32 column sum drifts, since NumPy adds down a column one by one.
TALL = 4096


class Recorded:
    """What Tensor is to this file: a value on which an op is recorded instead of just run."""

    __slots__ = ()

    @staticmethod
    def record(op: Op | Fused, *inputs: Any, **params: Any) -> Any:
        """Run the op and put a node for its output into the graph."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Op:
    """A primitive of the table: a forward in NumPy and one derivative rule per input.

    A rule takes (g, y, *inputs, **params): the upstream gradient, the output and the inputs,
    and returns the gradient of its input, which may still have the broadcast shape. An argument
    whose name begins with an underscore is not used by the rule: if no rule of the op uses it,
    it is not kept in memory, and the rules receive None. A variadic op has one rule for all its
    inputs, which is told `which` input it is asked about.
    """

    name: str
    forward: Callable[..., Any]
    rules: tuple[Rule | None, ...]
    variadic: bool = False
    keeps_output: bool = field(init=False)
    keeps_inputs: tuple[bool, ...] = field(init=False)

    def __post_init__(self) -> None:
        used = [_used_arguments(rule) for rule in self.rules if rule is not None]
        keeps = [any(flags) for flags in zip(*used, strict=True)]
        object.__setattr__(self, "keeps_output", bool(keeps) and keeps[0])
        object.__setattr__(self, "keeps_inputs", tuple(keeps[1 : 1 + len(self.rules)]))

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run on arrays; on Tensors, run and record."""
        for x in inputs:
            if isinstance(x, Recorded):
                return x.record(self, *inputs, **params)
        return self.forward(*inputs, **params)

    def rule_for(self, which: int) -> Rule | None:
        """The derivative rule of one input."""
        if self.variadic and self.rules[0] is not None:
            return partial(self.rules[0], which=which)
        return self.rules[which]


@dataclass(frozen=True, eq=False)
class Fused:
    """A hot op whose derivative was worked out by hand for all inputs at once.

    `forward(*inputs, **params)` returns (y, extras); `backward(g, y, inputs, extras, needs,
    **params)` returns one gradient per input, None where `needs` is false. `composite` says the
    same in plain NumPy: it is the oracle in the tests, and it is what is differentiated when a
    derivative is itself to be differentiated.
    """

    name: str
    forward: Callable[..., tuple[Any, tuple[Any, ...]]]
    backward: Callable[..., Sequence[Any]]
    composite: Callable[..., Any]
    keeps_output: bool = False


_sequence = itertools.count()


class Node:
    """A value's place in the graph: the op that made it, its parents, what the rules need.

    A leaf has no op. `grad` collects the gradient of leaves and of whoever asked to keep it.
    """

    __slots__ = (
        "dtype",
        "extras",
        "grad",
        "inputs",
        "keeps_grad",
        "op",
        "output",
        "params",
        "parents",
        "seq",
        "shape",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        op: Op | Fused | None = None,
        parents: tuple[Node | None, ...] | None = (),
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.op = op
        self.parents = parents
        self.seq = next(_sequence)
        self.inputs: tuple[Any, ...] | None = None
        self.output: Any = None
        self.extras: tuple[Any, ...] = ()
        self.params: dict[str, Any] = {}
        self.grad: Array | None = None
        self.keeps_grad = op is None

    def free(self) -> None:
        """Let go of what the rules needed; a freed node has no parents."""
        self.parents = self.inputs = self.output = None
        self.extras = ()


class _Mode(threading.local):
    recording = True


mode = _Mode()


@contextmanager
def _recording(on: bool) -> Iterator[None]:
    before = mode.recording
    mode.recording = on
    try:
        yield
    finally:
        mode.recording = before


class Recording(Protocol):
    """A context in which recording is on or off; also a decorator."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, fault: Any, trace: Any, /) -> bool | None: ...

    def __call__(self, function: F, /) -> F: ...


def no_grad() -> Recording:
    """Within this context, in this thread, nothing is recorded; also a decorator."""
    return _recording(False)


def enable_grad() -> Recording:
    """Within this context, in this thread, operations are recorded again."""
    return _recording(True)


def walk_back(
    root: Node,
    upstream: Any,
    *,
    lift: Lift | None = None,
    retain: bool = False,
    wanted: frozenset[Node] = frozenset(),
    stop: frozenset[Node] = frozenset(),
) -> dict[Node, Any]:
    """Gradients of the root at every leaf and wanted node, by one walk in reverse order.

    Nodes are numbered as they are made, so the highest number first is an order in which every
    node is reached after all who used it: no recursion, whatever the depth. With `lift` the
    rules run on Tensors. Unless `retain`, what a node kept is freed as it is passed.
    Nodes in `stop` are not walked past.
    """
    arrived: dict[Node, Any] = {root: upstream}
    owned: set[Node] = set()
    found: dict[Node, Any] = {}
    heap = [(-root.seq, root)]
    while heap:
        node = heapq.heappop(heap)[1]
        gradient = arrived.pop(node)
        if node.keeps_grad or node in wanted:
            # Whoever receives it may write to it, so it must not be anybody else's memory.
            if lift is None and node not in owned:
                gradient = np.array(gradient)
            found[node] = gradient
        owned.discard(node)
        if node.op is None or node in stop:
            continue
        if node.parents is None:
            raise RuntimeError(
                "this graph was already walked and freed; "
                "call backward(retain_graph=True) the first time to walk it again"
            )
        for parent, share in zip(node.parents, _shares(node, gradient, lift), strict=True):
            if parent is None or share is None:
                continue
            fitted = _fit(share, parent, node.op.name)
            if parent not in arrived:
                arrived[parent] = fitted
                heapq.heappush(heap, (-parent.seq, parent))
                if lift is None and _is_fresh(fitted, gradient, node):
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
    return found


def _shares(node: Node, gradient: Any, lift: Lift | None) -> Sequence[Any]:
    """The gradient of each input of the node, None for those that need none."""
    op, parents, inputs = node.op, node.parents, node.inputs
    assert op is not None and parents is not None and inputs is not None
    if lift is None:
        if isinstance(op, Fused):
            needs = [parent is not None for parent in parents]
            return op.backward(gradient, node.output, inputs, node.extras, needs, **node.params)
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
    """Differentiate the plain form of a fused op, from its output just to its inputs."""
    assert node.parents is not None
    doors = [
        x if parent is None else x * 1.0 for x, parent in zip(inputs, node.parents, strict=True)
    ]
    ends = [None if p is None else x.node for x, p in zip(doors, node.parents, strict=True)]
    border = frozenset(end for end in ends if end is not None)
    output = op.composite(*doors, **node.params)
    found = walk_back(output.node, gradient, lift=lift, retain=True, wanted=border, stop=border)
    return [None if end is None else found.get(end) for end in ends]


def _is_fresh(result: Any, gradient: Any, node: Node) -> bool:
    """Whether a rule made this array itself, so that nobody else can see it written to."""
    if result.base is not None or result is gradient or result is node.output:
        return False
    assert node.inputs is not None
    return all(result is not x for x in node.inputs) and all(result is not x for x in node.extras)


def _fit(gradient: Any, parent: Node, name: str) -> Any:
    """The one place where a gradient takes the shape and dtype of what it belongs to."""
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


def _used_arguments(rule: Rule) -> list[bool]:
    """Of y and the inputs, which does the rule say by their names that it uses?"""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    arguments = [p for p in inspect.signature(rule).parameters.values() if p.kind not in named]
    return [not p.name.startswith("_") for p in arguments[1:]]
