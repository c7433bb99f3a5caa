"""The graph: operations, the nodes that they add, and the modes of recording."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from tinygrad_tf.types import Array

Rule = Callable[..., Any]
Gradients = tuple[Any, ...]
Kept = tuple[bool, tuple[bool, ...]]
F = TypeVar("F", bound=Callable[..., Any])


class Recorded:
    """The base class of Tensor: a value on which an op is recorded instead of only run."""

    __slots__ = ()

    node: Node | None
    data: Any

    @staticmethod
    def record(op: Op | Fused, *inputs: Any, **params: Any) -> Any:
        """Run the op and add a node for its output to the graph."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Op:
    """A primitive operation: a forward pass in NumPy and one derivative rule per input.

    A rule takes (g, y, *inputs, **params): the upstream gradient, the output and the inputs,
    and returns the gradient of its input, which may still have the broadcast shape. An argument
    whose name begins with an underscore is not used by the rule: if no rule of the op uses it,
    it is not kept in memory, and the rules receive None. A variadic op has one rule for all its
    inputs, which also receives the number of the input, `which`.

    domain: the numbers at which the op is differentiable: "all", "nonzero", "positive", "inside
    one" (less than 1 in size) or "fractions" (no whole numbers).
    """

    name: str
    forward: Callable[..., Any]
    rules: tuple[Rule | None, ...]
    variadic: bool = False
    domain: str = "all"
    _used: tuple[tuple[bool, ...], ...] = field(init=False, repr=False)
    _kept: dict[tuple[bool, ...], Kept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.rules, tuple):
            raise TypeError(f"the rules of {self.name} are no tuple; write (rule,) for one input")
        used = tuple(_used_arguments(self, rule) for rule in self.rules)
        object.__setattr__(self, "_used", used)
        object.__setattr__(self, "_kept", {})

    def kept(self, wanted: tuple[bool, ...]) -> Kept:
        """Return whether rules of the `wanted` inputs use the output, and each of the inputs."""
        kept = self._kept.get(wanted)
        if kept is None:
            if self.variadic:
                output, inputs = self._used[0]
                kept = (output, (inputs,) * len(wanted))
            elif len(wanted) != len(self.rules):
                raise TypeError(
                    f"{self.name} has {len(self.rules)} rules, one per input, "
                    f"but was called with {len(wanted)} inputs"
                )
            else:
                flags = [used for used, is_in in zip(self._used, wanted, strict=True) if is_in]
                output, *each = (any(column) for column in zip(*flags, strict=True))
                kept = (output, tuple(each))
            self._kept[wanted] = kept
        return kept

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run the op on arrays; on Tensors, run and record it."""
        for x in inputs:
            if isinstance(x, Recorded):
                return x.record(self, *inputs, **params)
        return self.forward(*inputs, **params)

    def rule_for(self, which: int) -> Rule | None:
        """Return the derivative rule of one input."""
        if self.variadic and self.rules[0] is not None:
            return partial(self.rules[0], which=which)
        return self.rules[which]


@dataclass(frozen=True, eq=False)
class Fused:
    """A frequent operation whose derivative was worked out by hand for all inputs at once.

    `forward(*inputs, **params)` returns (y, extras); `backward(g, inputs, extras, needs, **params)`
    returns one gradient per input, None where `needs` is false. `composite` defines the same
    function by other ops: tests compare with it, and it is differentiated when a derivative is
    itself differentiated. `reads_inputs` is false where no derivative depends on the values of
    the inputs.
    """

    name: str
    forward: Callable[..., tuple[Any, tuple[Any, ...]]]
    backward: Callable[..., Sequence[Any]]
    composite: Callable[..., Any]
    reads_inputs: bool = True


_sequence = itertools.count()


class Node:
    """A value's place in the graph: the op that made it, its parents, what the rules need.

    A leaf has no op. `grad` collects the gradient of leaves and of nodes with `keeps_grad`.
    `stamps` (checksums of the inputs) and `line` (the caller) belong to `mutation.py`.
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
        """Free the arrays that the rules needed; a freed node has no parents."""
        self.parents = self.inputs = self.output = None
        self.extras = ()


class _Mode(threading.local):
    recording = True
    guarding = True
    anomaly = False


mode = _Mode()


class Context:
    """A context that switches a mode on or off, in this thread; also a decorator."""

    def __init__(self, name: str, on: bool) -> None:
        self._name, self._on = name, on
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(getattr(mode, self._name))
        setattr(mode, self._name, self._on)

    def __exit__(self, *_: object) -> None:
        setattr(mode, self._name, self._before.pop())

    def __call__(self, function: F) -> F:
        """Return the function, each call of it within a context of its own."""

        @wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with Context(self._name, self._on):
                return function(*args, **kwargs)

        return cast(F, within)


def no_grad() -> Context:
    """Record nothing within this context, in this thread; also a decorator."""
    return Context("recording", False)


def enable_grad() -> Context:
    """Record operations again within this context, in this thread; also a decorator."""
    return Context("recording", True)


def _used_arguments(op: Op, rule: Rule | None) -> tuple[bool, ...]:
    """Return for y and each input whether the rule uses it: no underscore begins its name."""
    count = 1 + (1 if op.variadic else len(op.rules))
    if rule is None:
        return (False,) * count
    kind = inspect.Parameter
    arguments = list(inspect.signature(rule).parameters.values())
    positional = [p for p in arguments if p.kind not in (kind.KEYWORD_ONLY, kind.VAR_KEYWORD)]
    if positional and positional[-1].kind is kind.VAR_POSITIONAL:
        positional += [positional[-1]] * (count + 1 - len(positional))  # the rest, all alike
    if len(positional) < 1 + count:
        inputs = ", ".join("x" if count == 2 else f"x{i}" for i in range(count - 1))
        raise TypeError(
            f"a rule of {op.name} takes {len(positional)} arguments, but is called with the "
            f"upstream gradient, the output and the inputs; write lambda g, y, {inputs}: ..."
        )
    # Positional arguments after these are parameters.
    return tuple(not p.name.startswith("_") for p in positional[1 : 1 + count])
