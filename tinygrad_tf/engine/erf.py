"""The error function, which NumPy lacks: erf(x) = 2/√π ∫₀ˣ exp(-t²) dt.

In float64 by a Chebyshev series for erfc and Maclaurin's series near zero, to 1e-15. In float32
by erf(x/√2) = tanh(x·p(x²)) with a fitted polynomial p, to 6e-8 before rounding, 2e-7 after:
NumPy's float32 tanh is vectorised, so this costs little more than a tanh. Both sets of
coefficients were fitted to values of high precision for this file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygrad_tf.types import Array

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


def erf_forward(x: Any) -> Any:
    """erf of every entry, in the dtype of x."""
    x = np.asarray(x)
    if x.dtype == np.float32:
        return np.tanh(tanh_argument(x * np.float32(math.sqrt(2.0))))
    return _erf64(x.astype(np.float64)).astype(np.result_type(x.dtype, np.float16))


def tanh_argument(x: Array, out: Array | None = None) -> Array:
    """u(x) with tanh(u) = erf(x/√2), for float32."""
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
