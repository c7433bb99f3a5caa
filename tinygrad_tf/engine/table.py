"""The table: every op once, and what `ops`, Tensor's methods and NumPy's functions take from it.

`@primitive` makes an op of a function written in NumPy, given one derivative rule for each of its
inputs. `@public` enters a function that is composed of ops, or that prepares the arguments of one.
Either decorator says which NumPy functions the entry answers to, and whether it is also a method or
an operator of Tensor. The last part of this file is how `np.exp(t)` finds its entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from tinygrad_tf.engine.graph import Fused, Op, Rule
from tinygrad_tf.engine.tensor import Tensor

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
Record = TypeVar("Record", bound=Op | Fused)

FUNCTIONS: dict[str, Callable[..., Any]] = {}  # the public functions, by name
RECORDS: dict[str, Op | Fused] = {}  # the ops that a graph is made of, by name
NUMPY: dict[Any, Callable[..., Any]] = {}  # from a NumPy function to the public function


class Primitive(Protocol[P]):
    """A public function that records a single op, which is its attribute `op`."""

    op: Op

    def __call__(self, *inputs: P.args, **params: P.kwargs) -> Tensor: ...


def register(op: Record) -> Record:
    """Add an op to the table, without a public function; raises ValueError for a name in use."""
    if op.name in RECORDS:
        raise ValueError(f"the table already has an op {op.name!r}")
    RECORDS[op.name] = op
    return op


def primitive(
    *rules: Rule | None,
    numpy: Any = (),
    method: bool = False,
    operators: tuple[str, ...] = (),
    domain: str = "all",
) -> Callable[[Callable[P, Any]], Primitive[P]]:
    """Decorate a forward pass, written in NumPy, so that it takes and returns Tensors.

    rules: one for each input, as in `Op`; the arguments after the inputs are parameters.
    domain: the numbers at which the op is differentiable, one of `DOMAINS` in
    `tinygrad_tf.checking.cases`. The others: see `public`.
    """

    def decorate(forward: Callable[P, Any]) -> Primitive[P]:
        op = register(Op(forward.__name__, forward, rules, domain=domain))
        call = signature(forward)
        count = len(rules)
        bare = count if len(call.parameters) == count else -1

        @wraps(forward)
        def function(*inputs: Any, **params: Any) -> Tensor:
            if params or len(inputs) != bare:
                bound = call.bind(*inputs, **params)
                bound.apply_defaults()
                values = list(bound.arguments.items())
                inputs, params = tuple(x for _, x in values[:count]), dict(values[count:])
            return record(op, *inputs, **params)

        entry = cast("Any", function)
        entry.op = op
        entry.__signature__ = call.replace(return_annotation="Tensor")
        return cast("Primitive[P]", public(numpy=numpy, method=method, operators=operators)(entry))

    return decorate


record = Tensor.record


def public(
    op: Op | Fused | None = None,
    *,
    numpy: Any = (),
    method: bool | Callable[..., Any] = False,
    operators: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Decorate a function so that it is one of `ops`.

    op: the op that it records, if it is not in the table yet. numpy: the NumPy function that it
    answers to, or a tuple of them. method: whether it is also a method of Tensor, or the method,
    where this has another signature; the class Tensor declares it for type checkers. operators:
    Tensor's operators, such as ("__add__", "__radd__"); the second gets its operands in reverse.
    """

    def decorate(function: F) -> F:
        name = function.__name__
        if op is not None:
            register(op)
        FUNCTIONS[name] = function
        for answered in numpy if isinstance(numpy, tuple) else (numpy,):
            NUMPY[answered] = function
        if method:
            setattr(Tensor, name, function if method is True else method)
        for operator, operate in zip(operators, (function, _reversed(function)), strict=False):
            setattr(Tensor, operator, operate)
        return function

    return decorate


def _reversed(function: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any) -> Any:
        return function(other, self)

    operate.__doc__ = function.__doc__
    return operate


# --- arguments of public functions ---
def as_tensor(x: Any) -> Tensor:
    """Return a Tensor as it is, and anything else as a Tensor without a gradient."""
    return x if isinstance(x, Tensor) else Tensor(x)


def as_real(x: Any) -> Tensor:
    """Return a Tensor; integers become float64, as in NumPy's own functions."""
    tensor = as_tensor(x)
    return Tensor(tensor.data.astype(np.float64)) if tensor.dtype.kind in "biu" else tensor


def as_array(x: Any) -> Any:
    """Return the array of a Tensor, without its graph, or of anything that NumPy accepts."""
    return x.data if isinstance(x, Tensor) else np.asarray(x)


def as_axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    """Return an axis argument as a tuple of non-negative ints; None means all axes.

    Raises AxisError for an axis that x lacks, ValueError for one that is named twice.
    """
    if axis is None:
        return tuple(range(x.ndim))
    named = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    axes = tuple(int(a) + x.ndim * (a < 0) for a in named)
    for a, original in zip(axes, named, strict=True):
        if not 0 <= a < x.ndim:
            raise np.exceptions.AxisError(int(original), x.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names an axis twice")
    return axes


def as_axis(x: Tensor, axis: int) -> int:
    """Return one axis as a non-negative int."""
    (number,) = as_axes(x, axis)
    return number


# --- NumPy's protocols ---
# Comparisons and tests have no gradient: they run on the arrays.
_PLAIN = {
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.isfinite, np.isnan, np.isinf, np.signbit, np.logical_and, np.logical_or, np.logical_not),
    *(np.bitwise_and, np.bitwise_or, np.invert),
    *(np.all, np.allclose, np.any, np.array_equal, np.isclose, np.nonzero, np.count_nonzero),
    *(np.ndim, np.shape, np.size, np.zeros_like, np.ones_like),
}
# NumPy's names of arguments where ours differ.
_RENAMED = {
    "indices_or_sections": "sections",
    "newshape": "shape",
    "a_min": "min",
    "a_max": "max",
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Answer `np.exp(t)`, `ndarray * t`, `np.add.reduce(t)` and `np.add.accumulate(t)`."""
    if method == "__call__" and not kwargs:
        if ufunc in NUMPY:
            return NUMPY[ufunc](*inputs)
        if ufunc in _PLAIN:
            return _plain(ufunc, inputs, kwargs)
    function = NUMPY.get(getattr(ufunc, method)) if method in ("reduce", "accumulate") else None
    options = {k: v for k, v in kwargs.items() if v is not None or k == "axis"}
    if function is not None and set(options) <= set(_parameters(function)):
        return function(*inputs, **({"axis": 0} | options))
    raise _no_derivative(f"{ufunc.__name__} ({method}) with {sorted(kwargs) or 'these arguments'}")


def _array_function(self: Tensor, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Answer `np.concatenate([t, u])` and NumPy's other functions of arrays."""
    if func in _PLAIN:
        return _plain(func, args, kwargs)
    if func not in NUMPY:
        raise _no_derivative(func.__name__)
    ours, theirs = NUMPY[func], _signature(func)
    if theirs is None or func in (np.where, np.einsum):
        return ours(*args, **kwargs)
    first, *rest = theirs.bind(*args, **kwargs).arguments.items()
    accepted = _parameters(ours)
    options: dict[str, Any] = {}
    for name, value in rest:
        parameter = theirs.parameters[name]
        named = value if parameter.kind is Parameter.VAR_KEYWORD else {name: value}
        for key, part in named.items():
            key = _RENAMED.get(key, key)
            if key in accepted:
                options[key] = part
            elif part is not None and part is not parameter.default:
                raise _no_derivative(f"{func.__name__} with {key}=")
    return ours(first[1], **options)


def _no_derivative(call: str) -> TypeError:
    return TypeError(
        f"np.{call} has no derivative here; use tinygrad_tf.ops, or t.detach().numpy()"
    )


def _plain(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a function on arrays without their graph."""

    def detached(x: Any) -> Any:
        return x.data if isinstance(x, Tensor) else x

    result = func(*map(detached, args), **{k: detached(v) for k, v in kwargs.items()})
    return Tensor(result) if isinstance(result, np.ndarray | np.generic) else result


@cache
def _signature(func: Any) -> Signature | None:
    try:
        return signature(func)
    except ValueError:  # some are written in C
        return None


def _parameters(function: Callable[..., Any]) -> Any:
    call = _signature(function)
    assert call is not None
    return call.parameters


Tensor.__array_ufunc__ = _array_ufunc
Tensor.__array_function__ = _array_function
