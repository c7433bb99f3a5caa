"""Shapes, splitting and order among equals, beside NumPy's."""

import numpy as np
import pytest

from tinygrad_tf import Tensor, ops


def test_shapes_follow_numpy() -> None:
    x = np.arange(12.0).reshape(2, 6)
    t = Tensor(x)
    for ours, numpys in zip(ops.split(t, [1, 3], axis=-1), np.split(x, [1, 3], -1), strict=True):
        np.testing.assert_array_equal(ours.data, numpys)
    np.testing.assert_array_equal(ops.stack([t, t], -1).data, np.stack([x, x], -1))
    np.testing.assert_array_equal(t.reshape(3, 1, 4).squeeze(1).data, x.reshape(3, 4))
    np.testing.assert_array_equal(t.reshape((3, -1)).T.data, x.reshape(3, 4).T)
    np.testing.assert_array_equal(t.transpose(1, 0).swapaxes(0, -1).data, x)
    np.testing.assert_array_equal(ops.expand_dims(t, (0, -1)).data, x[None, ..., None])


@pytest.mark.parametrize("sections", [2, 3, [1, 4], [4, 2], [], [0, 9]])
def test_split_cuts_where_numpy_cuts(sections: int | list[int]) -> None:
    x = np.arange(12.0).reshape(2, 6)
    expected = np.split(x, sections, axis=1)
    for ours, theirs in zip(ops.split(x, sections, axis=1), expected, strict=True):
        assert np.array_equal(ours.data, theirs)


def test_split_refuses_unequal_parts() -> None:
    with pytest.raises(ValueError, match="equal parts"):
        ops.split(np.ones(5), 2)


def test_order_among_equals_is_that_of_the_entries() -> None:
    x = np.array([1.0, 3.0, 1.0, 3.0, 2.0])
    assert ops.argsort(x).data.tolist() == [0, 2, 4, 1, 3]
    assert ops.argsort(x, descending=True).data.tolist() == [1, 3, 4, 0, 2]
    values, places = ops.topk(x, 3)
    assert values.data.tolist() == [3, 3, 2] and places.data.tolist() == [1, 3, 4]
    values, places = ops.topk(x, 3, largest=False)
    assert values.data.tolist() == [1, 1, 2] and places.data.tolist() == [0, 2, 4]
    assert not places.requires_grad
    assert ops.sort(x, descending=True).data.tolist() == [3, 3, 2, 1, 1]
