"""Arguments that the public functions refuse, with the reason."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import GradcheckError, Tensor, grad, gradcheck, ops
from tinygrad_tf.engine.graph import Fused


@pytest.mark.parametrize(
    "f",
    [
        lambda t: ops.sum(t, axis=2),
        lambda t: ops.max(t, axis=-3),
        lambda t: ops.transpose(t, (0, 2)),
        lambda t: ops.concatenate([t, t], axis=2),
        lambda t: ops.stack([t, t], axis=4),
        lambda t: ops.split(t, 2, axis=2),
        lambda t: ops.softmax(t, axis=2),
        lambda t: ops.swapaxes(t, 0, 2),
        lambda t: ops.prod(t, axis=2),
        lambda t: ops.cumsum(t, axis=2),
        lambda t: ops.norm(t, axis=-3),
        lambda t: ops.roll(t, 1, axis=2),
        lambda t: ops.flip(t, axis=(0, 2)),
        lambda t: ops.moveaxis(t, 2, 0),
        lambda t: ops.repeat(t, 2, axis=2),
        lambda t: ops.take(t, 0, axis=2),
        lambda t: ops.take(t, 4),
        lambda t: ops.sort(t, axis=2),
        lambda t: ops.topk(t, 1, axis=2),
        lambda t: ops.logsumexp(t, axis=2),
    ],
)
def test_an_axis_that_is_not_there_is_refused(f: Any) -> None:
    with pytest.raises(IndexError):
        f(Tensor(np.zeros((2, 2))))


def test_an_axis_named_twice_is_refused() -> None:
    for f in (ops.sum, ops.transpose):
        with pytest.raises(ValueError, match="twice"):
            f(Tensor(np.zeros((2, 2))), (0, -2))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: ops.einsum("ij,jk->ik", t), "1 are given"),
        (lambda t: ops.einsum("ijk", t), "has 2"),
        (lambda t: ops.einsum("i", t), "has 2"),
        (lambda t: ops.einsum("ij->ik", t), "output"),
        (lambda t: ops.einsum("ij->ii", t), "output"),
        (lambda t: ops.einsum("i...->i", t), "ellipsis"),
        (lambda t: ops.einsum("i1->i", t), "letters"),
        (lambda t: ops.einsum("ij,j", t, np.ones(3)), "lengths 2 and 3"),
        (lambda t: ops.pad(t, 1, mode="reflect"), "reflect"),
        (lambda t: ops.pad(t, -1), "negative"),
        (lambda t: ops.norm(t, ord=0.5), "at least 1"),
        (lambda t: ops.norm(t, ord=1), "matrices"),
        (lambda t: ops.norm(t, ord="nuc"), "nuc"),
        (lambda t: ops.clip(t), "bound"),
        (lambda t: ops.topk(t, 3), "3 largest of 2"),
        (lambda t: ops.dropout(t, 1.5, np.random.default_rng(0)), "1.5"),
        (lambda t: ops.moveaxis(t, (0, 1), 0), "2 axes"),
        (lambda t: ops.take_along_axis(t, np.zeros(2, int)), "1 axes"),
        (lambda t: ops.cross_entropy(t, [0, 1], reduction="total"), "reduction"),
        (lambda t: ops.cross_entropy(t, [0, 1], label_smoothing=2.0), "label_smoothing"),
        (lambda t: ops.gelu(t, "sigmoid"), "approximate"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(f: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        f(Tensor(np.ones((2, 2))))


def test_assigning_to_a_tensor_says_what_to_write() -> None:
    t = Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"ops\.where\(mask, value, t\)"):
        t[0] = 3.0


def test_gradients_of_and_for_what_is_no_tensor() -> None:
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="of a Tensor, not of float"):
        grad(3.0, [x])
    with pytest.raises(TypeError, match="for Tensors, not for ndarray"):
        grad(x.sum(), [np.ones(1)])


def test_numpys_arguments_mean_what_they_mean_there_or_are_refused() -> None:
    t = Tensor(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), requires_grad=True)
    for call in (
        lambda: np.sort(t, -1, "stable"),
        lambda: np.sum(t, 0, np.float64),
        lambda: np.var(t, 0, float),
        lambda: np.linalg.norm(t, 2),
        lambda: np.take(t, [0], 1, None, "wrap"),
    ):
        with pytest.raises(TypeError, match="has no derivative here"):
            call()
    plain = t.data
    np.testing.assert_array_equal(np.sort(t, -1).data, np.sort(plain, -1))
    np.testing.assert_array_equal(np.sort(t, axis=None).data, np.sort(plain, axis=None))
    np.testing.assert_array_equal(np.sum(t, 0, None, None, True).data, plain.sum(0, keepdims=True))
    np.testing.assert_array_equal(np.var(t, 0, ddof=1).data, plain.var(0, ddof=1))
    np.testing.assert_allclose(np.linalg.norm(t).data, np.linalg.norm(plain))
    np.testing.assert_array_equal(
        np.concatenate([t, t], axis=None).data, np.concatenate([plain, plain], axis=None)
    )
    first, second = np.split(t, 2, 0)
    np.testing.assert_array_equal(np.concatenate([first, second]).data, plain)


def test_whole_numbers_become_floats_where_numpy_makes_them_so() -> None:
    rows = Tensor([[1, 2, 3]])
    assert ops.cross_entropy(rows, [0]).item() == pytest.approx(2.4076059644443806)
    assert (rows**2.0).dtype == np.float64 and (rows**2).dtype == np.int64
    for op in (ops.softmax, ops.log_softmax, ops.logsumexp, ops.layer_norm, ops.rms_norm, ops.gelu):
        np.testing.assert_allclose(op(rows).data, op(rows.astype(float)).data)


def test_one_array_given_for_two_inputs_does_no_harm() -> None:
    def backward(g: Any, inputs: Any, extras: Any, needs: Any) -> Any:
        return (2.0 * g,) * 2

    both = Fused("both", lambda a, b: (2.0 * (a + b), ()), backward, lambda a, b: 2.0 * (a + b))
    a, b = (Tensor(np.ones(3), requires_grad=True) for _ in range(2))
    early, other = a * 10.0, b * 1.0
    (Tensor.record(both, a, b) + early + other).sum().backward()
    assert a.grad is not None and b.grad is not None
    assert a.grad.tolist() == [12.0] * 3 and b.grad.tolist() == [3.0] * 3
    late = Tensor.record(both, a, b)
    a.grad = b.grad = None
    (early.detach() * 0.0 + late).sum().backward()
    assert a.grad.tolist() == [2.0] * 3 and b.grad.tolist() == [2.0] * 3

    def by_hand(g: Any, a: Any, b: Any) -> Any:
        return (2.0 * g,) * 2

    with pytest.raises(GradcheckError, match="shares memory with that of"):
        gradcheck(lambda a, b: 2.0 * (a + b), np.ones(3), np.ones(3), backward=by_hand)
