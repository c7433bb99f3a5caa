"""Checks on the graph: arrays changed after they were recorded, and the first NaN or infinity.

A derivative rule reads its inputs again in the backward pass. If one was changed since, the
gradient would be wrong without an error. So a node keeps a checksum of every array that other code
may write to (leaves and constants) and compares it before the rule runs; results of recorded
operations are read-only from the start.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Context, Fused, Node
from tinygrad_tf.types import Array


class AnomalyError(FloatingPointError):
    """A NaN or an infinity appeared; the message names the operation, its inputs and the line."""


class MutationError(RuntimeError):
    """An array was changed in place between being recorded and being needed for a gradient."""


def mutation_checks_off() -> Context:
    """Compute no checksums of recorded arrays within this context; also a decorator.

    For loops in this thread that change no array between forward and backward: it saves one pass
    over the arrays in each direction.
    """
    return Context("guarding", False)


def detect_anomaly() -> Context:
    """Raise AnomalyError at the first NaN or infinity within this context; also a decorator.

    The error names the operation, the shapes of its inputs and the line that called it, in the
    forward and in the backward pass of this thread. It is several times slower: for debugging.
    """
    return Context("anomaly", True)


# --- changed arrays ---
class ReadOnlyArray(np.ndarray):
    """The type of `.data` of a recorded result: it refuses to be written to, with a remedy.

    Arrays that are computed from it are plain.
    """

    def _require_writeable(self) -> None:
        if self.flags.writeable:  # such as a copy
            return
        raise MutationError(
            f"the result of a recorded operation, an array of shape {self.shape}, is not changed "
            f"in place, since a gradient may need it; write y = y + change for a new Tensor, or "
            f"change a copy (t.data.copy())"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self._require_writeable()
        super().__setitem__(index, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for target in kwargs.get("out", ()):
            if isinstance(target, ReadOnlyArray):
                target._require_writeable()
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()

    def sort(self, *args: Any, **kwargs: Any) -> None:
        """Sort in place, where this is a copy; see `ndarray.sort`."""
        self._require_writeable()
        super().sort(*args, **kwargs)

    def fill(self, *args: Any, **kwargs: Any) -> None:
        """Fill in place, where this is a copy; see `ndarray.fill`."""
        self._require_writeable()
        super().fill(*args, **kwargs)


def _plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, ReadOnlyArray) else x


def protect(node: Node, result: Array, inputs: Sequence[Any]) -> None:
    """Make the result of an operation read-only, and keep checksums of arrays others may write."""
    for x in inputs:
        if x is result:
            break
    else:
        result.setflags(write=False)
    held = _held(node)
    for x in held:
        if _is_exposed(x):
            node.stamps = [_stamp(y) for y in held]
            return


def require_unchanged(node: Node) -> None:
    """Raise MutationError where an array has changed since it was recorded."""
    assert node.stamps is not None and node.op is not None
    for x, stamp in zip(_held(node), node.stamps, strict=True):
        if _stamp(x) != stamp:
            raise MutationError(
                f"{_name(node, x)} of {node.op.name}, an array of shape {x.shape}, was changed in "
                f"place after it was recorded{_at(node)}, so the gradient could be wrong; {_REMEDY}"
            )


_REMEDY = (
    "write x = x + change for a new Tensor, change a copy (t.data.copy()), or call backward() first"
)


def _held(node: Node) -> list[Array]:
    """Return the arrays that the rules of a node will read."""
    held: list[Array] = []
    assert node.inputs is not None
    if not isinstance(node.op, Fused) or node.op.reads_inputs:
        for x in node.inputs:
            if type(x) is np.ndarray:
                held.append(x)
    for value in node.params.values():
        if type(value) is np.ndarray:
            held.append(value)
        elif type(value) is tuple:
            for part in value:
                if type(part) is np.ndarray:
                    held.append(part)
    return held


def _name(node: Node, array: Array) -> str:
    """Name an array of a node: an input, a parameter or an index."""
    for which, x in enumerate(node.inputs or ()):
        if x is array:
            return f"input {which}"
    return next(
        (name for name, value in node.params.items() if value is array or type(value) is tuple),
        "an index",
    )


def _is_exposed(x: Array) -> bool:
    """Say whether this memory can be written to: through the array, or through its base."""
    if x.flags.writeable:
        return True
    base = x.base
    return base is not None and (type(base) is not np.ndarray or base.flags.writeable)


def _stamp(x: Array) -> int:
    """Return a checksum of the numbers."""
    return zlib.crc32(x.data if x.flags.c_contiguous else x.tobytes())


# --- NaN and infinity ---
def check_forward(name: str, arrays: Sequence[Any], result: Array) -> None:
    """Raise AnomalyError if the result is the first that is not finite."""
    if result.dtype.kind not in "fc" or np.isfinite(result).all():
        return
    fault = _fault(result)
    if fault == "infinity" and any(_fault(x) for x in arrays):
        return  # such as the -inf of a mask, which was meant
    causes = "".join(
        f"; its input {which} already holds {_fault(x)}"
        for which, x in enumerate(arrays)
        if _fault(x)
    )
    raise AnomalyError(
        f"{name} made {fault} ({_count(result)}) from inputs of shape {_shapes(arrays)} "
        f"at {caller()}{causes}"
    )


def check_backward(node: Node, parent: Node, share: Any, upstream: Any) -> None:
    """Raise AnomalyError if the gradient of an input is the first that is not finite."""
    share, upstream = (x if isinstance(x, np.ndarray) else x.data for x in (share, upstream))
    fault = _fault(share)
    if fault is None or _fault(upstream):
        return
    assert node.op is not None and node.parents is not None
    shapes = ", ".join("constant" if p is None else str(p.shape) for p in node.parents)
    raise AnomalyError(
        f"the gradient of {node.op.name} for its input {node.parents.index(parent)} has {fault} "
        f"({_count(share)}); its inputs have shape {shapes}{_at(node)}"
    )


def caller() -> str:
    """Return the file and line, outside the engine, that called the operation being recorded."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module.startswith("tinygrad_tf.engine") or module == "contextlib"


def _at(node: Node) -> str:
    return f" (recorded at {node.line})" if node.line else ""


def _fault(x: Any) -> str | None:
    if not isinstance(x, np.ndarray | float) or np.isfinite(x).all():
        return None
    return "NaN" if np.isnan(x).any() else "infinity"


def _count(x: Array) -> str:
    return f"{np.count_nonzero(~np.isfinite(x))} of {x.size} entries"


def _shapes(arrays: Sequence[Any]) -> str:
    return ", ".join(str(np.shape(x)) for x in arrays if x is not None)
