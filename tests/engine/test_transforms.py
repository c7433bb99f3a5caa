"""Derivatives of functions: against closed forms, against each other, nested."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf import (
    Tensor,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    no_grad,
    ops,
    value_and_grad,
    vjp,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.nn.module import Parameter

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


# --- trees, and the parameters of a model ---------------------------------------------------------
def by_parts(p: Any) -> Any:
    return ops.tanh(p["w"] @ p["both"][0]).sum() * p["both"][1]


TREE = {"w": A, "both": [X, np.array(0.7)]}
TREE_V = {"both": [V, np.array(-0.2)], "w": A.T.copy()}


def test_gradients_are_built_as_the_arguments() -> None:
    y, g = value_and_grad(by_parts)(TREE)
    slope = 0.7 * (1 - np.tanh(A @ X) ** 2)
    close(y, 0.7 * np.tanh(A @ X).sum())
    close(g["w"], np.outer(slope, X))
    close(g["both"][0], A.T @ slope)
    close(g["both"][1], np.tanh(A @ X).sum())


def test_products_of_trees_agree_with_those_of_one_flat_array() -> None:
    def flat(z: Any) -> Any:
        return by_parts({"w": z[:16].reshape(4, 4), "both": [z[16:20], z[20]]})

    def joined(tree: Any) -> Any:
        return np.concatenate([np.ravel(getattr(x, "data", x)) for x in tree])

    z = joined([TREE["w"], *TREE["both"]])
    v = joined([TREE_V["w"], *TREE_V["both"]])
    expected = hvp(flat, [z], [v])[0].data
    product = hvp(by_parts, [TREE], [TREE_V])[0]
    close(Tensor(joined([product["w"], *product["both"]])), expected)
    rows = hessian(by_parts)(TREE)
    along = sum(
        (rows["both"][0][part].data.reshape(4, -1) @ TREE_V[part].ravel() for part in ["w"]),
        rows["both"][0]["both"][0].data @ V + rows["both"][0]["both"][1].data * -0.2,
    )
    close(product["both"][0], along)
    close(jvp(by_parts, [TREE], [TREE_V])[1], jvp(flat, [z], [v])[1].data)


def test_results_may_be_trees_too() -> None:
    def pair(x: Any) -> Any:
        return {"sin": ops.sin(x), "square": (x * x).sum()}

    y, dy = jvp(pair, [X], [V])
    close(y["square"], X @ X)
    close(dy["sin"], np.cos(X) * V)
    close(dy["square"], 2 * X @ V)
    (g,) = vjp(pair, X)[1]({"square": 3.0, "sin": V})
    close(g, np.cos(X) * V + 6 * X)
    close(jacobian(pair)(X)["sin"], np.diag(np.cos(X)))
    with pytest.raises(ValueError, match="not built of the same"):
        vjp(pair, X)[1](V)
    with pytest.raises(ValueError, match="f returns shape a dict"):
        value_and_grad(pair)(X)


def tiny_gpt(tie: bool) -> tuple[GPT, Any, Any]:
    config = GPTConfig(
        n_layer=2, n_head=2, n_embd=4, block_size=4, vocab_size=5, tie_weights=tie, bias=True
    )
    model, rng = GPT(config, seed=1), np.random.default_rng(2)
    wide = {name: rng.normal(0, 0.4, p.shape) for name, p in model.named_parameters().items()}
    ids = rng.integers(0, 5, (2, 4))

    def loss(p: Any) -> Any:
        with model.substituted(p):
            return model.loss(ids, np.roll(ids, -1, 1))

    return model, wide, loss


@pytest.mark.parametrize("tie", [True, False])
def test_the_whole_gpt_as_a_function_of_its_parameters(tie: bool) -> None:
    model, p, loss = tiny_gpt(tie)
    rng = np.random.default_rng(3)
    v = {name: rng.normal(size=x.shape) for name, x in p.items()}
    _, slope = value_and_grad(loss)(p)
    product = hvp(loss, [p], [v])[0]
    eps = 1e-6
    up, down = ({n: p[n] + s * eps * v[n] for n in p} for s in (1, -1))
    along = sum(float((slope[n].data * v[n]).sum()) for n in p)
    assert along == pytest.approx((loss(up).item() - loss(down).item()) / (2 * eps), rel=1e-7)
    ahead, behind = (value_and_grad(loss)(q)[1] for q in (up, down))
    for n in p:
        numeric = (ahead[n].data - behind[n].data) / (2 * eps)
        np.testing.assert_allclose(product[n].data, numeric, atol=1e-8, rtol=1e-6)

    def curvature(q: Any) -> Any:
        product = hvp(loss, [q], [v])[0]
        return sum(((product[n] * v[n]).sum() for n in q), Tensor(0.0))

    third = sum(float((g.data * v[n]).sum()) for n, g in value_and_grad(curvature)(p)[1].items())
    numeric = (curvature(up).item() - curvature(down).item()) / (2 * eps)
    assert third == pytest.approx(numeric, rel=1e-5)
    assert all(x.dtype == np.float32 for x in model.parameters())  # put back as they were


def test_what_cannot_be_substituted_is_named() -> None:
    model, p, _ = tiny_gpt(True)
    with (
        pytest.raises(InputError, match=r"wtf\.weight is no parameter"),
        model.substituted({"wtf.weight": 1.0}),
    ):
        pass
    with (
        pytest.raises(InputError, match=r"ln_f\.bias is of shape \(4,\)"),
        model.substituted({"ln_f.bias": np.ones(3)}),
    ):
        pass
    with pytest.raises(KeyError), model.substituted(p):
        raise KeyError
    assert all(isinstance(x, Parameter) for x in model.named_parameters().values())
    assert len(model.named_parameters()) == len(p)


# --- against another library ----------------------------------------------------------------------
PARTS: list[tuple[str, Any, Any]] = [
    ("tanh", ops.tanh, lambda np, x: np.tanh(x)),
    ("sin", ops.sin, lambda np, x: np.sin(x)),
    ("exp", lambda x: ops.exp(x * 0.3), lambda np, x: np.exp(x * 0.3)),
    ("square", lambda x: x * x, lambda np, x: x * x),
    ("softmax", ops.softmax, lambda np, x: np.exp(x) / np.sum(np.exp(x), -1, keepdims=True)),
    (
        "norm",
        lambda x: x / ops.sqrt((x * x).sum() + 1),
        lambda np, x: x / np.sqrt((x * x).sum() + 1),
    ),
    ("matmul", lambda x: x @ x.T, lambda np, x: np.dot(x, x.T)),
    ("cumulate", lambda x: ops.cumsum(x, -1), lambda np, x: np.cumsum(x, -1)),
]


@pytest.mark.reference
@pytest.mark.filterwarnings("ignore:Output seems independent of input")
@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_jvp_hvp_and_hessian_equal_hips_autograd(parts: Any, n: int, seed: int) -> None:
    autograd = pytest.importorskip("autograd")
    hips = pytest.importorskip("autograd.numpy")
    rng = np.random.default_rng(seed)
    x, v, u = (rng.normal(size=(n, n)) for _ in range(3))

    def ours(z: Any) -> Any:
        for _, part, _ in parts:
            z = part(z)
        return z

    def theirs(z: Any) -> Any:
        for _, _, part in parts:
            z = part(hips, z)
        return z

    def total(z: Any) -> Any:
        return hips.sum(theirs(z) * u)

    def near(a: Any, b: Any) -> None:
        np.testing.assert_allclose(a.data, b, rtol=1e-9, atol=1e-9 * (1 + np.abs(b).max()))

    near(ours(Tensor(x)), theirs(x))
    j = autograd.jacobian(theirs)(x).reshape(n * n, n * n)
    near(jvp(ours, [x], [v])[1], (j @ v.ravel()).reshape(n, n))
    scalar = lambda z: (ours(z) * u).sum()  # noqa: E731
    near(hvp(scalar, [x], [v])[0], autograd.hessian_vector_product(total)(x, v))
    near(hessian(scalar)(x), autograd.hessian(total)(x))


def test_they_record_within_no_grad_too() -> None:
    with no_grad():
        y, g = value_and_grad(lambda x: (x * x).sum())(X)
        product = hvp(quadratic, [X], [V])[0]
        rows = hessian(quadratic)(X)
    close(y, X @ X)
    close(g, 2 * X)
    close(product, 0.5 * (A + A.T) @ V)
    close(rows, 0.5 * (A + A.T))


def test_results_hold_no_graph_that_nobody_could_ask_for() -> None:
    both = value_and_grad(lambda p: (p["w"] * p["w"]).sum())
    p: Any = {"w": X}
    for _ in range(3):
        y, g = both(p)
        assert not y.requires_grad and not g["w"].requires_grad
        p = {"w": p["w"] - 0.1 * g["w"]}
    close(p["w"], X * 0.8**3)
    y, pull = vjp(smooth, X)
    assert not y.requires_grad and not pull(V)[0].requires_grad
    outside = Tensor(2.0, requires_grad=True)
    assert value_and_grad(lambda x: (x * outside).sum())(X)[1].requires_grad


def test_gradients_do_not_share_memory_with_the_upstream() -> None:
    u = V.copy()
    (g,) = vjp(lambda x: x + 1.0, X)[1](u)
    u[:] = 9.0
    close(g, V)


def test_named_tuples_ordered_dicts_and_none_keep_their_kind() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    _, g = value_and_grad(lambda p: (p.a * p.b["c"]).sum())(Pair(X, OrderedDict(c=V, d=None)))
    assert isinstance(g, Pair) and isinstance(g.b, OrderedDict) and g.b["d"] is None
    close(g.a, V)
    close(g.b["c"], X)
    with pytest.raises(TypeError, match="give one number"):
        jacobian(smooth, (0, 1))


def test_two_threads_substitute_in_turn() -> None:
    _, p, loss = tiny_gpt(True)
    _, alone = value_and_grad(loss)(p)
    with ThreadPoolExecutor(4) as pool:
        for _, g in pool.map(lambda _: value_and_grad(loss)(p), range(20)):
            for name, x in alone.items():
                assert np.array_equal(g[name].data, x.data)
