"""One trial: a function, the point and the upstream gradient it is checked with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinygrad_tf.checking.report import Entry, GradcheckError, literal
from tinygrad_tf.checking.subjects import Subject, _nothing
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class Trial:
    """What is checked, where, and how; `given` are all arguments, for the line to reproduce."""

    subject: Subject
    arrays: list[Array]
    up: Array
    given: tuple[Any, ...]
    method: str
    eps: float
    atol: float
    rtol: float
    on_kink: str
    seed: int
    order: int = 1

    def value(self, arrays: Sequence[Array] | None = None) -> Array:
        """f at the point of the trial or at another."""
        return self.subject.value(self.arrays if arrays is None else arrays)

    def gradients(
        self,
        arrays: Sequence[Array] | None = None,
        up: Array | None = None,
        between: Callable[[], Any] = _nothing,
        what: str = "",
    ) -> list[Array]:
        """The gradients as the author computes them; what they raise becomes a finding."""
        arrays = self.arrays if arrays is None else arrays
        up = self.up if up is None else up
        try:
            return self.subject.gradients(arrays, up, between)
        except Exception as fault:
            kind = "layout" if what else "raised"
            raise self.error(
                kind, f"{what or 'the gradient'} raised {type(fault).__name__}: {fault}"
            ) from fault

    def error(
        self,
        kind: str,
        finding: str,
        which: int | None = None,
        entries: Sequence[Entry] = (),
        pattern: str = "",
    ) -> GradcheckError:
        """The error that tells a finding about the function, or about one of its arguments."""
        where = self.subject.name
        if which is not None:
            x = self.arrays[which]
            where += f", argument {which} ({self.subject.names[which]}, shape {x.shape}, {x.dtype})"
        return GradcheckError(
            f"{where}: {finding}",
            kind,
            self.subject.name,
            which,
            entries,
            pattern,
            tuple(self.arrays),
            self.up,
            self.reproduce(),
        )

    def reproduce(self) -> str:
        """The call that shows the finding again."""
        name = self.subject.name.split(",")[0]
        arguments = [name if name.isidentifier() else "f", *(literal(x) for x in self.given)]
        # Of the second order, up is the last of the arrays.
        arguments.append(f"up={literal(self.arrays[-1] if self.order == 2 else self.up)}")
        if self.order == 2:
            arguments.append("order=2")
        if self.method != "central":
            arguments.append(f"method={self.method!r}")
        return f"gradcheck({', '.join(arguments)})"

    def at(self, **changes: Any) -> Trial:
        """The same trial with some of it changed."""
        return replace(self, **changes)


def eighths(seed: int, shape: tuple[int, ...]) -> Array:
    """Random signed numbers, never 0, that float32 holds exactly and people read easily."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.integers(1, 17, shape) / 8.0)
