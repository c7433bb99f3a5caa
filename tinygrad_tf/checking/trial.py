"""A trial: a function, a point, an upstream gradient, and how the gradients are checked there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygrad_tf.checking.functions import Function, _nothing
from tinygrad_tf.checking.report import GradcheckError, GradientEntry, literal
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class Trial:
    """A function, the point `arrays`, the upstream gradient `up`, and the options of `gradcheck`.

    `centre` is the value of the function at the point; `arguments` are all arguments, arrays or
    not, for the line that reproduces a failure.
    """

    function: Function
    arrays: list[Array]
    up: Array
    centre: Array
    arguments: tuple[Any, ...]
    method: str
    eps: float
    atol: float
    rtol: float
    on_kink: str
    seed: int
    order: int = 1

    def gradients(
        self,
        arrays: Sequence[Array] | None = None,
        up: Array | None = None,
        between: Callable[[], Any] = _nothing,
        what: str = "",
    ) -> list[Array]:
        """The gradients as the author computes them; an exception becomes a GradcheckError.

        what: names the gradient in that error, where the layout of the inputs is under test.
        """
        arrays = self.arrays if arrays is None else arrays
        up = self.up if up is None else up
        try:
            return self.function.gradients(arrays, up, between)
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
        entries: Sequence[GradientEntry] = (),
        pattern: str = "",
    ) -> GradcheckError:
        """An error about the function, or about its argument `which`."""
        name = self.function.name
        where = name
        if which is not None:
            x = self.arrays[which]
            where += (
                f", argument {which} ({self.function.names[which]}, shape {x.shape}, {x.dtype})"
            )
        headline, inputs = f"{where}: {finding}", tuple(self.arrays)
        return GradcheckError(
            headline, kind, name, which, entries, pattern, inputs, self.up, self.reproduce()
        )

    def reproduce(self) -> str:
        """The call of `gradcheck` that raises the error again."""
        name = self.function.name.split(",")[0]
        arguments = [name if name.isidentifier() else "f", *(literal(x) for x in self.arguments)]
        # In a trial of second order, up is the last of the arrays.
        arguments.append(f"up={literal(self.arrays[-1] if self.order == 2 else self.up)}")
        if self.order == 2:
            arguments.append("order=2")
        if self.method != "central":
            arguments.append(f"method={self.method!r}")
        return f"gradcheck({', '.join(arguments)})"


def eighths(seed: int | Sequence[int], shape: tuple[int, ...]) -> Array:
    """Random signed multiples of 1/8, never 0: exact in float32 and easy to read."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.integers(1, 17, shape) / 8.0)
