"""One-hot vectors, dot products, and multiplication as lookup."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.onehot import Vocabulary, dot, lookup, matmul, matmul_cells, one_hot, split_words

FILES = Vocabulary.of(split_words("Find my files"))


def test_words_become_numbers_and_vectors():
    assert FILES.words == ("files", "find", "my")
    ids = FILES.ids("Find my files")
    assert (ids + 1).tolist() == [2, 3, 1]
    assert one_hot(ids, 3).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert FILES.text(ids) == "find my files"
    assert FILES.text([3]) == "END"


def test_an_unseen_word_is_named_with_those_it_resembles():
    with pytest.raises(InputError, match=r"'filed' is not among the 3 words.*files"):
        FILES.ids("find my filed")


def test_a_vocabulary_has_each_word_once():
    with pytest.raises(InputError, match="'a' is in the vocabulary twice"):
        Vocabulary(("a", "b", "a"))


def test_dot_products():
    assert dot([0, 1, 1, 2], [1, 0, 1, 2]) == 5
    unit = one_hot(np.arange(5), 5)
    assert [[dot(a, b) for b in unit] for a in unit] == np.eye(5).tolist()
    assert dot(one_hot(2, 4), [0.2, 0.7, 0.8, 0.1]) == 0.8


def test_multiplication_cell_by_cell_is_a_lookup():
    a = one_hot([0, 3, 2], 4)
    b = [[0.2, 0.9], [0.7, 0], [0.8, 0.3], [0.1, 0.4]]
    wanted = [[0.2, 0.9], [0.1, 0.4], [0.8, 0.3]]
    assert matmul(a, b).tolist() == wanted
    assert lookup([0, 3, 2], b).tolist() == wanted
    cells = list(matmul_cells(a, b))
    assert [(cell.row, cell.column) for cell in cells] == [(i, j) for i in range(3) for j in (0, 1)]
    assert cells[2].products == (0, 0, 0, 0.1)
    assert [cell.value for cell in cells] == [x for row in wanted for x in row]


@given(st.data())
def test_cells_are_numpys_product(data):
    m, k, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    np.testing.assert_allclose(matmul(a, b), a @ b)
    ids = rng.integers(0, k, m)
    np.testing.assert_allclose(lookup(ids, b), b[ids])


def test_shapes_that_do_not_fit_are_explained():
    with pytest.raises(InputError, match=r"3×4 times 3×2.*of 4 numbers, .*of 3;.*4 rows"):
        matmul(np.ones((3, 4)), np.ones((3, 2)))
    with pytest.raises(InputError, match="or transpose B"):
        matmul(np.ones((3, 4)), np.ones((2, 4)))
    with pytest.raises(InputError, match="not matrices"):
        matmul(np.ones((1, 2, 3)), np.ones((3, 1)))
    with pytest.raises(InputError, match="same length"):
        dot([1, 2], [1, 2, 3])
    for wrong in (3, -1):
        with pytest.raises(InputError, match="numbers from 0 to 2"):
            one_hot([0, wrong], 3)
