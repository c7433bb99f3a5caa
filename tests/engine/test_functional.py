"""Layers' functions: embedding, dropout, cross-entropy, normalisation, attention."""

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.gradients import first_order, gradients
from tinygrad_tf import Tensor, grad, ops


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.uint16])
def test_embedding_adds_up_repeated_rows(kind: Any) -> None:
    ids = np.array([[1, 1], [3, 1]], kind)
    (dtable,) = gradients(lambda w: ops.embedding(w, ids), np.zeros((4, 2)))
    np.testing.assert_array_equal(dtable.sum(axis=1) / 2, [0, 3, 0, 1])
    (dtable,) = gradients(lambda w: ops.embedding(w, ids * 0), np.zeros((4, 2)))
    np.testing.assert_array_equal(dtable[:, 0], [4, 0, 0, 0])


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


def test_dropout_scales_what_it_keeps() -> None:
    x = Tensor(np.ones(100_000, np.float32), requires_grad=True)
    y = ops.dropout(x, 0.25, np.random.default_rng(0))
    assert set(np.unique(y.data)) == {np.float32(0), np.float32(4 / 3)}
    assert np.mean(y.data == 0) == pytest.approx(0.25, abs=0.006)  # four standard deviations
    np.testing.assert_array_equal(grad(y, x, upstream=np.ones(x.shape)), y.data)
    assert ops.dropout(x, 0.0, np.random.default_rng(0)) is x


def test_cross_entropy_leaves_ignored_targets_out_of_the_mean() -> None:
    logits = np.array([[2.0, 1.0, 0.1], [9.0, -9.0, 4.0]])
    assert ops.cross_entropy(logits, [0, -1], ignore_index=-1).item() == pytest.approx(
        0.4170300162778335, rel=1e-15
    )


def test_label_smoothing_mixes_the_target_with_all_classes() -> None:
    logits, targets = np.array([[2.0, 1.0, 0.1], [0.5, -1.0, 3.0]]), np.array([0, 1])
    each = -ops.log_softmax(logits).data
    expected = 0.9 * each[[0, 1], targets] + 0.1 * each.mean(axis=1)
    for reduction, loss in (("none", expected), ("sum", sum(expected)), ("mean", expected.mean())):
        ours = ops.cross_entropy(logits, targets, label_smoothing=0.1, reduction=reduction)
        np.testing.assert_allclose(ours.data, loss, rtol=1e-14)


def test_rms_norm_by_hand() -> None:
    y = ops.rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), eps=0.0)
    np.testing.assert_allclose(y.data, [[3 / math.sqrt(12.5), 8 / math.sqrt(12.5)]], rtol=1e-15)


@pytest.mark.parametrize("masked", ["mask", "more queries than keys"])
def test_a_query_without_keys_gets_0_and_gradient_0(masked: str) -> None:
    shape = (1, 3, 4)
    q, k, v = (np.random.default_rng(i).normal(size=shape) for i in range(3))
    if masked == "mask":
        keep = np.array([[True] * 3, [False] * 3, [True] * 3])
        options: dict[str, Any] = {"mask": keep}
        empty = 1
    else:
        k, v, options, empty = k[:, :2], v[:, :2], {"causal": True}, 0
    y, slopes = first_order(
        lambda *x: ops.attention(*x, n_head=2, **options), [q, k, v], np.ones(shape)
    )
    assert np.all(y[:, empty] == 0.0) and np.all(slopes[0][:, empty] == 0.0)
    assert all(np.all(np.isfinite(g)) for g in [y, *slopes])


def test_a_mask_that_carries_a_gradient_is_refused() -> None:
    x, mask = np.ones((1, 2, 2)), Tensor(np.zeros((2, 2)), requires_grad=True)
    with pytest.raises(TypeError, match="detach"):
        ops.attention(x, x, x, mask=mask)
    assert ops.attention(x, x, x, mask=mask.detach()).shape == (1, 2, 2)


def test_shapes_and_masks_that_mean_nothing_are_refused() -> None:
    x = Tensor(np.ones((2, 3, 4)), requires_grad=True)
    with pytest.raises(TypeError, match="mask of int64"):
        ops.attention(x, x, x, mask=np.tril(np.ones((3, 3), np.int64)))
    with pytest.raises(ValueError, match="do not go together"):
        ops.attention(x, x[:1], x[:1])
    with pytest.raises(ValueError, match="divided into 3 parts"):
        ops.self_attention(x, 1)
    with pytest.raises(ValueError, match="batch, time and channels"):
        ops.attention(x[0], x[0], x[0])
    with pytest.raises(ValueError, match=r"rows of numbers, \(V, C\)"):
        ops.embedding(np.ones((4, 2, 3)), [0])
    with pytest.raises(ValueError, match="no entries"):
        ops.layer_norm(np.ones((2, 0)))
    with pytest.raises(ValueError, match="is no matrix"):
        x @ 2.0
