"""Functions of floats: InputError where there is no real value, infinity where it is too large."""

import math
from collections.abc import Callable
from numbers import Real

from tinygrad_tf.errors import InputError


def number(x: object) -> float:
    """Convert x to a float; raises TypeError where it is not a real number."""
    if type(x) is float:
        return x
    if isinstance(x, Real):
        try:
            return float(x)
        except OverflowError:
            raise InputError("a whole number is beyond 1.8e308, the largest float") from None
    raise TypeError(f"a Value is made of numbers and Values, not of a {type(x).__name__}")


def exp(x: float) -> float:
    """e**x."""
    return _real(math.exp, x)


def log(x: float) -> float:
    """The natural logarithm; raises InputError unless x > 0."""
    return _real(math.log, x)


def sin(x: float) -> float:
    """The sine; raises InputError at infinity."""
    return _real(math.sin, x)


def cos(x: float) -> float:
    """The cosine; raises InputError at infinity."""
    return _real(math.cos, x)


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), computed with exp of negative numbers only: no overflow."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


def quotient(a: float, b: float) -> float:
    """a / b; raises InputError where b is 0."""
    if b == 0.0:
        raise InputError(f"{a:g} / {b:g} is a division by zero")
    return a / b


def power(x: float, p: float) -> tuple[float, float, float]:
    """x**p and its slopes by x and by p; raises InputError for a negative x unless p is whole.

    0**p is infinite for p < 0, as in IEEE 754; its slope by p is 0 where p >= 0. The slope of 0**0
    by its base is 0. For a negative x the slope by p is nan.
    """
    y = _pow(x, p)
    by_base = p * _pow(x, p - 1.0) if p else 0.0
    if x > 0.0:
        return y, by_base, y * math.log(x) if y else 0.0
    if x < 0.0:
        return y, by_base, math.nan
    return y, by_base, 0.0 if p >= 0.0 else -math.inf


def _real(f: Callable[[float], float], x: float) -> float:
    try:
        return f(x)
    except OverflowError:
        return math.inf
    except ValueError:
        raise InputError(f"{f.__name__}({x:g}) is not a real number") from None


def _pow(x: float, p: float) -> float:
    try:
        return math.pow(x, p)
    except OverflowError:
        return math.copysign(math.inf, x) if p % 2.0 == 1.0 else math.inf
    except ValueError:
        if x == 0.0:
            return math.inf
        raise InputError(f"({x:g}) ** {p:g} is not a real number") from None
