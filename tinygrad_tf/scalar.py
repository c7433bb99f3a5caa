"""Value: a number that remembers how it was computed. Read this file first.

    w, x = Value(2.0), Value(-1.0)
    y = (w * x + 0.5).tanh()
    y.backward()
    w.grad, x.grad            # how fast y changes with w, and with x

Every operation computes its result and notes, for each Value it was given, how fast the result
changes with it: the local slope, a plain number. `backward` multiplies the slopes along every
path from a result down to what it was made of, and adds up the paths. That is the chain rule,
and all of reverse-mode differentiation; the rest of the library does it with arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import count
from operator import attrgetter

from tinygrad_tf import scalar_math
from tinygrad_tf.scalar_math import number

_clock = count().__next__


class Value:
    """A float, `data`, with its place in the graph; `grad` is what `backward` calls add up to.

    `op` is what made it: "" for a leaf, "*", or with a constant as written ("*", 3.0), (2.0, "-").
    `edges` are the Values it was made of, each with its local slope. Operations raise InputError
    where the result is not a real number, TypeError for operands that are neither.
    """

    __slots__ = ("born", "data", "edges", "grad", "op")
    __array_ufunc__ = None  # what NumPy has on the left comes to us: a scalar goes, an array not

    def __init__(self, data: float, op: Op = "", edges: Edges = ()) -> None:
        self.data = data if edges else number(data)
        self.grad = 0.0
        self.op, self.edges = op, edges
        self.born = _clock()

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"

    def backward(self) -> None:
        """Add to the `grad` of every Value that this one was made of how fast this changes with it.

        It may be called again, on this or another result: the gradients add up.
        """
        order, seen = [self], {self}
        for value in order:  # it grows as we go: recursion would end at a depth of 1000
            for parent, _ in value.edges:
                if parent.edges and parent not in seen:
                    seen.add(parent)
                    order.append(parent)
        # Why the order matters: h = 2 * x, k = 3 * h, y = h + k, so y = 8 * x.
        # y tells h and k "1". If h passed that on at once, x would hear 2; then k tells h "3",
        # but h has spoken, and x stays at 2. A Value must not speak before all who used it
        # have. They were made after it, so: the youngest first, and x hears 2 * (1 + 3).
        order.sort(key=attrgetter("born"), reverse=True)
        earlier = [(value, value.grad) for value in order if value.grad]
        for value, _ in earlier:
            value.grad = 0.0  # what an earlier call passed on must not be passed on twice
        self.grad = 1.0
        for value in order:
            gradient = value.grad
            for parent, slope in value.edges:
                parent.grad += slope * gradient
        for value, gradient in earlier:
            value.grad += gradient

    # + and * are most of any network: written out, they take half the time.
    def __add__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return Value(self.data + other.data, "+", ((self, 1.0), (other, 1.0)))
        c = number(other)
        return Value(self.data + c, ("+", c), ((self, 1.0),))

    def __mul__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return Value(self.data * other.data, "*", ((self, other.data), (other, self.data)))
        c = number(other)
        return Value(self.data * c, ("*", c), ((self, c),))

    def __radd__(self, other: float) -> Value:
        return _made(number(other) + self.data, other, 1.0, "+", self, 1.0)

    def __rmul__(self, other: float) -> Value:
        c = number(other)
        return Value(c * self.data, (c, "*"), ((self, c),))

    def __sub__(self, other: Value | float) -> Value:
        return _made(self.data - _data(other), self, 1.0, "-", other, -1.0)

    def __rsub__(self, other: float) -> Value:
        return _made(number(other) - self.data, other, 1.0, "-", self, -1.0)

    def __truediv__(self, other: Value | float) -> Value:
        return _ratio(self, other)

    def __rtruediv__(self, other: float) -> Value:
        return _ratio(other, self)

    def __pow__(self, other: Value | float) -> Value:
        return _power(self, other)

    def __rpow__(self, other: float) -> Value:
        return _power(other, self)

    def __neg__(self) -> Value:
        return Value(-self.data, "-", ((self, -1.0),))

    def exp(self) -> Value:
        """e to this power."""
        y = scalar_math.exp(self.data)
        return Value(y, "exp", ((self, y),))

    def log(self) -> Value:
        """The natural logarithm."""
        return Value(scalar_math.log(self.data), "log", ((self, 1.0 / self.data),))

    def sin(self) -> Value:
        """The sine of an angle in radians."""
        return Value(scalar_math.sin(self.data), "sin", ((self, scalar_math.cos(self.data)),))

    def cos(self) -> Value:
        """The cosine of an angle in radians."""
        return Value(scalar_math.cos(self.data), "cos", ((self, -scalar_math.sin(self.data)),))

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        y = math.tanh(self.data)
        return Value(y, "tanh", ((self, 1.0 - y * y),))

    def sigmoid(self) -> Value:
        """1 / (1 + exp(-self))."""
        y = scalar_math.sigmoid(self.data)
        return Value(y, "sigmoid", ((self, y * (1.0 - y)),))

    def relu(self) -> Value:
        """This where it is positive, else 0; the slope at 0 is 0."""
        x = self.data
        return Value(0.0 if x < 0.0 else x, "relu", ((self, 1.0 if x > 0.0 else 0.0),))

    def max(self, other: Value | float) -> Value:
        """The larger of two; at a tie each has slope 1/2."""
        a, b = self.data, _data(other)
        larger, tie = a if a > b or a != a else b, 0.5 * (a == b)
        return _made(larger, self, (a > b) + tie, "max", other, (b > a) + tie)


def dot(a: Iterable[Value | float], b: Iterable[Value | float], start: Value | float = 0) -> Value:
    """start + a[0] * b[0] + a[1] * b[1] + ... as one Value, several times as fast as `sum`.

    Raises ValueError where one is longer than the other.
    """
    edges = [(start, 1.0)] if isinstance(start, Value) else []
    total = _data(start)
    for x, y in zip(a, b, strict=True):
        p = x.data if isinstance(x, Value) else number(x)
        q = y.data if isinstance(y, Value) else number(y)
        total += p * q
        if isinstance(x, Value):
            edges.append((x, q))
        if isinstance(y, Value):
            edges.append((y, p))
    return Value(total, "dot", tuple(edges))


Op = str | tuple[str, float] | tuple[float, str]
Edges = tuple[tuple[Value, float], ...]


def _data(x: Value | float) -> float:
    return x.data if isinstance(x, Value) else number(x)


def _made(y: float, a: Value | float, by_a: float, op: str, b: Value | float, by_b: float) -> Value:
    """The result y of two operands, of which one may be a plain number, and its local slopes."""
    if not isinstance(b, Value):
        assert isinstance(a, Value)
        return Value(y, (op, number(b)), ((a, by_a),))
    if not isinstance(a, Value):
        return Value(y, (number(a), op), ((b, by_b),))
    return Value(y, op, ((a, by_a), (b, by_b)))


def _ratio(a: Value | float, b: Value | float) -> Value:
    divisor = _data(b)
    y = scalar_math.quotient(_data(a), divisor)
    return _made(y, a, 1.0 / divisor, "/", b, -y / divisor)


def _power(a: Value | float, b: Value | float) -> Value:
    y, by_base, by_exponent = scalar_math.power(_data(a), _data(b))
    return _made(y, a, by_base, "**", b, by_exponent)
