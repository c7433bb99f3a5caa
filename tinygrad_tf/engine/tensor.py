"""Tensor: an array and its place in the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from tinygrad_tf.engine import mutation
from tinygrad_tf.engine.backward import start_of, walk_back
from tinygrad_tf.engine.graph import Fused, Node, Op, Recorded, mode
from tinygrad_tf.types import Array


def _on_arrays(function: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Tensor]:
    """Make an operator of Tensor that runs on the arrays and records nothing."""

    def operate(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(self._array, other._array if isinstance(other, Tensor) else other))

    return operate


class Tensor(Recorded):
    """A NumPy array that records how it was computed.

    data: anything that NumPy converts to an array; its dtype is kept, and arithmetic keeps it too:
    float32 stays float32, also beside Python and NumPy scalars. With `requires_grad`, `backward()`
    adds gradients with respect to it to `.grad`. Raises TypeError for integers that are to carry a
    gradient.
    """

    __slots__ = ("__weakref__", "_array", "node")

    def __init__(self, data: Any, requires_grad: bool = False, *, dtype: Any = None) -> None:
        if isinstance(data, Tensor):
            data = data._array
        array = np.asarray(data, dtype)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"a Tensor holds numbers, not {type(data).__name__} ({array.dtype})")
        self._array: Array = array
        self.node: Node | None = None
        if requires_grad:
            self.requires_grad = True

    @staticmethod
    def _of(data: Array, node: Node | None) -> Tensor:
        tensor = Tensor.__new__(Tensor)
        tensor._array, tensor.node = data, node
        return tensor

    @staticmethod
    def record(op: Op | Fused, *inputs: Any, **params: Any) -> Tensor:
        """Run an op and, where an input requires a gradient, add a node to the graph."""
        arrays = [x._array if isinstance(x, Tensor) else _constant(x) for x in inputs]
        if isinstance(op, Fused):
            result, extras = op.forward(*arrays, **params)
        else:
            result, extras = op.forward(*arrays, **params), ()
        if type(result) is not np.ndarray:
            result = np.asarray(result)
        if result.dtype == np.float64 and _is_widened(arrays):
            narrow = [x.astype(np.float32) if _is_wide_number(x) else x for x in inputs]
            return Tensor.record(op, *narrow, **params)
        if mode.anomaly:
            mutation.check_forward(op.name, arrays, result)
        if not mode.recording:
            return Tensor._of(result, None)
        parents = tuple([x.node if isinstance(x, Tensor) else None for x in inputs])
        if not any(parents) or result.dtype.kind not in "fc":
            return Tensor._of(result, None)
        node = Node(result.shape, result.dtype, op, parents)
        node.params = params
        if isinstance(op, Fused):
            node.inputs, node.extras = tuple(arrays), extras
        else:
            keeps_output, keeps = op.kept(tuple([p is not None for p in parents]))
            node.inputs = tuple([x if k else None for x, k in zip(arrays, keeps, strict=True)])
            if keeps_output:
                node.output = result
        if mode.guarding:
            mutation.protect(node, result, arrays)
        if mode.anomaly:
            node.line = mutation.caller()
        return Tensor._of(result, node)

    # Operators and methods come from the table (table.py) and are declared here for type checkers.
    __add__: ClassVar[Binary]
    __radd__: ClassVar[Binary]
    __sub__: ClassVar[Binary]
    __rsub__: ClassVar[Binary]
    __mul__: ClassVar[Binary]
    __rmul__: ClassVar[Binary]
    __truediv__: ClassVar[Binary]
    __rtruediv__: ClassVar[Binary]
    __pow__: ClassVar[Binary]
    __rpow__: ClassVar[Binary]
    __matmul__: ClassVar[Binary]
    __rmatmul__: ClassVar[Binary]
    __neg__: ClassVar[Unary]
    __abs__: ClassVar[Unary]
    __getitem__: ClassVar[Binary]
    __array_ufunc__: ClassVar[Callable[..., Any]]
    __array_function__: ClassVar[Callable[..., Any]]
    exp: ClassVar[Unary]
    log: ClassVar[Unary]
    sqrt: ClassVar[Unary]
    tanh: ClassVar[Unary]
    sigmoid: ClassVar[Unary]
    relu: ClassVar[Unary]
    ravel: ClassVar[Unary]
    sum: Reduction
    mean: Reduction
    prod: Reduction
    min: Reduction
    max: Reduction
    argmin: Reduction
    argmax: Reduction
    var: Variance
    std: Variance
    cumsum: AlongAxis
    cumprod: AlongAxis
    softmax: AlongAxis
    squeeze: AlongAxis
    argsort: Sorting
    clip: Clipping
    take: ByIndex
    repeat: ByIndex
    dot: ClassVar[Binary]
    astype: ClassVar[Binary]
    swapaxes: ClassVar[Callable[[Tensor, int, int], Tensor]]
    reshape: Callable[..., Tensor]
    transpose: Callable[..., Tensor]

    # --- properties of the array ---
    @property
    def data(self) -> Array:
        """The array itself, not a copy; the array of a recorded result is read-only."""
        array = self._array
        if array.flags.writeable or self.node is None or self.node.op is None:
            return array
        return array.view(mutation.ReadOnlyArray)

    @data.setter
    def data(self, array: Array) -> None:
        self._array = array

    @property
    def requires_grad(self) -> bool:
        """Say whether gradients are computed for this Tensor."""
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if not on:
            self.node = None
        elif self.node is None:
            if self._array.dtype.kind not in "fc":
                raise TypeError(
                    f"a Tensor of {self._array.dtype} cannot carry a gradient; "
                    f"write floating-point numbers or give dtype=float"
                )
            self.node = Node(self._array.shape, self._array.dtype)

    @property
    def grad(self) -> Array | None:
        """The gradient collected by `backward()`, of the shape and dtype of `data`, or None."""
        return None if self.node is None else self.node.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if self.node is None:
            if value is None:
                return
            raise AttributeError("this Tensor does not require a gradient")
        if value is not None:
            value = np.asarray(value, self._array.dtype)
            if value.shape != self._array.shape:
                raise ValueError(
                    f"a gradient of shape {value.shape} for a Tensor of shape {self._array.shape}"
                )
        self.node.grad = value

    def retain_grad(self) -> Tensor:
        """Make `backward()` keep the gradient of this intermediate result, too."""
        if self.node is None:
            raise RuntimeError("this Tensor does not require a gradient")
        self.node.keeps_grad = True
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of entries."""
        return self._array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an entry."""
        return self._array.dtype

    def numpy(self) -> Array:
        """Return the array itself, not a copy."""
        return self.data

    def item(self) -> Any:
        """Return the only entry as a Python number."""
        return self._array.item()

    @property
    def T(self) -> Tensor:
        """The transpose: all axes in reverse order."""
        return self.transpose()

    def detach(self) -> Tensor:
        """Return a Tensor of the same array that is not part of the graph."""
        return Tensor._of(self._array, None)

    def __repr__(self) -> str:
        text = np.array2string(self._array, separator=", ", prefix="Tensor(")
        kind = "" if self._array.dtype == np.float64 else f", dtype={self._array.dtype}"
        return f"Tensor({text}{kind}{', requires_grad=True' if self.requires_grad else ''})"

    def __format__(self, spec: str) -> str:
        return format(self._array.item(), spec) if spec and self._array.size == 1 else str(self)

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a Tensor of shape () has no length")
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._array)

    def __float__(self) -> float:
        return float(self._array.item())

    def __int__(self) -> int:
        return int(self._array.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.node is not None and mode.recording:
            raise TypeError(
                "NumPy would lose this Tensor's gradient here; "
                "write t.detach().numpy() if that is what you want"
            )
        return np.array(self._array, dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._array, self.requires_grad))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return type(self)(self._array.copy(), self.requires_grad)

    # --- gradients ---
    def backward(self, upstream: Any = None, retain_graph: bool = False) -> None:
        """Add to every leaf's `.grad` the gradient of this Tensor, times `upstream`.

        upstream: of this Tensor's shape; may be left out where this is a single number. The
        graph is freed as it is walked unless `retain_graph`. Raises ValueError for a missing or
        misshapen upstream, RuntimeError where nothing was recorded or the graph is freed.
        """
        root, start = start_of(self, upstream)
        for node, gradient in walk_back(root, start, retain=retain_graph).items():
            node.grad = gradient if node.grad is None else np.asarray(node.grad + gradient)

    # --- other operators ---
    def __pos__(self) -> Tensor:
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "a Tensor is not assigned to, since its graph would not know; write "
            "t = ops.where(mask, value, t), or change t.data[...] where nothing is recorded yet"
        )

    # Comparisons and logic have no gradient: they run on the arrays.
    __lt__ = _on_arrays(operator.lt)
    __le__ = _on_arrays(operator.le)
    __gt__ = _on_arrays(operator.gt)
    __ge__ = _on_arrays(operator.ge)
    __eq__ = _on_arrays(operator.eq)  # type: ignore[assignment]  # elementwise, as NumPy
    __ne__ = _on_arrays(operator.ne)  # type: ignore[assignment]  # elementwise, as NumPy
    __and__ = __rand__ = _on_arrays(operator.and_)
    __or__ = __ror__ = _on_arrays(operator.or_)
    __xor__ = __rxor__ = _on_arrays(operator.xor)

    # The graph is kept by identity, never by value.
    __hash__ = object.__hash__

    def __invert__(self) -> Tensor:
        return Tensor(~self._array)


# --- signatures of methods ---
Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Tensor, Any], Tensor]


class Reduction(Protocol):
    """A method such as `sum`, over some axes or all."""

    def __call__(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...


class Variance(Protocol):
    """A reduction that divides by the number of entries less `ddof`."""

    def __call__(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor: ...


class AlongAxis(Protocol):
    """A method that needs an axis alone."""

    def __call__(self, axis: Any = ...) -> Tensor: ...


class Sorting(Protocol):
    """A method that orders the entries along an axis."""

    def __call__(self, axis: int | None = -1, descending: bool = False) -> Tensor: ...


class Clipping(Protocol):
    """A method that limits the entries to a range."""

    def __call__(self, min: Any = None, max: Any = None) -> Tensor: ...


class ByIndex(Protocol):
    """A method that takes integers, and the axis along which they count."""

    def __call__(self, indices: Any, axis: int | None = None, /) -> Tensor: ...


# --- dtypes ---
def _is_wide_number(x: Any) -> bool:
    """Say whether x is a float64 array or Tensor of shape ()."""
    return isinstance(x, np.ndarray | Tensor) and x.ndim == 0 and x.dtype == np.float64


def _is_widened(arrays: Sequence[Any]) -> bool:
    """Say whether float64 numbers of shape () alone widened float32 arrays, which is undone."""
    if len(arrays) == 1:
        return False
    kinds = {(x.dtype, x.ndim > 0) for x in arrays if isinstance(x, np.ndarray)}
    wide, narrow = np.dtype(np.float64), np.dtype(np.float32)
    return (narrow, True) in kinds and (wide, False) in kinds and (wide, True) not in kinds


def _constant(x: Any) -> Any:
    """Return an input that is no Tensor; scalars become Python's, which never widen a dtype."""
    if x is None or type(x) in (float, int, bool):
        return x
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim == 0):
        return x.item()
    array = np.asarray(x)
    if array.dtype == object:
        raise TypeError(f"a Tensor cannot be combined with a {type(x).__name__}")
    return array
