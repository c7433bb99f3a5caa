"""What the public functions refuse, and the reason they give."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, grad, ops


@pytest.mark.parametrize("ids", [[4], [-1]])
def test_embedding_refuses_ids_outside_the_table(ids: list[int]) -> None:
    with pytest.raises(IndexError, match="4 rows"):
        ops.embedding(np.zeros((4, 2)), ids)


def test_embedding_and_cross_entropy_refuse_what_is_no_id() -> None:
    with pytest.raises(TypeError, match="integers"):
        ops.embedding(np.zeros((4, 2)), [0.5])
    with pytest.raises(IndexError, match="3 logits"):
        ops.cross_entropy(np.zeros((2, 3)), [0, 3])
    with pytest.raises(ValueError, match="shape"):
        ops.cross_entropy(np.zeros((2, 3)), [0])


def test_a_mask_that_carries_a_gradient_is_refused() -> None:
    x, mask = np.ones((1, 2, 2)), Tensor(np.zeros((2, 2)), requires_grad=True)
    with pytest.raises(TypeError, match="detach"):
        ops.attention(x, x, x, mask=mask)
    assert ops.attention(x, x, x, mask=mask.detach()).shape == (1, 2, 2)


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
