"""The one-layer transformer that learns its mask."""

import numpy as np
import pytest

from tinygrad_tf.errors import InputError
from toymodels.learned import Settings, decide, deciding_places, learn, train_one
from toymodels.sentences import CMD3, LOGS, Language

LANGUAGE = Language.of(LOGS)


def words(ids):
    return LANGUAGE.vocabulary.text(ids)


def test_the_deciding_places_are_those_of_the_mask():
    found = {
        (words([place.right]), words(place.prompt[place.mask > 0]), words(place.prompt[-1:]))
        for place in deciding_places(LANGUAGE)
    }
    assert found == {("down", "battery", "ran"), ("please", "program", "ran")}


def test_where_nothing_decides_there_is_nothing_to_learn():
    with pytest.raises(InputError, match="no earlier word decides"):
        deciding_places(Language.of(CMD3))


def test_an_untrained_model_looks_everywhere_alike_and_cannot_decide():
    model, _ = train_one(LANGUAGE, 0, Settings(steps=0))
    for place in deciding_places(LANGUAGE):
        decision = decide(model, place)
        assert decision.attention == pytest.approx(np.full(10, 0.1), abs=0.02)
        assert decision.probability == pytest.approx(1 / 14, abs=0.02)


@pytest.mark.slow
def test_ten_seeds_learn_to_ask_for_the_word_that_decides():
    table = learn(LANGUAGE)
    assert [row.seed for row in table] == list(range(10))
    assert all(row.probability > 0.99 for row in table)
    assert all(row.agrees for row in table)
    assert sum(row.on_deciding > 0.9 for row in table) >= 6
    for row in table:
        assert all(d.attention.sum() == pytest.approx(1, abs=1e-5) for d in row.decisions)
        # `the` leaves one bit open in each sentence of 10 and 11 words after the first, and END.
        assert row.loss == pytest.approx(2 * np.log(2) / 23, abs=5e-3)


@pytest.mark.slow
def test_other_sentences_are_decided_too():
    language = Language.of([("say red a b c go", 1.0), ("say blue a b c stop", 1.0)])
    (row,) = learn(language, (0,))
    assert row.probability > 0.99
    assert [words_of(language, d.place) for d in row.decisions] == ["red go", "blue stop"]


def words_of(language, place):
    return language.vocabulary.text([*place.prompt[place.mask > 0], place.right])
