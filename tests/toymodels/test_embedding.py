"""Into two dimensions and back, and the wiggle of positions."""

import numpy as np
import pytest

from tinygrad_tf.errors import InputError
from toymodels.embedding import POINTS, QUOTED, EmbeddingTable, position_products, softmax, wiggle
from toymodels.markov import matrix_size
from toymodels.onehot import one_hot

PLANE = EmbeddingTable.of(POINTS)
WORDS = PLANE.vocabulary.words


def rated(word, decoding):
    return dict(
        zip(WORDS, PLANE.scores(PLANE.points[[WORDS.index(word)]], decoding)[0], strict=True)
    )


def test_a_one_hot_vector_pulls_out_its_point():
    battery = one_hot(PLANE.vocabulary.number("battery"), 13)
    assert (battery @ PLANE.points).tolist() == [0.2, 1.0]
    sentence = PLANE.vocabulary.ids("check the battery log and find out whether it ran down please")
    points = one_hot(sentence, 13) @ PLANE.points
    assert points.shape == (12, 2)
    assert (points @ PLANE.de_embedding("transpose")[0]).shape == (12, 13)


def test_the_closest_pairs():
    near = PLANE.pairs()[:6]
    pairs = "and it, it the, and the, battery program, check ran, down out"
    assert [f"{a} {b}" for a, b, _ in near] == pairs.split(", ")
    distances = [0.2236, 0.2828, 0.4123, 0.5099, 0.5385, 0.5657]
    assert [d for _, _, d in near] == pytest.approx(distances, abs=5e-5)


def test_program_by_the_transpose():
    scores = rated("program", "transpose")
    order = sorted(scores, key=scores.__getitem__, reverse=True)
    inward = "program log battery ran whether check find down and it please the out"
    assert order == inward.split()
    wanted = [1.30, 1.15, 1.04, 0.61, 0.41, 0.24, -0.10, -0.61, -0.69, -0.88, -1.00, -1.16, -1.17]
    assert [scores[word] for word in order] == pytest.approx(wanted, abs=1e-9)
    probs = np.sort(softmax(np.array(list(scores.values()))))[::-1]
    assert probs[:4] == pytest.approx([0.20811, 0.179122, 0.160464, 0.104383], abs=5e-6)
    assert probs.sum() == pytest.approx(1)


def test_the_transpose_mistakes_six_words_and_unit_columns_none():
    assert PLANE.mistaken("transpose") == {
        "and": "the",
        "check": "whether",
        "find": "down",
        "it": "the",
        "please": "the",
        "ran": "program",
    }
    assert PLANE.mistaken("unit columns") == PLANE.mistaken("bias") == {}
    unit = rated("program", "unit columns")
    names = ["program", "ran", "battery", "log"]
    assert [unit[w] for w in names] == pytest.approx([1.1402, 1.1327, 1.0198, 0.955], abs=5e-5)


def test_among_the_quoted_points_battery_ties_with_program():
    scores = EmbeddingTable.of(QUOTED).scores(np.array([QUOTED["battery"]]), "transpose")[0]
    assert scores[0] == pytest.approx(1.04) and scores[3] == pytest.approx(1.04)


@pytest.mark.parametrize("seed", range(5))
def test_distinct_directions_always_come_back_by_unit_columns(seed):
    points = np.random.default_rng(seed).normal(size=(20, 3)).tolist()
    plane = EmbeddingTable.of({f"w{i:02}": tuple(point) for i, point in enumerate(points)})
    assert not plane.mistaken("unit columns") and not plane.mistaken("bias")
    assert plane.mistaken("transpose")


def test_points_that_cannot_be_decoded_are_refused():
    with pytest.raises(InputError, match="'b' is at the origin"):
        EmbeddingTable.of({"a": (1.0, 0.0), "b": (0.0, 0.0)}).decoded("unit columns")
    with pytest.raises(InputError, match="several dimensions"):
        EmbeddingTable.of({"a": (1.0,), "b": (0.0, 1.0)})


def test_softmax_sees_differences_only():
    assert softmax(np.array([2, 1, 0.1])) == pytest.approx(
        [0.6590011388859679, 0.24243297070471392, 0.09856589040931818], abs=1e-15
    )
    assert softmax(np.array([1000.0, 1000.0])).tolist() == [0.5, 0.5]
    for votes in ([4.0, 5.0], [0.0, 1.0]):
        assert softmax(np.array(votes)) == pytest.approx([0.2689414213699951, 0.7310585786300049])
    assert softmax(np.array([1.0, 2.0]), 0.01)[1] == pytest.approx(1)
    with pytest.raises(InputError, match="temperature"):
        softmax(np.array([1.0]), 0)


def test_the_wiggle_goes_round_the_word():
    turns = wiggle((0.2, 1.0), 11, np.pi / 10, radius=0.5)
    offsets = (turns - [0.2, 1.0]) / 0.5
    wanted = {0: (1, 0), 1: (0.951057, 0.309017), 5: (0, 1), 10: (-1, 0)}
    for k, offset in wanted.items():
        assert offsets[k] == pytest.approx(offset, abs=1e-6)
    assert np.hypot(*offsets.T) == pytest.approx(np.ones(11))


def test_positions_turn_by_the_same_distance_at_other_angles():
    products = position_products(40, 64)
    assert np.diag(products) == pytest.approx(32)
    wanted = {1: 30.916831662, 2: 28.303862004, 3: 25.587028547, 8: 22.413911944, 15: 19.470063019}
    for offset, product in wanted.items():
        assert np.diag(products, offset) == pytest.approx(product, abs=1e-9)
        frequencies = 10000.0 ** (-np.arange(32) / 32)
        assert products[0, offset] == pytest.approx(np.cos(frequencies * offset).sum())


def test_what_an_embedding_saves():
    assert matrix_size(50_000, 2).rows == 2_500_000_000
    assert matrix_size(50_000, 2).numbers == 125_000_000_000_000
    assert 2 * PLANE.points.size == 52
