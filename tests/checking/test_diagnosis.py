"""A wrong gradient is diagnosed: the mistake is named."""

from typing import Any

import numpy as np
import pytest

from tests.checking.failures import ROW, X, failure

SQUARE = np.array([[0.5, -1.25], [0.25, 1.5]])
OTHER = np.array([[1.0, 0.5], [-0.75, 2.0]])
GRID = np.array([[0.5, -1.25, 2.0], [0.25, 1.5, -0.75], [1.0, -0.5, 0.125]])


@pytest.mark.parametrize(
    ("f", "backward", "inputs", "pattern"),
    [
        (np.sin, lambda g, x: -g * np.cos(x), (X,), "sign flipped"),
        (np.square, lambda g, x: g * x, (X,), "analytic = 0.5 x numeric -> a factor is dropped"),
        (
            lambda x: np.sum(x, axis=1),
            lambda g, x: np.repeat(g[:, None], 3, 1) / 3,
            (X,),
            "0.333333 x numeric -> 3 is the length",
        ),
        (np.matmul, lambda g, x, y: (g @ y.T, g.T @ x), (SQUARE, OTHER), "transposed"),
        (np.matmul, lambda g, x, y: (g @ y.T, g.T @ x), (X, X.T[:, :1].copy()), "transposed"),
        (np.multiply, lambda g, x, y: (g * y, g * x), (X, ROW), "summed over axis 0 it is right"),
        (np.multiply, lambda g, x, y: (g * x, g * y), (X, -2 * X[::-1]), "are exchanged"),
        (np.multiply, lambda g, x, y: (g * 0, g * x), (X, 2 * X), "the path to this argument"),
        (np.abs, lambda g, x: g * (x > 0), (X,), "the others agree -> a missed path"),
        (lambda x: np.maximum(x, 0), lambda g, x: g * 1.0, (X,), "a mask is missing"),
        (lambda x: x[::-1] * 1.0, lambda g, x: g * 1.0, (X,), "reversed along axis 0"),
        (lambda x: np.roll(x, 1), lambda g, x: g * 1.0, (GRID[0],), "shifted by one along axis 0"),
        (np.exp, lambda g, x: g * np.exp(x.astype(np.float32)), (X,), "float32 rounding"),
        (np.exp, lambda g, x: g * 0 + np.exp(x), (X,), "g is not multiplied in"),
        (np.exp, lambda g, x: g * g * np.exp(x), (X,), "|g| or g²"),
        (lambda x: GRID @ x, lambda g, x: GRID @ g, (ROW,), "the Jacobian is transposed"),
        (np.log, lambda g, x: g * np.log(-x), (abs(X),), "nan or infinite"),
        (
            np.exp,
            lambda g, x: g * np.exp(x) + np.array([0.0, 0.0, 0.3]),
            (GRID,),
            "only index 2 of axis 1 differs",
        ),
    ],
)
def test_the_mistake_is_named(f: Any, backward: Any, inputs: Any, pattern: str) -> None:
    assert pattern in failure(f, *inputs, backward=backward).pattern
