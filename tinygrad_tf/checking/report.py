"""The result of a check: a report where all gradients are right, else an error that explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinygrad_tf.errors import FailedError
from tinygrad_tf.types import Array

SHOWN = 5  # differing entries in the text of an error
PRINTED = 64  # entries of an array at most in the line that reproduces a failure


@dataclass(frozen=True)
class GradientEntry:
    """An entry of a gradient, as computed (analytic) and as measured (numeric)."""

    name: str
    index: tuple[int, ...]
    analytic: float
    numeric: float

    @property
    def absolute(self) -> float:
        """|analytic - numeric|."""
        return abs(self.analytic - self.numeric)

    @property
    def relative(self) -> float:
        """|analytic - numeric| / |numeric|, infinite where numeric is 0."""
        return self.absolute / abs(self.numeric) if self.numeric else np.inf

    def __str__(self) -> str:
        return (
            f"d loss / d {place(self.name, self.index)}   analytic {_digits(self.analytic)}   "
            f"numeric {_digits(self.numeric)}   abs {self.absolute:.1e}  rel {self.relative:.1e}"
        )


@dataclass(frozen=True)
class Report:
    """The result of a check that found nothing wrong.

    entries: the number of entries compared and decided; worst: the largest |analytic - numeric| /
    max(1, |numeric|); worst_second: the same of the gradient's gradient, None where it was not
    checked; ill_conditioned: entries that no step of differences decides, each with its reason;
    kinks: skipped entries where the function is not differentiable; method: the one in use.
    """

    function: str
    method: str = "central"
    entries: int = 0
    worst: float = 0.0
    worst_second: float | None = None
    ill_conditioned: tuple[str, ...] = ()
    kinks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """True where an entry was compared, or where there was nothing to compare."""
        return self.entries > 0 or not (self.ill_conditioned or self.kinks)

    def joined(self, other: Report) -> Report:
        """Both reports as one, under the name of this one."""
        seconds = [w for w in (self.worst_second, other.worst_second) if w is not None]
        return replace(
            self,
            entries=self.entries + other.entries,
            worst=max(self.worst, other.worst),
            worst_second=max(seconds) if seconds else None,
            ill_conditioned=self.ill_conditioned + other.ill_conditioned,
            kinks=self.kinks + other.kinks,
            notes=self.notes + other.notes,
        )

    def __repr__(self) -> str:
        second = "" if self.worst_second is None else f", of second order {self.worst_second:.1e}"
        noun = "entry" if self.entries == 1 else "entries"
        head = (
            f"gradcheck {'passed' if self.decided else 'decided nothing'}: "
            f"{self.function}: {self.entries} {noun}, "
            f"worst error {self.worst:.1e}{second}, method={self.method}"
        )
        lines = [f"  ill-conditioned: {text}" for text in self.ill_conditioned]
        lines += [f"  skipped: {text}" for text in self.kinks]
        return "\n".join([head, *lines, *(f"  note: {text}" for text in self.notes)])


class GradcheckError(FailedError):
    """A gradient is wrong, or a law that every gradient obeys is broken.

    kind: "value" (differs from differences), "kink" (not differentiable here), "raised", "count",
    "shape", "dtype", "mutation", "repeatability", "memory", "state", "zero upstream", "linearity",
    "same array", "layout" or "float32". function: its name; argument: its number among the arrays,
    or None; entries: those that differ, the worst first; pattern: the diagnosis; inputs, up: the
    arrays at which it was found; reproduce: the call that raises the error again.
    """

    def __init__(
        self,
        headline: str,
        kind: str,
        function: str = "",
        argument: int | None = None,
        entries: Sequence[GradientEntry] = (),
        pattern: str = "",
        inputs: Sequence[Any] = (),
        up: Array | None = None,
        reproduce: str = "",
    ) -> None:
        super().__init__(headline, f"reproduce: {reproduce}" if reproduce else "")
        # An exception is copied and pickled by its args.
        self.args = headline, kind, function, argument, entries, pattern, inputs, up, reproduce
        self.kind, self.function, self.argument = kind, function, argument
        self.entries, self.pattern = tuple(entries), pattern
        self.inputs, self.up, self.reproduce = tuple(inputs), up, reproduce

    def __str__(self) -> str:
        lines = [f"gradcheck failed: {self.what}"]
        shown = [f"  {entry}" for entry in self.entries[:SHOWN]]
        if len(self.entries) > SHOWN:
            shown[0] += f"   (worst {SHOWN} shown, sorted by error)"
        lines += shown
        if self.pattern:
            lines.append(f"  pattern: {self.pattern}")
        if self.reproduce:
            lines.append(f"  reproduce: {self.reproduce}")
        return "\n".join(lines)


def place(name: str, index: tuple[int, ...]) -> str:
    """An entry as text: x[0, 1], or x alone for a single number."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _digits(number: float) -> str:
    return f"{number:<#10.7g}".strip()


def literal(x: Any) -> str:
    """The Python expression of an argument; a note in its place where an array is too long."""
    if not isinstance(x, np.ndarray):
        return repr(x)
    if x.size > PRINTED:
        return f"<array of shape {x.shape}, see error.inputs>"
    flat = x.reshape(-1)
    if x.dtype == np.float64 and x.size > 2 and np.array_equal(flat, flat[0] + np.arange(x.size)):
        text = f"np.arange({flat[0]}, {flat[0] + x.size})"
        return text if x.ndim == 1 else f"{text}.reshape{x.shape}"
    if not x.size:
        return f"np.zeros({x.shape}, np.{x.dtype})"
    dtype = "" if x.dtype in (np.float64, np.bool_, np.int64) else f", np.{x.dtype}"
    numbers = str(x.tolist()).replace("inf", "np.inf").replace("nan", "np.nan")
    return f"np.array({numbers}{dtype})"
