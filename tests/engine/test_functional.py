"""Derivatives of functions: against closed forms, against each other, nested."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf import Tensor, grad, hessian, hvp, jacobian, jvp, ops, value_and_grad, vjp

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
X = RNG.normal(size=4)
V = RNG.normal(size=4)


def quadratic(x: Any) -> Any:
    """xᵀAx / 2: gradient (A + Aᵀ)x / 2, Hessian (A + Aᵀ) / 2."""
    return (x * (A @ x)).sum() * 0.5


def smooth(x: Any) -> Any:
    return ops.tanh(A @ x) * ops.exp(x * 0.3)


def close(ours: Any, expected: Any) -> None:
    np.testing.assert_allclose(ours.data, expected, rtol=1e-9, atol=1e-12)


def test_a_quadratic_has_its_closed_forms() -> None:
    both = 0.5 * (A + A.T)
    y, g = value_and_grad(quadratic)(X)
    close(y, 0.5 * X @ A @ X)
    close(g, both @ X)
    close(hessian(quadratic)(X), both)
    close(hvp(quadratic, [X], [V])[0], both @ V)


def test_the_jacobian_of_a_product_is_its_matrix() -> None:
    close(jacobian(lambda x: A @ x)(X), A)
    by_matrix = jacobian(lambda m, x: m @ x)(A, X)
    close(by_matrix, np.einsum("ij,k->ijk", np.eye(4), X))
    close(jacobian(lambda m, x: m @ x, argnums=1)(A, X), A)


def test_jvp_and_vjp_are_products_with_the_jacobian() -> None:
    j = jacobian(smooth)(X).data
    y, dy = jvp(smooth, [X], [V])
    close(y, smooth(Tensor(X)).data)
    close(dy, j @ V)
    y, pull = vjp(smooth, X)
    close(pull(V)[0], V @ j)
    close(pull(2 * V)[0], 2 * V @ j)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_forward_and_backward_agree(n: int, m: int, seed: int) -> None:
    """uᵀ (J v) = (uᵀ J) v for any function of two arrays."""
    rng = np.random.default_rng(seed)

    def f(x: Any, w: Any) -> Any:
        return ops.softmax(x @ w) * ops.sigmoid(x.sum())

    x, w = rng.normal(size=n), rng.normal(size=(n, m))
    vx, vw, u = rng.normal(size=n), rng.normal(size=(n, m)), rng.normal(size=m)
    _, forward = jvp(f, [x, w], [vx, vw])
    gx, gw = vjp(f, x, w)[1](u)
    left = float(u @ forward.data)
    assert left == pytest.approx((gx.data * vx).sum() + (gw.data * vw).sum(), abs=1e-10)


def test_they_nest_to_any_order() -> None:
    def nth(f: Any, order: int) -> Any:
        for _ in range(order):
            f = (lambda inner: lambda x: value_and_grad(inner)(x)[1])(f)
        return f

    for order, expected in enumerate([32.0, 80.0, 160.0, 240.0, 240.0, 120.0, 0.0]):
        close(nth(lambda x: x**5, order)(Tensor(2.0)), expected)


def test_the_hessian_can_itself_be_differentiated() -> None:
    third = jacobian(lambda x: hessian(lambda z: (z**3).sum())(x))(X)
    expected = np.zeros((4, 4, 4))
    expected[np.arange(4), np.arange(4), np.arange(4)] = 6.0
    close(third, expected)


def test_fused_operations_are_differentiated_twice() -> None:
    targets = np.array([[1, 0, 2]])

    def loss(x: Any) -> Any:
        h = ops.gelu(ops.layer_norm(x))
        h = ops.attention(h, h, h, 2, causal=True)
        return ops.cross_entropy(h, targets)

    x, v, eps = RNG.normal(size=(1, 3, 4)), RNG.normal(size=(1, 3, 4)), 1e-5
    product = hvp(loss, [x], [v])[0]
    slope = value_and_grad(loss)
    numeric = (slope(x + eps * v)[1].data - slope(x - eps * v)[1].data) / (2 * eps)
    np.testing.assert_allclose(product.data, numeric, atol=1e-7)
    np.testing.assert_allclose(
        hessian(loss)(x).data.reshape(12, 12) @ v.reshape(12), product.data.reshape(12), atol=1e-10
    )


def test_what_f_ignores_has_derivative_zero() -> None:
    _, (gx, gy) = value_and_grad(lambda x, y: (x * x).sum(), argnums=(0, 1))(X, V)
    close(gx, 2 * X)
    close(gy, np.zeros(4))
    close(jacobian(lambda x: Tensor(np.ones(3)))(X), np.zeros((3, 4)))


def test_outer_gradients_flow_through() -> None:
    scale = Tensor(3.0, requires_grad=True)
    _, g = value_and_grad(lambda x: (x * x).sum() * scale)(X)
    close(grad(g.sum(), scale, create_graph=True), 2 * X.sum())


def test_misuse_is_named() -> None:
    with pytest.raises(ValueError, match="one number"):
        value_and_grad(smooth)(X)
    with pytest.raises(ValueError, match="2 inputs, but 1 tangents"):
        jvp(lambda x, y: x * y, [X, X], [V])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        vjp(smooth, X)[1](np.ones(3))
    with pytest.raises(TypeError, match=r"integers|int64"):
        value_and_grad(lambda x: x.sum())(np.arange(3))
