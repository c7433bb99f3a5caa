"""Record a forward pass: layers name their intermediate values, and `record` keeps them.

The names are TransformerLens's (`blocks.0.attn.hook_pattern`, `hook_resid_pre`, ...). While
nothing is recorded, this costs almost nothing; each thread records for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tinygrad_tf.engine.tensor import Tensor

Patch = Callable[[Tensor], Tensor]


class _Recorder(threading.local):
    values: dict[str, Tensor] | None = None
    patches: Mapping[str, Patch] = {}  # replaced as a whole, never written to


_recorder = _Recorder()


def is_recording() -> bool:
    """Tell whether this thread records, so that layers must compute all intermediate values."""
    return _recorder.values is not None


def tap(prefix: str, name: str, value: Tensor) -> Tensor:
    """Name an intermediate value; returns it, or the result of its patch."""
    values = _recorder.values
    if values is None:
        return value
    full = f"{prefix}.{name}" if prefix else name
    if full in _recorder.patches:
        value = _recorder.patches[full](value)
    values[full] = value
    return value


@contextmanager
def record(patches: Mapping[str, Patch] | None = None) -> Iterator[dict[str, Tensor]]:
    """Record every named value of the forward passes within, in the order of computation.

    `patches` maps names to functions that replace a value before it is used further. Raises
    KeyError at the end for a patch whose name no layer used.
    """
    before = _recorder.values, _recorder.patches
    values: dict[str, Tensor] = {}
    _recorder.values, _recorder.patches = values, dict(patches or {})
    try:
        yield values
    finally:
        _recorder.values, _recorder.patches = before
    unused = set(patches or ()) - set(values)
    if unused:
        raise KeyError(f"no value is named {sorted(unused)}; there are {list(values)}")
