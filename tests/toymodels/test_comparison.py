"""The figures of a comparison, and the learning curves."""

import math

import numpy as np
import pytest

from tinygrad_tf.text import CharTokenizer
from toymodels.comparison import (
    candidates,
    compare,
    last_part,
    learning_curve,
    measure,
)
from toymodels.held_out import split_tokens, split_words
from toymodels.model import score
from toymodels.sentences import PAIR, Language
from toymodels.text import Text

TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 30


@pytest.fixture(autouse=True)
def _short_examples(monkeypatch):
    monkeypatch.setattr("toymodels.comparison.EXAMPLE", 10)


def letters(text=TEXT, fraction=0.1):
    tokenizer = CharTokenizer.from_text(text)
    return split_tokens("a text", tokenizer.encode(text), tokenizer, fraction)


def test_figures_of_a_row_are_those_of_the_model():
    split = letters()
    rows = list(compare(split, candidates(split, (1, 2))))
    names = [row.model for row in rows]
    assert names == [
        "Markov 1, add 0.1", "Markov 2, add 0.1", "Witten-Bell 2", "Kneser-Ney 2", "skips 1",
        "selective skips 1", "selective skips 2",
    ]  # fmt: skip
    for row, candidate in zip(rows, candidates(split, (1, 2)), strict=True):
        model = candidate.make()
        found = score(model, split.held_out, split.first)
        assert row.nats == pytest.approx(found.mean_nats) and row.far is None
        assert row.bits == pytest.approx(row.nats / math.log(2))
        assert row.bits_per_char == pytest.approx(row.bits)
        assert row.accuracy == found.accuracy and row.parameters == model.parameters
        assert (row.mixed is None) == (not candidate.votes) and row.example


def test_bits_per_character_are_those_of_the_words():
    split = split_words("a text", TEXT, 0.1)
    row = measure(next(candidates(split)).make(), split, 0.0)
    assert row.bits_per_char * split.chars == pytest.approx(row.bits * split.targets)


def test_ever_more_text_from_the_end():
    text = Text(np.arange(100) % 7, 7)
    assert last_part(text, 0.25).tokens.tolist() == text.tokens[75:].tolist()
    pair = Language.of(PAIR).text
    part = last_part(pair, 0.6)  # whole sentences: the beginning of the second is left out
    assert part.tokens.tolist() == pair.tokens.tolist() or part.tokens[-1] == pair.end
    split = letters()
    curve = learning_curve(split, (0.5, 1.0), (1, 3))
    assert [a.tokens for a in curve] == [round(0.5 * len(split.train)), len(split.train)]
    assert set(curve[0].nats) == {"Witten-Bell 1", "Witten-Bell 3", "Kneser-Ney 3"}
    rows = {r.model: r for r in compare(split, candidates(split, (1, 3)))}
    assert curve[-1].nats["Witten-Bell 3"] == pytest.approx(rows["Witten-Bell 3"].nats)
    assert curve[-1].met[1] == curve[-1].met[3] == 1.0
