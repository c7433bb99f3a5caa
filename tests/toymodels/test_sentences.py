"""Languages of weighted sentences."""

import math

import pytest

from tinygrad_tf.errors import InputError
from toymodels.markov import Markov
from toymodels.sentences import PAIR, Language


def test_weights_need_not_sum_to_one_and_equal_sentences_add_up():
    twice = Language.of([(PAIR[0][0], 2), (PAIR[1][0], 6), (PAIR[0][0], 2)])
    assert sorted(twice.probabilities.values()) == pytest.approx([0.4, 0.6])
    assert twice.entropy == pytest.approx(Language.of(PAIR).entropy)
    matrix = Markov.fit(twice.text, 1).matrix()
    assert matrix == pytest.approx(Markov.fit(Language.of(PAIR).text, 1).matrix())


def test_the_text_of_a_language():
    text = Language.of([("a b", 1), ("b", 1)]).text
    assert text.tokens.tolist() == [0, 1, 2, 1, 2] and text.end == 2 and text.weights is None
    assert Language.of([("a b", 1), ("b", 3)]).text.weight.tolist() == [1, 1, 1, 3, 3]


@pytest.mark.parametrize(
    ("sentences", "fault"),
    [
        ([], "no sentences"),
        ([("a b", 1), ("", 0.5)], "sentence 2 has no words"),
        ([("...", 3)], "sentence 1 has no words"),
        ([("a b", 1), ("b a", -1)], r"sentence 2, 'b a', has the weight -1"),
        ([("a b", 0)], "weight 0"),
        ([("a b", math.nan)], "weight nan"),
        ([("a b", math.inf)], "weight inf"),
        ([("please", 1)], "'please' is the only word"),
    ],
)
def test_bad_sentences_are_refused(sentences, fault):
    with pytest.raises(InputError, match=fault) as refused:
        Language.of(sentences)
    assert refused.value.next


def test_unseen_words_are_refused():
    language = Language.of(PAIR)
    with pytest.raises(InputError, match="'engine'"):
        language.likelihood(Markov.fit(language.text, 1), "check the engine")
    with pytest.raises(InputError, match="'engine'"):
        Language.of([("the engine", 1)], language.vocabulary)
    assert math.isclose(sum(language.probabilities.values()), 1)
