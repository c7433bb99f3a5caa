"""The graph: what an operation is, what a node keeps, and whether anything is recorded."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from tinygrad_tf.types import Array

Rule = Callable[..., Any]
Kept = tuple[bool, tuple[bool, ...]]
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
    _used: tuple[tuple[bool, ...], ...] = field(init=False, repr=False)
    _kept: dict[tuple[bool, ...], Kept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.rules, tuple):
            raise TypeError(f"the rules of {self.name} are no tuple; write (rule,) for one input")
        used = tuple(_used_arguments(self, rule) for rule in self.rules)
        object.__setattr__(self, "_used", used)
        object.__setattr__(self, "_kept", {})

    def kept(self, wanted: tuple[bool, ...]) -> Kept:
        """Is the output used by the rules of the `wanted` inputs, and is each input?"""
        found = self._kept.get(wanted)
        if found is None:
            if self.variadic:
                output, inputs = self._used[0]
                found = (output, (inputs,) * len(wanted))
            elif len(wanted) != len(self.rules):
                raise TypeError(
                    f"{self.name} has {len(self.rules)} rules, one per input, "
                    f"but was called with {len(wanted)} inputs"
                )
            else:
                flags = [used for used, is_in in zip(self._used, wanted, strict=True) if is_in]
                output, *given = (any(column) for column in zip(*flags, strict=True))
                found = (output, tuple(given))
            self._kept[wanted] = found
        return found

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
    derivative is itself to be differentiated. `reads_inputs` is false where no derivative depends
    on the values of the inputs.
    """

    name: str
    forward: Callable[..., tuple[Any, tuple[Any, ...]]]
    backward: Callable[..., Sequence[Any]]
    composite: Callable[..., Any]
    keeps_output: bool = False
    reads_inputs: bool = True


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
        self.stamps: list[int] | None = None
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


class switched:
    """Within this context, in this thread, one of the modes is as asked; also a decorator."""

    def __init__(self, name: str, on: bool) -> None:
        self._name, self._on = name, on
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(getattr(mode, self._name))
        setattr(mode, self._name, self._on)

    def __exit__(self, *_: object) -> None:
        setattr(mode, self._name, self._before.pop())

    def __call__(self, function: F, /) -> F:
        """The function, every call of it within a context of its own."""

        @wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with switched(self._name, self._on):
                return function(*args, **kwargs)

        return cast(F, within)


def no_grad() -> Context:
    """Within this context, in this thread, nothing is recorded; also a decorator."""
    return switched("recording", False)


def enable_grad() -> Context:
    """Within this context, in this thread, operations are recorded again."""
    return switched("recording", True)


def _used_arguments(op: Op, rule: Rule | None) -> tuple[bool, ...]:
    """Of y and the inputs, which does the rule say by their names that it uses?"""
    count = 1 + (1 if op.variadic else len(op.rules))
    if rule is None:
        return (False,) * count
    kind = inspect.Parameter
    arguments = list(inspect.signature(rule).parameters.values())
    by_place = [p for p in arguments if p.kind not in (kind.KEYWORD_ONLY, kind.VAR_KEYWORD)]
    if by_place and by_place[-1].kind is kind.VAR_POSITIONAL:
        by_place += [by_place[-1]] * (count + 1 - len(by_place))  # the rest, all alike
    if len(by_place) < 1 + count:
        inputs = ", ".join("x" if count == 2 else f"x{i}" for i in range(count - 1))
        raise TypeError(
            f"a rule of {op.name} takes {len(by_place)} arguments, but is called with the upstream "
            f"gradient, the output and the inputs; write lambda g, y, {inputs}: ..."
        )
    # What comes after these by place are parameters.
    return tuple(not p.name.startswith("_") for p in by_place[1 : 1 + count])
