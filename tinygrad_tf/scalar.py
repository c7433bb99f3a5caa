"""Value: a number that remembers how it was computed. Read this file first.

    w, x = Value(2.0), Value(-1.0)
    y = (w * x + 0.5).tanh()
    y.backward()
    w.grad, x.grad            # how fast y changes with w, and with x

Every operation computes its result and stores, for each Value among its operands, how fast the
result changes with it: the local slope, a plain number. `backward` multiplies the slopes along
every path from a result down to a leaf and adds up the paths. That is the chain rule, and all of
reverse-mode differentiation; the rest of the library does the same with arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import count
from operator import attrgetter

from tinygrad_tf import scalar_math
from tinygrad_tf.scalar_math import number

_next_sequence = count().__next__


class Value:
    """A number in a graph: its value `data`, and `grad`, to which every `backward` call adds.

    `op` names the operation that made it: "" for a leaf, "*", or with a constant operand as it was
    written ("*", 3.0), (2.0, "-"). `edges` holds the operands, each with its local slope.
    `sequence` numbers the Values in the order of their creation. Operations raise InputError where
    the result is not a real number, TypeError for an operand that is no number and no Value.
    """

    __slots__ = ("data", "edges", "grad", "op", "sequence")
    # NumPy then leaves an operation with a Value on the right to Value: a scalar works, an array
    # is refused.
    __array_ufunc__ = None

    def __init__(self, data: float, op: Op = "", edges: Edges = ()) -> None:
        self.data = data if edges else number(data)
        self.grad = 0.0
        self.op, self.edges = op, edges
        self.sequence = _next_sequence()

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"

    def backward(self) -> None:
        """Add the derivative of this Value to the `grad` of every Value that it was computed from.

        It may be called again, on this or another result: the gradients add up.
        """
        order, reached = [self], {self}
        for value in order:  # the list grows in the loop: recursion would end at a depth of 1000
            for operand, _ in value.edges:
                if operand.edges and operand not in reached:
                    reached.add(operand)
                    order.append(operand)
        # Why the order matters: take h = 2 * x, k = 3 * h, y = h + k, so that y = 8 * x.
        # y adds 1 to the gradient of h and 1 to that of k. If h now passed its gradient on to x,
        # x would get 2 * 1. Then k adds 3 to the gradient of h; but h is done, and x stays at 2.
        # A Value must wait until every Value that uses it is done (a topological order). Those
        # were created after it, so we go from the newest to the oldest: x gets 2 * (1 + 3) = 8.
        order.sort(key=attrgetter("sequence"), reverse=True)
        earlier = [(value, value.grad) for value in order if value.grad]
        for value, _ in earlier:
            value.grad = 0.0  # the gradient of an earlier call must not be passed on again
        self.grad = 1.0
        for value in order:
            gradient = value.grad
            for operand, slope in value.edges:
                operand.grad += slope * gradient
        for value, gradient in earlier:
            value.grad += gradient

    # A network is mostly + and *: written out here, they take half the time.
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
        c = number(other)
        return Value(c + self.data, (c, "+"), ((self, 1.0),))

    def __rmul__(self, other: float) -> Value:
        c = number(other)
        return Value(c * self.data, (c, "*"), ((self, c),))

    def __sub__(self, other: Value | float) -> Value:
        return _binary(self.data - _data(other), self, 1.0, "-", other, -1.0)

    def __rsub__(self, other: float) -> Value:
        c = number(other)
        return Value(c - self.data, (c, "-"), ((self, -1.0),))

    def __truediv__(self, other: Value | float) -> Value:
        return _quotient(self, other)

    def __rtruediv__(self, other: float) -> Value:
        return _quotient(other, self)

    def __pow__(self, other: Value | float) -> Value:
        return _power(self, other)

    def __rpow__(self, other: float) -> Value:
        return _power(other, self)

    def __neg__(self) -> Value:
        return Value(-self.data, "-", ((self, -1.0),))

    def exp(self) -> Value:
        """e to the power of this Value."""
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
        """The logistic function, 1 / (1 + exp(-x))."""
        y = scalar_math.sigmoid(self.data)
        return Value(y, "sigmoid", ((self, y * (1.0 - y)),))

    def relu(self) -> Value:
        """The rectifier: x where x is positive, else 0; the slope at 0 is 0."""
        x = self.data
        return Value(0.0 if x < 0.0 else x, "relu", ((self, 1.0 if x > 0.0 else 0.0),))

    def max(self, other: Value | float) -> Value:
        """The larger of two numbers; at a tie each has slope 1/2."""
        a, b = self.data, _data(other)
        larger, tie = a if a > b or a != a else b, 0.5 * (a == b)
        return _binary(larger, self, (a > b) + tie, "max", other, (b > a) + tie)


def dot(a: Iterable[Value | float], b: Iterable[Value | float], start: Value | float = 0) -> Value:
    """start + a[0] * b[0] + a[1] * b[1] + ... as one Value, several times as fast as `sum`.

    Raises ValueError where `a` and `b` differ in length.
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


def _binary(
    y: float, a: Value | float, by_a: float, op: str, b: Value | float, by_b: float
) -> Value:
    """The result y of two operands, one of which may be a plain number, with the slopes by each."""
    if not isinstance(b, Value):
        assert isinstance(a, Value)
        return Value(y, (op, number(b)), ((a, by_a),))
    if not isinstance(a, Value):
        return Value(y, (number(a), op), ((b, by_b),))
    return Value(y, op, ((a, by_a), (b, by_b)))


def _quotient(a: Value | float, b: Value | float) -> Value:
    divisor = _data(b)
    y = scalar_math.quotient(_data(a), divisor)
    return _binary(y, a, 1.0 / divisor, "/", b, -y / divisor)


def _power(a: Value | float, b: Value | float) -> Value:
    y, by_base, by_exponent = scalar_math.power(_data(a), _data(b))
    return _binary(y, a, by_base, "**", b, by_exponent)
