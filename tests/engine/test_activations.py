"""The error function and GELU, beside exact values."""

import math
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import ops

inf = math.inf


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-7), (np.float64, 1e-15)])
def test_erf_is_exact(dtype: Any, tolerance: float) -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-30, 1e30, 61)]).astype(dtype)
    ours = ops.erf(x).data
    assert ours.dtype == dtype
    exact = np.array([math.erf(v) for v in x.tolist()])
    assert np.max(np.abs(ours - exact)) <= tolerance
    np.testing.assert_array_equal(ops.erf(np.array([inf, -inf, 0.0], dtype)).data, [1, -1, 0])


def test_gelu_in_float32_is_exact() -> None:
    x = np.linspace(-9, 9, 5001, dtype=np.float32)
    exact = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
    np.testing.assert_allclose(ops.gelu(x).data, exact, atol=6e-7)
