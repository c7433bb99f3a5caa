"""Sums of a million rows, means, variances, softmax and logsumexp."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, grad, ops


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_a_float32_gradient_summed_over_a_million_rows(shape: tuple[int, ...]) -> None:
    bias = Tensor(np.zeros(shape, np.float32), requires_grad=True)
    rows = np.zeros((10**6, 2), np.float32)
    up = np.full((10**6, 2), 0.1, np.float32)
    np.testing.assert_allclose(grad(rows + bias, bias, upstream=up), 1e5, atol=1)
    if bias.ndim == 1:
        weight = np.eye(2, dtype=np.float32)
        y = ops.linear(rows, weight, bias)
        np.testing.assert_allclose(grad(y, bias, upstream=up), 1e5, atol=1)


def test_float32_sums_and_means_of_a_million_rows() -> None:
    for shape, axis in (((10**6, 2), 0), ((1000, 1000, 2), (0, 1)), ((1000, 1000, 2), (1, 0))):
        rows = np.full(shape, 0.1, np.float32)
        for keepdims in (False, True):
            total = ops.sum(rows, axis=axis, keepdims=keepdims)
            assert total.shape == np.sum(rows, axis=axis, keepdims=keepdims).shape
            np.testing.assert_allclose(total.data, 1e5, atol=1)
        np.testing.assert_allclose(ops.mean(rows, axis=axis).data, 0.1, rtol=1e-5)
    assert ops.sum(np.ones((10**4, 2), bool), axis=0).data.tolist() == [10**4] * 2


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (-1, -2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_mean_and_var_are_numpys(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3))
    for dtype in (np.float32, np.float64):
        t = Tensor(x.astype(dtype), requires_grad=True)
        for name, options in (("mean", {}), ("var", {}), ("var", {"ddof": 1})):
            if axis == () and options:
                continue
            ours = getattr(ops, name)(t, axis, keepdims=keepdims, **options)
            numpys = getattr(np, name)(x, axis=axis, keepdims=keepdims, **options)
            assert ours.dtype == dtype and ours.shape == np.shape(numpys)
            np.testing.assert_allclose(ours.data, numpys, rtol=1e-5)
            assert grad(ours, t, upstream=np.ones(ours.shape)).dtype == dtype


def test_softmax_sees_only_differences() -> None:
    expected = [0.2689414213699951, 0.7310585786300049]
    for pair in ([4.0, 5.0], [0.0, 1.0], [1000.0, 1001.0]):
        np.testing.assert_allclose(ops.softmax(np.array(pair)).data, expected, rtol=1e-15)


def test_logsumexp_of_infinity_and_nan_is_as_in_pytorch() -> None:
    for values, expected in (([np.inf, 1.0], [np.nan, 0.0]), ([np.nan, 1.0], [np.nan, np.nan])):
        x = Tensor(values, requires_grad=True)
        with np.errstate(invalid="ignore"):
            ops.logsumexp(x).backward()
        np.testing.assert_array_equal(x.grad, expected)
