"""The masks of encoder and decoder: what uniform scores become, and rows without any key."""

import numpy as np
import numpy.typing as npt
import pytest

from tinygrad_tf import Tensor, grad, ops
from tinygrad_tf.nn import Dropout, MultiHeadAttention
from tinygrad_tf.nn.masks import (
    Mask,
    causal_mask,
    length_mask,
    padding_mask,
    target_mask,
)

PAD = 0
WELCOME = np.array([[57, 62, 17, PAD]])  # You are welcome PAD
DE_NADA = np.array([[1, 5, 6, PAD]])  # START De nada PAD
THIRD = [1 / 3, 1 / 3, 1 / 3, 0.0]


def uniform_weights(mask: Mask, queries: int = 4) -> npt.NDArray[np.float64]:
    """What softmax makes of equal scores: (T, S), of the first row and head."""
    scores = np.zeros((1, 1, queries, mask.shape[-1])) + ops.additive_mask(mask)
    return np.asarray(ops.softmax(Tensor(scores)).data[0, 0])


def test_padding_hides_columns_only() -> None:
    mask = padding_mask(WELCOME, PAD)
    assert mask.shape == (1, 1, 1, 4) and mask.dtype == bool
    np.testing.assert_allclose(uniform_weights(mask), [THIRD] * 4)


def test_causal() -> None:
    mask = causal_mask(4)
    assert mask.shape == (1, 1, 4, 4) and mask.dtype == bool
    rows = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], THIRD, [0.25] * 4]
    np.testing.assert_allclose(uniform_weights(mask), rows)
    np.testing.assert_array_equal(uniform_weights(causal_mask(16), 16)[15], np.full(16, 0.0625))


def test_causal_with_earlier_keys() -> None:
    np.testing.assert_array_equal(causal_mask(2, 5)[0, 0], np.tri(5, dtype=bool)[3:])
    assert causal_mask(1, 5).all()


def test_target_is_causal_and_padding() -> None:
    mask = target_mask(DE_NADA, PAD)
    assert mask.shape == (1, 1, 4, 4)
    np.testing.assert_allclose(
        uniform_weights(mask), [[1, 0, 0, 0], [0.5, 0.5, 0, 0], THIRD, THIRD]
    )


def test_lengths_are_padding_for_vectors() -> None:
    ids = np.array([[3, 4, PAD, PAD], [5, 6, 7, 8], [PAD] * 4])
    np.testing.assert_array_equal(length_mask([2, 4, 0], 4), padding_mask(ids, PAD))


def test_each_row_of_a_batch_has_its_own_mask() -> None:
    both = target_mask(np.concatenate([DE_NADA, [[1, 5, 6, 7]]]), PAD)
    np.testing.assert_array_equal(both[:1], target_mask(DE_NADA, PAD))
    np.testing.assert_array_equal(both[1:], causal_mask(4))


@pytest.mark.parametrize("crossed", [False, True])
def test_rows_without_keys_are_zero_and_pass_back_zero(crossed: bool) -> None:
    rng = np.random.default_rng(0)
    attn = MultiHeadAttention(
        6, 2, bias=False, dropout=Dropout(0.0, rng), rng=rng, std=0.5, proj_std=0.5
    )
    x, memory = (Tensor(rng.standard_normal((2, 4, 6)), requires_grad=True) for _ in range(2))
    mask = padding_mask(np.array([[PAD] * 4, [1, 2, 3, PAD]]), PAD)
    y = attn(x, memory, mask=mask) if crossed else attn(x, mask=mask)
    assert not y.data[0].any() and y.data[1].all()
    found = grad(ops.sum(y * y) + ops.sum(y), [x, memory, *attn.parameters()])
    assert all(np.isfinite(g).all() for g in found)
    assert not found[0][0].any() and found[0][1].any()
    assert not found[1][0].any()
