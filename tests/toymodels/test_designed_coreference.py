"""Two designed layers find what `it` is; the document's numbers to the last digits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.designed_coreference import FEATURES, SENTENCES, resolve


@pytest.mark.parametrize(("sentence", "noun"), [(SENTENCES[0], "cat"), (SENTENCES[1], "milk")])
def test_the_weights_of_both_layers(sentence: str, noun: str) -> None:
    done = resolve(sentence)
    it, at = done.it, done.words.index(noun)
    assert done.answer == noun
    first, second = done.first.data[it], done.second.data[it]
    assert first[-1] == pytest.approx(0.9805555660504804, abs=1e-15)
    assert np.delete(first, -1) == pytest.approx(0.002431, abs=5e-7)
    assert second[at] == pytest.approx(0.9782018695979414, abs=1e-15)
    assert np.delete(second, at) == pytest.approx(0.002725, abs=5e-7)
    for layer in (done.first, done.second):
        np.testing.assert_allclose(layer.data.sum(axis=1), 1.0)


def test_the_residual_keeps_what_was_found() -> None:
    done = resolve(SENTENCES[0])
    kept = dict(zip(FEATURES, done.residual.data[done.it], strict=True))
    assert kept["hungry"] == pytest.approx(0.9805555660504804)
    assert kept["sweet"] == kept["animal"] == kept["food"] == 0.0 and kept["it"] == 1.0


@given(st.floats(0.0, 20.0), st.permutations(["the", "cat", "milk", "hungry", "it", "was", "so"]))
def test_the_formula_at_any_strength_and_in_any_order(beta: float, words: list[str]) -> None:
    done = resolve(" ".join(words), beta)
    others = len(words) - 1
    first = math.exp(beta) / (math.exp(beta) + others)
    second = math.exp(beta * first) / (math.exp(beta * first) + others)
    assert done.first.data[done.it, words.index("hungry")] == pytest.approx(first)
    assert done.second.data[done.it, words.index("cat")] == pytest.approx(second)


def test_one_layer_would_not_do() -> None:
    """Until the adjective has reached `it`, both nouns are looked at alike."""
    done = resolve(SENTENCES[0])
    cat, milk = (done.words.index(noun) for noun in ("cat", "milk"))
    assert done.first.data[done.it, cat] == done.first.data[done.it, milk]


@pytest.mark.parametrize("sentence", ["", "the cat drank", "it saw it"])
def test_without_one_it_there_is_nothing_to_find(sentence: str) -> None:
    with pytest.raises(InputError, match="times 'it'"):
        resolve(sentence)
