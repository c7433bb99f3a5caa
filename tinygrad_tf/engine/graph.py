"""The graph: what an operation is, what a node keeps, and whether anything is recorded."""

from __future__ import annotations

import inspect
import itertools
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
F = TypeVar("F", bound=Callable[..., Any])


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
    `stamps` and `line` are what `guard` notes: how the inputs looked, and who called the op.
    """

    __slots__ = (
        "dtype",
        "extras",
        "grad",
        "inputs",
        "keeps_grad",
        "line",
        "op",
        "output",
        "params",
        "parents",
        "seq",
        "shape",
        "stamps",
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
        self.stamps: list[int | bytes | None] | None = None
        self.line = ""

    def free(self) -> None:
        """Let go of what the rules needed; a freed node has no parents."""
        self.parents = self.inputs = self.output = None
        self.extras = ()


class _Mode(threading.local):
    recording = True
    guarding = True
    anomaly = False


mode = _Mode()


class Context(Protocol):
    """A context in which something is on or off, in this thread; also a decorator."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, fault: Any, trace: Any, /) -> bool | None: ...

    def __call__(self, function: F, /) -> F: ...


@contextmanager
def switched(name: str, on: bool) -> Iterator[None]:
    """Within this context, in this thread, one of the modes is as asked."""
    before = getattr(mode, name)
    setattr(mode, name, on)
    try:
        yield
    finally:
        setattr(mode, name, before)


def no_grad() -> Context:
    """Within this context, in this thread, nothing is recorded; also a decorator."""
    return switched("recording", False)


def enable_grad() -> Context:
    """Within this context, in this thread, operations are recorded again."""
    return switched("recording", True)


def _used_arguments(rule: Rule) -> list[bool]:
    """Of y and the inputs, which does the rule say by their names that it uses?"""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    arguments = [p for p in inspect.signature(rule).parameters.values() if p.kind not in named]
    return [not p.name.startswith("_") for p in arguments[1:]]
