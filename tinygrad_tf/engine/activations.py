"""Activation functions: ReLU and its variants, sigmoid, softplus, the error function and GELU.

NumPy lacks the error function. In float64 it is computed by a Chebyshev series for erfc, and by
Maclaurin's series near zero, to 1e-15. In float32 it is erf(x/√2) = tanh(x·p(x²)) with a fitted
polynomial p, to 6e-8 before rounding, 2e-7 after: NumPy's float32 tanh is vectorised, so this costs
little more than a tanh. Both sets of coefficients were fitted to values of high precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_tf.engine.elementwise import masked, multiply
from tinygrad_tf.engine.graph import Fused, Gradients, Op
from tinygrad_tf.engine.table import as_real, primitive, public, record
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array


@primitive(lambda g, y, _x: masked(g, y > 0), method=True, domain="nonzero")
def relu(x: Any) -> Any:
    """Return max(x, 0); the derivative at 0 is 0."""
    return np.maximum(x, 0)


@primitive(
    lambda g, _y, x, negative_slope: np.where(x > 0, g, g * negative_slope), domain="nonzero"
)
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """Return x where it is positive, else x times the slope, which is the derivative at 0, too."""
    return np.where(x > 0, x, x * negative_slope)


@primitive(lambda g, y, x, alpha: np.where(x > 0, g, g * (y + alpha)), domain="nonzero")
def elu(x: Any, alpha: float = 1.0) -> Any:
    """Return x where it is positive, else α(exp(x) - 1) (Clevert et al. 2015); slope α at 0."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)) * alpha)


@primitive(lambda g, y, _x: g * (y * (1.0 - y)), method=True)
def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), without overflow."""
    # exp never receives a positive argument, so it never overflows.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


@primitive(lambda g, _y, x: g * sigmoid.op(-x))
def logsigmoid(x: Any) -> Any:
    """Return log(1 / (1 + exp(-x))), without overflow."""
    return -np.logaddexp(-x, 0.0)


_softplus = Op("softplus", lambda x: np.logaddexp(x, 0.0), (lambda g, _y, x: g * sigmoid.op(x),))


@public(_softplus)
def softplus(x: Any, beta: float = 1.0) -> Tensor:
    """Return log(1 + exp(βx)) / β, without overflow."""
    if beta == 1.0:
        return record(_softplus, x)
    return record(_softplus, multiply(x, beta)) * (1.0 / beta)


def _silu_rule(g: Any, _y: Any, x: Any) -> Any:
    s = sigmoid.op(x)
    return g * (s * (1.0 + x * (1.0 - s)))


@primitive(_silu_rule)
def silu(x: Any) -> Any:
    """Return x · sigmoid(x) (Hendrycks & Gimpel 2016)."""
    return x * sigmoid.op.forward(x)


# --- the error function ---
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
# p, lowest power first. Beyond |x| = 5.6 it only has to grow: tanh is 1 there.
TANH_FORM = (
    0.7978849414922248,
    0.036333084396749954,
    -3.2594729553565624e-05,
    -5.5306323831201514e-05,
    3.964774585245079e-06,
    -1.3226640382582185e-07,
    1.756281218623134e-09,
)
# erfc(z) = t exp(-z² + Σ cᵢ Tᵢ(2t-1)), t = 2/(2+z), z >= 0
ERFC_SERIES = (
    -0.6513268598908547171,
    0.6419697923564902603,
    0.01947647320418583631,
    -0.009561514786808641642,
    -0.0009465953444820368663,
    0.0003668394978527614519,
    0.00004252332480690777164,
    -0.00002027857811253424315,
    -1.624290004647025513e-6,
    1.303655835580523202e-6,
    1.562644172206614318e-8,
    -8.523809591492654253e-8,
    6.529054439098851496e-9,
    5.059343495551468942e-9,
    -9.913641564930330867e-10,
    -2.273651222931835859e-10,
    9.646791102015526845e-11,
    2.394038083039116122e-12,
    -6.88602752649756254e-12,
    8.944879273090935811e-13,
    3.130921399343045104e-13,
    -1.127082236139062594e-13,
    3.810905263005381276e-16,
    7.106097613021639208e-15,
    -1.523028207107287115e-15,
    -9.457491907162407245e-17,
    1.210236801987318115e-16,
    -2.816676691328969648e-17,
)
NEAR_ZERO = tuple(
    (-1) ** n * 2 / math.sqrt(math.pi) / (math.factorial(n) * (2 * n + 1)) for n in range(13)
)


@primitive(lambda g, _y, x: g * (TWO_OVER_ROOT_PI * np.exp(-(x * x))))
def erf(x: Any) -> Any:
    """Return the error function, erf(x) = 2/√π ∫₀ˣ exp(-t²) dt."""
    x = np.asarray(x)
    if x.dtype == np.float32:
        return np.tanh(_tanh_argument(x * np.float32(math.sqrt(2.0))))
    return _erf64(x.astype(np.float64)).astype(np.result_type(x.dtype, np.float16))


def _tanh_argument(x: Array, out: Array | None = None) -> Array:
    """Return u(x) such that tanh(u) = erf(x/√2), for float32."""
    squares = np.square(np.clip(x, -8.0, 8.0))
    out = np.multiply(squares, TANH_FORM[-1], out=out)
    for coefficient in TANH_FORM[-2:0:-1]:
        out += coefficient
        out *= squares
    out += TANH_FORM[0]
    out *= x
    return out


def _erf64(x: Array) -> Array:
    size = np.abs(x)
    t = 2.0 / (2.0 + size)
    tail = t * np.exp(-size * size + np.polynomial.chebyshev.chebval(2.0 * t - 1.0, ERFC_SERIES))
    small = np.minimum(size, 0.5)
    near = small * np.polynomial.polynomial.polyval(small * small, NEAR_ZERO)
    return np.asarray(np.copysign(np.where(size < 0.5, near, 1.0 - tail), x))


# --- GELU: x Φ(x) (Hendrycks & Gimpel 2016), exact or with their tanh approximation ---
ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
CUBIC = 0.044715


# Entries of a block that a chain of passes should find in the cache, not in memory.
BLOCK = 1 << 15


def _gelu_forward(x: Array, *, approximate: bool) -> tuple[Array, Gradients]:
    """Compute y = x (1 + t) / 2 with t = tanh(u(x)); t is kept for the backward pass."""
    if not approximate and x.dtype != np.float32:
        t = erf.op.forward(x * math.sqrt(0.5))
        return x * (0.5 * (1.0 + t)), (t,)
    flat = np.ascontiguousarray(x).reshape(-1)
    t, y = np.empty_like(flat), np.empty_like(flat)
    for start in range(0, flat.size, BLOCK):
        xs, ts, ys = (a[start : start + BLOCK] for a in (flat, t, y))
        if approximate:
            np.square(xs, out=ts)
            ts *= CUBIC
            ts += 1.0
            ts *= xs
            ts *= ROOT_2_OVER_PI
        else:
            _tanh_argument(xs, out=ts)
        np.tanh(ts, out=ts)
        np.add(ts, 1.0, out=ys)
        ys *= xs
        ys *= 0.5
    return y.reshape(x.shape), (t.reshape(x.shape),)


def _gelu_backward(
    g: Array, inputs: Gradients, extras: Gradients, _needs: Sequence[bool], *, approximate: bool
) -> Gradients:
    """Compute dy/dx = (1 + t)/2 + x t'(x)/2; t' is (1 - t²) u'(x), or twice the normal density."""
    x, g_flat, t = (np.ascontiguousarray(a).reshape(-1) for a in (inputs[0], g, extras[0]))
    dx = np.empty_like(x)
    work = np.empty(min(BLOCK, x.size), x.dtype)
    for start in range(0, x.size, BLOCK):
        xs, gs, ts, ds = (a[start : start + BLOCK] for a in (x, g_flat, t, dx))
        ws = work[: xs.size]
        np.square(xs, out=ds)
        if approximate:
            ds *= 3.0 * CUBIC
            ds += 1.0
            ds *= ROOT_2_OVER_PI
            np.square(ts, out=ws)
            np.subtract(1.0, ws, out=ws)
            ds *= ws
        else:
            ds *= -0.5
            np.exp(ds, out=ds)
            ds *= ROOT_2_OVER_PI
        ds *= xs
        ds += ts
        ds += 1.0
        ds *= 0.5
        ds *= gs
    return (dx.reshape(g.shape),)


def _gelu_composite(x: Any, *, approximate: bool) -> Any:
    if approximate:
        return 0.5 * x * (1.0 + np.tanh(ROOT_2_OVER_PI * (x + CUBIC * (x * x * x))))
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


_gelu = Fused("gelu", _gelu_forward, _gelu_backward, _gelu_composite)


@public(_gelu)
def gelu(x: Any, approximate: str = "none") -> Tensor:
    """Return x Φ(x) (Hendrycks & Gimpel 2016), exact, or their `approximate="tanh"` form.

    Raises ValueError for another value of `approximate`.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {approximate!r}; give 'none' or 'tanh'")
    return record(_gelu, as_real(x), approximate=approximate == "tanh")
