"""Textbook twins of the engines: the chain rule by plain recursion, for small graphs only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

# name -> (function, slope), both of plain floats.
UNARY: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "exp": (math.exp, math.exp),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "sigmoid": (
        lambda x: 1 / (1 + math.exp(-x)),
        lambda x: math.exp(-x) / (1 + math.exp(-x)) ** 2,
    ),
    "relu": (lambda x: x if x > 0 else 0.0, lambda x: 1.0 if x > 0 else 0.0),
}
BINARY: dict[
    str,
    tuple[Callable[[float, float], float], Callable[[float, float], tuple[float, float]]],
] = {
    "+": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)),
    "-": (lambda a, b: a - b, lambda a, b: (1.0, -1.0)),
    "*": (lambda a, b: a * b, lambda a, b: (b, a)),
    "/": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    "max": (max, lambda a, b: (0.5, 0.5) if a == b else (float(a > b), float(b > a))),
}


@dataclass(eq=False)
class Twin:
    """A number, its operands and the slope by each; without operands, a leaf or a constant."""

    data: float
    parents: list[tuple[Twin, float]] = field(default_factory=list)
    needs_grad: bool = True
    grad: float = 0.0
    size: float = 0.0  # the gradient with every term positive: what rounding is measured by
    freed: bool = False
    born: int = field(default_factory=count().__next__)

    def slope(self, of: Twin, computed: dict[Twin, tuple[float, float]]) -> tuple[float, float]:
        """d self / d of, and the same with every term positive."""
        if self is of:
            return 1.0, 1.0
        if self not in computed:
            total = size = 0.0
            for parent, local in self.parents:
                down, width = parent.slope(of, computed)
                total += local * down
                size += abs(local) * width
            computed[self] = total, size
        return computed[self]

    def add_slope(self, of: Twin) -> None:
        """Add to the gradient of `of` what one backward of self adds."""
        total, size = self.slope(of, {})
        of.grad += total
        of.size += size

    def agrees(self, gradient: float) -> bool:
        """True where a gradient differs by rounding errors at most."""
        return abs(gradient - self.grad) <= 1e-11 * self.size


def unary(name: str, x: Twin) -> Twin:
    """A function of one number."""
    f, slope = UNARY[name]
    return Twin(f(x.data), [(x, slope(x.data))])


def binary(name: str, a: Twin, b: Twin) -> Twin:
    """A function of two numbers."""
    f, slopes = BINARY[name]
    by_a, by_b = slopes(a.data, b.data)
    return Twin(f(a.data, b.data), [(a, by_a), (b, by_b)])
