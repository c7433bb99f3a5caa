"""Functions of each entry by itself: arithmetic, powers, trigonometry, rounding and choices.

A rule reads (g, y, inputs...): upstream gradient, output, inputs; an underscore marks what it
does not need. Un-broadcasting, casting, shape checks and accumulation happen elsewhere, once.
Rules are plain NumPy, so on Tensors they are themselves recorded and can be differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import FUNCTIONS, primitive, public, record, register
from tinygrad_tf.engine.tensor import Tensor


# --- arithmetic ---
@primitive(
    lambda g, _y, _a, _b: g,
    lambda g, _y, _a, _b: g,
    numpy=np.add,
    operators=("__add__", "__radd__"),
)
def add(a: Any, b: Any) -> Any:
    """Return a + b, entry by entry."""
    return np.add(a, b)


@primitive(
    lambda g, _y, _a, _b: g,
    lambda g, _y, _a, _b: -g,
    numpy=np.subtract,
    operators=("__sub__", "__rsub__"),
)
def subtract(a: Any, b: Any) -> Any:
    """Return a - b, entry by entry."""
    return np.subtract(a, b)


@primitive(
    lambda g, _y, _a, b: g * b,
    lambda g, _y, a, _b: g * a,
    numpy=np.multiply,
    operators=("__mul__", "__rmul__"),
)
def multiply(a: Any, b: Any) -> Any:
    """Return a · b, entry by entry."""
    return np.multiply(a, b)


@primitive(
    lambda g, _y, _a, b: g / b,
    lambda g, y, _a, b: -g * y / b,  # not g·a/b²: the square underflows first
    numpy=np.true_divide,
    operators=("__truediv__", "__rtruediv__"),
)
def divide(a: Any, b: Any) -> Any:
    """Return a / b, entry by entry."""
    return np.true_divide(a, b)


@primitive(lambda g, _y, _x: -g, numpy=np.negative, operators=("__neg__",))
def negative(x: Any) -> Any:
    """Return -x."""
    return np.negative(x)


@public(numpy=np.reciprocal)
def reciprocal(x: Any) -> Tensor:
    """Return 1 / x."""
    return divide(1.0, x)


# --- powers, exponentials and logarithms ---
@primitive(lambda g, _y, x: g * (x * 2.0), numpy=np.square)
def square(x: Any) -> Any:
    """Return x · x."""
    return np.square(x)


@primitive(lambda g, y, _x: g * 0.5 / y, numpy=np.sqrt, method=True, domain="positive")
def sqrt(x: Any) -> Any:
    """Return the square root; its derivative at 0 is infinite."""
    return np.sqrt(x)


# The square root of norms and standard deviations: at 0 its derivative is 0.
root = register(
    Op(
        "root",
        lambda x: np.sqrt(x),
        (lambda g, y, _x: g * 0.5 / np.where(y == 0.0, np.inf, y),),
        domain="positive",
    )
)


def _power_base(g: Any, _y: Any, x: Any, p: Any) -> Any:
    # The derivative of x**0 for x is 0, also at x = 0, where 0**-1 must not be computed.
    base = np.where(np.logical_and(x == 0.0, p == 0.0), 1.0, x)
    return g * (p * base ** (p - 1.0))


def _power_exponent(g: Any, y: Any, x: Any, p: Any) -> Any:
    # The derivative of 0**p for p >= 0 is 0, and the logarithm of 0 must not be computed.
    constant = np.logical_and(x == 0.0, p >= 0.0)
    return np.where(constant, 0.0, g * y * np.log(np.where(constant, 1.0, x)))


_power = Op("power", lambda x, p: np.power(x, p), (_power_base, _power_exponent), domain="positive")


@public(_power, numpy=np.power, operators=("__pow__", "__rpow__"))
def power(a: Any, b: Any) -> Tensor:
    """Return a to the power b; the gradient at 0**b is 0 for b >= 0, as in PyTorch."""
    if isinstance(b, int | float | np.number) and isinstance(a, Tensor):
        # NumPy's float32 power is some twenty times as slow as a product.
        if b == 2 and (a.dtype.kind in "fc" or isinstance(b, int | np.integer)):
            return square(a)
        if b == 0.5:
            return sqrt(a)
    return record(_power, a, b)


@primitive(lambda g, y, _x: g * y, numpy=np.exp, method=True)
def exp(x: Any) -> Any:
    """Return e to the power x."""
    return np.exp(x)


@primitive(lambda g, y, _x: g * (y + 1.0), numpy=np.expm1)
def expm1(x: Any) -> Any:
    """Return e to the power x, minus 1, accurately where x is small."""
    return np.expm1(x)


@primitive(lambda g, _y, x: g / x, numpy=np.log, method=True, domain="positive")
def log(x: Any) -> Any:
    """Return the natural logarithm."""
    return np.log(x)


@primitive(lambda g, _y, x: g / (x + 1.0), numpy=np.log1p, domain="positive")
def log1p(x: Any) -> Any:
    """Return the natural logarithm of 1 + x, accurately where x is small."""
    return np.log1p(x)


# --- trigonometric and hyperbolic functions ---
@primitive(lambda g, _y, x: g * np.cos(x), numpy=np.sin)
def sin(x: Any) -> Any:
    """Return the sine of x, in radians."""
    return np.sin(x)


@primitive(lambda g, _y, x: -g * np.sin(x), numpy=np.cos)
def cos(x: Any) -> Any:
    """Return the cosine of x, in radians."""
    return np.cos(x)


@primitive(lambda g, y, _x: g * (1.0 + y * y), numpy=np.tan, domain="inside one")
def tan(x: Any) -> Any:
    """Return the tangent of x, in radians."""
    return np.tan(x)


@primitive(lambda g, _y, x: g / np.sqrt(1.0 - x * x), numpy=np.arcsin, domain="inside one")
def arcsin(x: Any) -> Any:
    """Return the angle in radians, from -π/2 to π/2, whose sine is x; infinite slope at ±1."""
    return np.arcsin(x)


@primitive(lambda g, _y, x: -g / np.sqrt(1.0 - x * x), numpy=np.arccos, domain="inside one")
def arccos(x: Any) -> Any:
    """Return the angle in radians, from 0 to π, whose cosine is x; infinite slope at ±1."""
    return np.arccos(x)


@primitive(lambda g, _y, x: g / (1.0 + x * x), numpy=np.arctan)
def arctan(x: Any) -> Any:
    """Return the angle in radians, from -π/2 to π/2, whose tangent is x."""
    return np.arctan(x)


@primitive(
    lambda g, _y, a, b: g * b / (a * a + b * b),
    lambda g, _y, a, b: -g * a / (a * a + b * b),
    numpy=np.arctan2,
)
def arctan2(a: Any, b: Any) -> Any:
    """Return the angle in radians, from -π to π, of the point with height a and abscissa b."""
    return np.arctan2(a, b)


@primitive(lambda g, _y, x: g * np.cosh(x), numpy=np.sinh)
def sinh(x: Any) -> Any:
    """Return the hyperbolic sine."""
    return np.sinh(x)


@primitive(lambda g, _y, x: g * np.sinh(x), numpy=np.cosh)
def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine."""
    return np.cosh(x)


@primitive(lambda g, y, _x: g * (1.0 - y * y), numpy=np.tanh, method=True)
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return np.tanh(x)


# --- sign and rounding: the derivative of a step is taken as 0 everywhere ---
@primitive(
    lambda g, _y, x: g * np.sign(x),
    numpy=(np.absolute, np.fabs),
    operators=("__abs__",),
    domain="nonzero",
)
def absolute(x: Any) -> Any:
    """Return |x|; the derivative at 0 is 0."""
    return np.absolute(x)


abs = FUNCTIONS["abs"] = absolute


@primitive(lambda g, _y, _x: g * 0.0, numpy=np.sign, domain="nonzero")
def sign(x: Any) -> Any:
    """Return -1, 0 or 1, the sign of x; the derivative is 0."""
    return np.sign(x)


@primitive(lambda g, _y, _x: g * 0.0, numpy=np.floor, domain="fractions")
def floor(x: Any) -> Any:
    """Return the largest whole number not above x; the derivative is 0."""
    return np.floor(x)


@primitive(lambda g, _y, _x: g * 0.0, numpy=np.ceil, domain="fractions")
def ceil(x: Any) -> Any:
    """Return the smallest whole number not below x; the derivative is 0."""
    return np.ceil(x)


@primitive(lambda g, _y, _x: g * 0.0, numpy=np.trunc, domain="fractions")
def trunc(x: Any) -> Any:
    """Return x without its fraction; the derivative is 0."""
    return np.trunc(x)


@primitive(lambda g, _y, _x, decimals: g * 0.0, numpy=(np.round, np.rint), domain="fractions")
def round(x: Any, decimals: int = 0) -> Any:
    """Return x rounded to so many decimals, halves to the even side; the derivative is 0."""
    return np.round(x, decimals)


# --- choices ---
def masked(g: Any, keep: Any) -> Any:
    """Return g where `keep` is true, else 0, even where g is infinite."""
    # A product is many times as fast as a choice where the mask is irregular.
    if g.size > 1024 and np.all(np.isfinite(g)):
        return g * keep
    return np.where(keep, g, 0.0)


def _winner(g: Any, lost: Any, tied: Any) -> Any:
    # At a tie both sides receive half, and beside a nan both receive all, as in PyTorch.
    share = np.where(tied, g * 0.5, g) if np.any(tied) else g
    return masked(share, np.logical_not(lost))


@primitive(
    lambda g, _y, a, b: _winner(g, a < b, a == b),
    lambda g, _y, a, b: _winner(g, b < a, a == b),
    numpy=np.maximum,
)
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of a and b; at a tie each receives half of the gradient."""
    return np.maximum(a, b)


@primitive(
    lambda g, _y, a, b: _winner(g, a > b, a == b),
    lambda g, _y, a, b: _winner(g, b > a, a == b),
    numpy=np.minimum,
)
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of a and b; at a tie each receives half of the gradient."""
    return np.minimum(a, b)


@primitive(
    None,
    lambda g, _y, c, _a, _b: np.where(c, g, 0.0),
    lambda g, _y, c, _a, _b: np.where(c, 0.0, g),
    numpy=np.where,
)
def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b; the entry not chosen receives gradient 0."""
    return np.where(condition, a, b)


def _between(x: Any, low: Any, high: Any) -> Any:
    above = True if low is None else x >= low
    return above if high is None else (x <= high) & above


_clip = Op(
    "clip",
    lambda x, low, high: np.clip(x, low, high),
    (
        lambda g, _y, x, low, high: masked(g, _between(x, low, high)),
        lambda g, _y, x, low, high: np.where(
            (x < low) & (True if high is None else low < high), g, 0.0
        ),
        lambda g, _y, x, low, high: np.where(
            (x > high) | (False if low is None else high < low), g, 0.0
        ),
    ),
)


@public(_clip, numpy=np.clip, method=True)
def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit x to the range from `min` to `max`; None is no bound.

    The derivative for x is 1 between and on the bounds, 0 beyond them, where the gradient goes to
    the bound. Raises ValueError where both bounds are None.
    """
    if min is None and max is None:
        raise ValueError("clip needs a bound: give min, max or both")
    return record(_clip, x, min, max)


@primitive(lambda g, _y, _x, dtype: g, method=True)
def astype(x: Any, dtype: Any) -> Any:
    """Convert to another dtype; the gradient is converted back."""
    return np.asarray(x).astype(dtype)
