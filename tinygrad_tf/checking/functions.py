"""The functions under test, each with its gradients as its author computes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from tinygrad_tf.checking.report import literal
from tinygrad_tf.engine.graph import Fused, Op, no_grad
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.engine.transforms import grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array


def _nothing() -> None:
    return None


class Function(Protocol):
    """A function of arrays with gradients; `names` are those of its arguments.

    `adds_shared` says whether an array that is passed as two arguments gets one gradient, the sum
    of both.
    """

    name: str
    names: tuple[str, ...]
    adds_shared: bool

    def value(self, arrays: Sequence[Array]) -> Array:
        """Compute f(*arrays) as an array, without recording."""

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """The gradient of Σ up·f for each array; calls `between` after the forward pass."""


def name_of(f: Any) -> str:
    """The name of a function or an op."""
    return str(getattr(f, "name", None) or getattr(f, "__name__", None) or type(f).__name__)


def arity(f: Any) -> tuple[int, float]:
    """The least and the greatest number of inputs of a function or an op."""
    if isinstance(f, Op) and not f.variadic:
        return len(f.rules), len(f.rules)
    if isinstance(f, np.ufunc):  # its signature is *args, or unknown
        return f.nin, f.nin
    positional, endless = _parameters(f)
    least = sum(p.default is p.empty for p in positional)
    return least or int(bool(positional or endless)), np.inf if endless else len(positional)


def _parameters(f: Any) -> tuple[list[inspect.Parameter], bool]:
    """The parameters that have a position, and whether any number of others may follow."""
    try:
        parameters = inspect.signature(getattr(f, "forward", f)).parameters.values()
    except (TypeError, ValueError):
        return [], True
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return [p for p in parameters if p.kind in kinds], endless


class Call:
    """An op or a function of Tensors with its parameters, named by both: a function of arrays."""

    def __init__(self, op: Any, params: dict[str, Any]) -> None:
        self.op, self.params = op, params
        self.forward = getattr(op, "forward", op)
        listed = ", ".join(f"{key}={literal(value)}" for key, value in params.items())
        self.name = f"{name_of(op)}({listed})" if listed else name_of(op)

    def __call__(self, *inputs: Any) -> Any:
        if isinstance(self.op, Op | Fused):
            return Tensor.record(self.op, *inputs, **self.params)
        return self.op(*inputs, **self.params)


@dataclass(frozen=True)
class Arguments:
    """All arguments of a call; those at `positions` are the arrays that get gradients."""

    values: tuple[Any, ...]
    positions: tuple[int, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(f: Any, inputs: Sequence[Any]) -> tuple[Arguments, list[Array]]:
        """Separate the arrays of real numbers, in float64, from all other inputs."""
        plain = tuple(x.data if isinstance(x, Tensor) else x for x in inputs)
        positions = tuple(i for i, x in enumerate(plain) if _is_real(x))
        if not positions:
            raise InputError(
                "none of the inputs is a real number or an array of real numbers, "
                "so there is no gradient to check",
                "give arrays such as np.array([0.5, 2.0])",
            )
        names = _argument_names(f, len(plain))
        arrays = [np.array(plain[i], np.float64) for i in positions]
        return Arguments(plain, positions, tuple(names[i] for i in positions)), arrays

    def fill(self, arrays: Sequence[Any]) -> list[Any]:
        """The arguments, with these arrays in the place of the original ones."""
        filled = list(self.values)
        for position, array in zip(self.positions, arrays, strict=True):
            filled[position] = array
        return filled


def _is_real(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return bool(x.dtype.kind == "f")
    return isinstance(x, float | np.floating)


def _argument_names(f: Any, count: int) -> list[str]:
    function = getattr(f, "forward", f)
    if isinstance(function, np.ufunc):
        names = ["x"] if function.nin == 1 else [f"x{i}" for i in range(function.nin)]
    else:
        names = [p.name for p in _parameters(f)[0]]
    return (names + [f"x{i}" for i in range(len(names), count)])[:count]


class TensorFunction:
    """A function of Tensors, or an op of the table, differentiated by the engine."""

    adds_shared = True

    def __init__(self, f: Any, arguments: Arguments) -> None:
        self.name = name_of(f)
        self.names = arguments.names
        self.call = partial(Tensor.record, f) if isinstance(f, Op | Fused) else f
        self.fill = arguments.fill

    def value(self, arrays: Sequence[Array]) -> Array:
        """Compute f(*arrays); see `Function`."""
        with no_grad():
            result = self.call(*self.fill([Tensor(x) for x in arrays]))
        if not isinstance(result, Tensor | tuple | list):
            kind = "None" if result is None else f"a value of type {type(result).__name__}"
            raise InputError(
                f"{self.name} did not return a Tensor, but {kind}",
                "compute with Tensors, or give `backward` where it is plain NumPy",
            )
        return _as_array(result)

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """Run forward and backward; see `Function`."""
        leaves = {id(x): Tensor(x, requires_grad=True) for x in arrays}
        xs = [leaves[id(x)] for x in arrays]
        y = self.call(*self.fill(xs))
        between()
        if not isinstance(y, Tensor) or y.node is None:
            return [np.zeros_like(x) for x in arrays]
        before = y.data.copy()
        gradients: list[Any] = grad(y, xs, upstream=up)
        if not np.array_equal(before, y.data, equal_nan=True):
            raise ValueError("the backward pass wrote into the output of f")
        return gradients


class NumpyFunction:
    """A function of NumPy arrays with a backward written by hand: backward(g, *inputs)."""

    adds_shared = False

    def __init__(self, f: Any, backward: Callable[..., Any], arguments: Arguments) -> None:
        self.name, self.names = name_of(f), arguments.names
        self.call, self.backward, self.arguments = f, backward, arguments

    def value(self, arrays: Sequence[Array]) -> Array:
        """Compute f(*arrays); see `Function`."""
        return _as_array(self.call(*self.arguments.fill(arrays)))

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """Run f, then the backward; see `Function`."""
        filled = self.arguments.fill(arrays)
        self.call(*filled)
        between()
        result = self.backward(up, *filled)
        gradients = list(result) if isinstance(result, tuple | list) else [result]
        if len(gradients) == len(filled):
            gradients = [gradients[i] for i in self.arguments.positions]
        if len(gradients) != len(arrays):
            raise ValueError(f"backward gave {len(gradients)} gradients for {len(arrays)} arrays")
        return [np.asarray(g) if isinstance(g, np.generic | float) else g for g in gradients]


class GradientFunction:
    """Σ along·(gradient of Σ up·f), as a function of the inputs of f and, last, of up.

    Its value comes from a backward pass on arrays, its gradients from one that is recorded.
    """

    adds_shared = True

    def __init__(self, first: TensorFunction, along: Sequence[Array]) -> None:
        self.first, self.along = first, along
        self.name, self.names = f"{first.name}, second order", (*first.names, "up")

    def value(self, arrays: Sequence[Array]) -> Array:
        """Compute the sum; see `Function`."""
        gradients = self.first.gradients(arrays[:-1], arrays[-1])
        parts = zip(gradients, self.along, strict=True)
        return np.asarray(sum(np.sum(g * v.astype(g.dtype)) for g, v in parts))

    def gradients(
        self, arrays: Sequence[Array], up: Array, between: Callable[[], Any] = _nothing
    ) -> list[Any]:
        """Differentiate the gradient; see `Function`."""
        *xs, inner = (Tensor(x, requires_grad=True) for x in arrays)
        y = self.first.call(*self.first.fill(xs))
        between()
        if not isinstance(y, Tensor) or y.node is None:
            return [np.zeros_like(x) for x in arrays]
        slopes = grad(y, xs, upstream=inner, create_graph=True)
        total = (inner * 0.0).sum()  # so that every gradient is part of one graph
        for slope, v in zip(slopes, self.along, strict=True):
            total = total + (slope * v.astype(slope.dtype)).sum()
        gradients: list[Any] = grad(total, [*xs, inner], upstream=up)
        return gradients


def _as_array(result: Any) -> Array:
    if isinstance(result, tuple | list):
        raise InputError(
            f"the function returned a {type(result).__name__}, not one array",
            "check its parts one by one, as in gradcheck(lambda x: f(x)[0], x)",
        )
    return np.asarray(result.data if isinstance(result, Tensor) else result)
