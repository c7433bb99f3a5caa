"""The functions of `ops` that read well after a dot: t.sum(), t.reshape(2, 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinygrad_tf import engine
from tinygrad_tf.engine.graph import Recorded

if TYPE_CHECKING:
    from tinygrad_tf.engine.tensor import Tensor


class Methods(Recorded):
    """What Tensor offers as methods; each is the function of the same name."""

    __slots__ = ()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """See `ops.sum`."""
        return engine.ops.sum(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """See `ops.mean`."""
        return engine.ops.mean(self, axis, keepdims)

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """See `ops.var`."""
        return engine.ops.var(self, axis, ddof, keepdims)

    def std(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """See `ops.std`."""
        return engine.ops.std(self, axis, ddof, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """See `ops.prod`."""
        return engine.ops.prod(self, axis, keepdims)

    def cumsum(self, axis: int | None = None) -> Tensor:
        """See `ops.cumsum`."""
        return engine.ops.cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> Tensor:
        """See `ops.cumprod`."""
        return engine.ops.cumprod(self, axis)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """See `ops.min`."""
        return engine.ops.min(self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """See `ops.max`."""
        return engine.ops.max(self, axis, keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """See `ops.argmax`."""
        return engine.ops.argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """See `ops.argmin`."""
        return engine.ops.argmin(self, axis, keepdims)

    def argsort(self, axis: int = -1) -> Tensor:
        """See `ops.argsort`."""
        return engine.ops.argsort(self, axis)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """See `ops.clip`."""
        return engine.ops.clip(self, min, max)

    def dot(self, other: Any) -> Tensor:
        """See `ops.dot`."""
        return engine.ops.dot(self, other)

    def take(self, indices: Any, axis: int | None = None) -> Tensor:
        """See `ops.take`."""
        return engine.ops.take(self, indices, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """See `ops.repeat`."""
        return engine.ops.repeat(self, repeats, axis)

    def ravel(self) -> Tensor:
        """See `ops.ravel`."""
        return engine.ops.ravel(self)

    def reshape(self, *shape: Any) -> Tensor:
        """See `ops.reshape`; the shape may be given as a tuple or one by one."""
        return engine.ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        """See `ops.transpose`; the axes may be given as a tuple or one by one."""
        return engine.ops.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
        return engine.ops.transpose(self)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """See `ops.swapaxes`."""
        return engine.ops.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Tensor:
        """See `ops.squeeze`."""
        return engine.ops.squeeze(self, axis)

    def astype(self, dtype: Any) -> Tensor:
        """See `ops.astype`."""
        return engine.ops.astype(self, dtype)

    def exp(self) -> Tensor:
        """See `ops.exp`."""
        return engine.ops.exp(self)

    def log(self) -> Tensor:
        """See `ops.log`."""
        return engine.ops.log(self)

    def sqrt(self) -> Tensor:
        """See `ops.sqrt`."""
        return engine.ops.sqrt(self)

    def tanh(self) -> Tensor:
        """See `ops.tanh`."""
        return engine.ops.tanh(self)

    def sigmoid(self) -> Tensor:
        """See `ops.sigmoid`."""
        return engine.ops.sigmoid(self)

    def relu(self) -> Tensor:
        """See `ops.relu`."""
        return engine.ops.relu(self)

    def softmax(self, axis: int = -1) -> Tensor:
        """See `ops.softmax`."""
        return engine.ops.softmax(self, axis)
