"""What is checked: a function of arrays, and its gradients as its author computes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from tinygrad_tf.engine.graph import Fused, Op, no_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.engine.transforms import grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array


def _nothing() -> None:
    return None


class Subject(Protocol):
    """A function of arrays with gradients.

    `names` are those of its arguments; `same_array_adds` says whether an array that stands for two
    arguments gets one gradient, the sum of both.
    """

    name: str
    names: tuple[str, ...]
    same_array_adds: bool

    def value(self, arrays: Sequence[Array]) -> Array:
        """f(*arrays), computed without recording; a Tensor becomes its array."""

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """The gradient of Σ up·f for each array; `between` is called between forward and back."""


@dataclass(frozen=True)
class Arguments:
    """All arguments of a call, those at `places` being the arrays that gradients flow to."""

    given: tuple[Any, ...]
    places: tuple[int, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(f: Any, inputs: Sequence[Any]) -> tuple[Arguments, list[Array]]:
        """Tell the arrays of real numbers, in float64, from all else, which is passed as it is."""
        plain = tuple(x.data if isinstance(x, Tensor) else x for x in inputs)
        places = tuple(i for i, x in enumerate(plain) if _is_real(x))
        if not places:
            raise InputError(
                "none of the inputs is a real number or an array of real numbers, "
                "so there is no gradient to check",
                "give arrays such as np.array([0.5, 2.0])",
            )
        names = _argument_names(f, len(plain))
        arrays = [np.array(plain[i], np.float64) for i in places]
        return Arguments(plain, places, tuple(names[i] for i in places)), arrays

    def fill(self, values: Sequence[Any]) -> list[Any]:
        """The arguments, with these values in place of the arrays."""
        filled = list(self.given)
        for place, value in zip(self.places, values, strict=True):
            filled[place] = value
        return filled


def _is_real(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return bool(x.dtype.kind == "f")
    return isinstance(x, float | np.floating)


def name_of(f: Any) -> str:
    """What a function or an op is called."""
    return str(getattr(f, "name", None) or getattr(f, "__name__", None) or type(f).__name__)


def _argument_names(f: Any, count: int) -> list[str]:
    function = getattr(f, "forward", f)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in parameters if p.kind in positional]
    if isinstance(function, np.ufunc):  # their signatures say *args, or nothing
        known = ["x"] if function.nin == 1 else [f"x{i}" for i in range(function.nin)]
    return (known + [f"x{i}" for i in range(len(known), count)])[:count]


class TensorFunction:
    """A function of Tensors, or an op of the table; the engine.transformss it."""

    same_array_adds = True

    def __init__(self, f: Any, arguments: Arguments) -> None:
        self.name = name_of(f)
        self.names = arguments.names
        self.call = partial(Tensor.record, f) if isinstance(f, Op | Fused) else f
        self.fill = arguments.fill

    def value(self, arrays: Sequence[Array]) -> Array:
        """See `Subject`."""
        with no_grad():
            result = self.call(*self.fill([Tensor(x) for x in arrays]))
        if not isinstance(result, Tensor | tuple | list):
            kind = "None" if result is None else f"a value of type {type(result).__name__}"
            raise InputError(
                f"{self.name} did not return a Tensor, but {kind}",
                "compute with Tensors, or give --backward (backward=) where it is plain NumPy",
            )
        return _output(result)

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """See `Subject`."""
        leaves = {id(x): Tensor(x, requires_grad=True) for x in arrays}
        xs = [leaves[id(x)] for x in arrays]
        y = self.call(*self.fill(xs))
        between()
        if not isinstance(y, Tensor) or y.node is None:
            return [np.zeros_like(x) for x in arrays]
        before = y.data.copy()
        found: list[Any] = grad(y, xs, upstream=up)
        if not np.array_equal(before, y.data, equal_nan=True):
            raise ValueError("the walk back wrote into the output of f")
        return found


class PlainFunction:
    """A function of NumPy arrays with a backward written by hand: backward(g, *inputs)."""

    same_array_adds = False

    def __init__(self, f: Any, backward: Callable[..., Any], arguments: Arguments) -> None:
        self.name, self.names = name_of(f), arguments.names
        self.call, self.backward, self.arguments = f, backward, arguments

    def value(self, arrays: Sequence[Array]) -> Array:
        """See `Subject`."""
        return _output(self.call(*self.arguments.fill(arrays)))

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """See `Subject`."""
        filled = self.arguments.fill(arrays)
        self.call(*filled)
        between()
        found = self.backward(up, *filled)
        listed = list(found) if isinstance(found, tuple | list) else [found]
        if len(listed) == len(filled):
            listed = [listed[i] for i in self.arguments.places]
        if len(listed) != len(arrays):
            raise ValueError(f"backward gave {len(listed)} gradients for {len(arrays)} arrays")
        return [np.asarray(g) if isinstance(g, np.generic | float) else g for g in listed]


class SecondOrder:
    """Σ along·(gradient of Σ up·f), a function of the inputs of f and, last, of up.

    Its value comes from the walk back on arrays, its gradients from the walk that is recorded.
    """

    same_array_adds = True

    def __init__(self, first: TensorFunction, along: Sequence[Array]) -> None:
        self.first, self.along = first, along
        self.name, self.names = f"{first.name}, second order", (*first.names, "up")

    def value(self, arrays: Sequence[Array]) -> Array:
        """See `Subject`."""
        found = self.first.gradients(arrays[:-1], arrays[-1])
        parts = zip(found, self.along, strict=True)
        return np.asarray(sum(np.sum(g * v.astype(g.dtype)) for g, v in parts))

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """See `Subject`."""
        *xs, inner = (Tensor(x, requires_grad=True) for x in arrays)
        y = self.first.call(*self.first.fill(xs))
        between()
        if not isinstance(y, Tensor) or y.node is None:
            return [np.zeros_like(x) for x in arrays]
        slopes = grad(y, xs, upstream=inner, create_graph=True)
        total = (inner * 0.0).sum()  # so that every gradient is part of one graph
        for slope, v in zip(slopes, self.along, strict=True):
            total = total + (slope * v.astype(slope.dtype)).sum()
        found: list[Any] = grad(total, [*xs, inner], upstream=up)
        return found


def _output(result: Any) -> Array:
    if isinstance(result, tuple | list):
        raise InputError(
            f"the function returned a {type(result).__name__}, not one array",
            "check its parts one by one, as in gradcheck(lambda x: f(x)[0], x)",
        )
    return np.asarray(result.data if isinstance(result, Tensor) else result)
