"""The hand-wired transformer: the documents' numbers, and other languages of that kind."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.handwired import wire
from toymodels.sentences import CMD3, LOGS, Language

LANGUAGE = Language.of(LOGS)
WORDS, IDS = LANGUAGE.vocabulary.words, LANGUAGE.vocabulary.ids
PROMPTS = {
    "battery": "check the battery log and find out whether it ran",
    "program": "check the program log and find out whether it ran",
}


def test_the_feature_layer():
    wired = wire(LANGUAGE)
    assert [(WORDS[u], WORDS[c]) for u, c in wired.features] == [
        ("battery", "ran"),
        ("program", "ran"),
    ]
    matrix = wired.feature_matrix()
    assert matrix.tolist() == [[1, -1], [-1, 1], [1, 1], [-1, -1]]
    table = {
        (1, 0, 1): ([1, -1], [1, 0]),
        (0, 1, 1): ([-1, 1], [0, 1]),
        (0, 0, 0): ([-1, -1], [0, 0]),
        (0, 0, 1): ([0, 0], [0, 0]),
        (0, 1, 0): ([-2, 0], [0, 0]),
        (1, 0, 0): ([0, -2], [0, 0]),
        (1, 1, 0): ([-1, -1], [0, 0]),
        (1, 1, 1): ([0, 0], [0, 0]),
    }
    for present, (before, after) in table.items():
        activity = np.array([*present, 1]) @ matrix
        assert activity.tolist() == before
        assert np.maximum(activity, 0).tolist() == after
    x = np.zeros(13)
    x[IDS("battery ran")] = 1
    features = np.maximum(x @ wired.w_features.data + wired.b_features.data, 0)
    assert (features @ wired.w_transition.data).tolist() == [float(w == "down") for w in WORDS]


def test_the_transition_matrix_is_what_was_counted():
    wired = wire(LANGUAGE)
    assert wired.w_transition.shape == (2, 13)
    ones = [(f, WORDS[w]) for f, w in np.argwhere(wired.w_transition.data)]
    assert ones == [(0, "down"), (1, "please")] and wired.w_transition.data.sum() == 2


@pytest.mark.parametrize(
    ("beta", "asked", "other", "before"),
    [
        (0, 0.1, 0.1, [0.2, 0.0]),
        (1, 0.231969317, 0.085336743, [0.317306059, -0.146632574]),
        (5, 0.942825619, 0.006352709, [0.949178328, -0.936472910]),
        (10, 0.9995915675173919, 4.5381e-05, [0.999636949, -0.999546186]),
    ],
)
def test_what_beta_does(beta, asked, other, before):
    wired = wire(LANGUAGE, beta)
    for word, answer in (("battery", "down"), ("program", "please")):
        done = wired.forward(IDS(PROMPTS[word]))
        weights = done.weights.data[-1]
        at = PROMPTS[word].split().index(word)
        assert weights[at] == pytest.approx(asked, abs=5e-10)
        assert weights[at] == pytest.approx(math.exp(beta) / (math.exp(beta) + 9), abs=1e-15)
        assert np.delete(weights, at) == pytest.approx(other, abs=5e-10)
        found = done.before_relu.data[-1]
        assert (found if word == "battery" else found[::-1]) == pytest.approx(before, abs=6e-10)
        logits = done.logits.data[-1]
        assert WORDS[logits.argmax()] == answer
        assert logits.max() == pytest.approx(before[0], abs=6e-10)
        assert np.count_nonzero(logits > 1e-12) == 1


def test_no_position_looks_ahead():
    wired = wire(LANGUAGE)
    whole = wired.forward(IDS(PROMPTS["battery"]))
    assert np.triu(whole.weights.data, 1).sum() == 0
    assert whole.weights.data.sum(axis=1) == pytest.approx(np.ones(10))
    assert whole.weights.data[0].tolist() == [1] + [0] * 9
    for t in range(1, 10):
        part = wired.forward(IDS(PROMPTS["battery"])[:t])
        np.testing.assert_allclose(part.logits.data, whole.logits.data[:t], atol=1e-15)


@settings(max_examples=30)
@given(st.data())
def test_any_two_sentences_that_a_far_word_tells_apart(data):
    """Shared words around one that differs; behind them a shared word, and two ways to go on."""
    words = data.draw(st.permutations([f"w{i}" for i in range(10)]))
    head, between = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
    a, b, current, x, y, *shared = words
    assume(len(shared) >= head + between - 1)
    shared += ["z1", "z2", "z3"]
    before, middle = shared[:head], shared[head : head + between]
    sentences = [[*before, w, *middle, current, go] for w, go in ((a, x), (b, y))]
    share = data.draw(st.sampled_from([0.2, 0.5, 0.9]))
    language = Language.of(zip(sentences, (share, 1 - share), strict=True))
    if not middle:  # the word decides from just before: the current word still asks for it
        assert len(sentences[0]) == head + 3
    wired = wire(language, 12.0)
    asks = {
        (language.vocabulary.text([u]), language.vocabulary.text([c])) for u, c in wired.features
    }
    assert {(a, current), (b, current)} <= asks
    for sentence in sentences:
        logits = wired.forward(language.vocabulary.ids(sentence[:-1])).logits.data[-1]
        assert language.vocabulary.words[logits.argmax()] == sentence[-1]


def test_where_nothing_decides_there_is_nothing_to_wire():
    with pytest.raises(InputError, match="no earlier word decides"):
        wire(Language.of(CMD3))
    with pytest.raises(InputError, match="no word to start from"):
        wire(LANGUAGE).forward(IDS(""))
