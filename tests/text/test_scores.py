"""Scores: known values, what each must satisfy, and sacrebleu as the reference."""

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.scores import (
    bleu,
    chrf,
    edit_distance,
    exact_match,
    mteval_words,
    token_accuracy,
    word_error_rate,
)

WORDS = ["la", "bola", "es", "azul", "a", "b", "¿Es", "bola?", "rojo.", "1,5", "3-4", "it's", "x_y"]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \n\té¿“"
MESSY = st.text(CHARACTERS, max_size=20)
ODD = st.sampled_from(["", " ", "<skipped>", "&quot;a&amp;", "a-\nb", "a-\n"])
TEXTS = st.one_of(SENTENCES, MESSY, ODD)
CORPORA = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6)
# Answers that differ a little from their reference, as those of a model do.
NEAR = st.lists(
    st.tuples(SENTENCES, st.integers(0, 6), st.sampled_from(WORDS)).map(
        lambda drawn: (" ".join(_exchanged(drawn[0].split(), *drawn[1:])), drawn[0])
    ),
    min_size=1,
    max_size=6,
)
TOKENS = st.lists(st.integers(0, 3), max_size=6)


def _exchanged(words: list[str], place: int, word: str) -> list[str]:
    return [*words[:place], word, *words[place + 1 :]]


@pytest.mark.reference
@given(st.one_of(CORPORA, NEAR))
def test_bleu_and_chrf_equal_sacrebleu(pairs):
    sacrebleu = pytest.importorskip("sacrebleu")
    answers, references = map(list, zip(*pairs, strict=True))
    expected = sacrebleu.corpus_bleu(answers, [references], force=True).score
    assert bleu(answers, references) == pytest.approx(expected, abs=1e-9)
    expected = sacrebleu.corpus_chrf(answers, [references]).score
    assert chrf(answers, references) == pytest.approx(expected, abs=1e-9)


@pytest.mark.reference
@given(TEXTS)
def test_words_are_cut_as_by_sacrebleu(text):
    pytest.importorskip("sacrebleu")
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert mteval_words(text) == Tokenizer13a()(text.rstrip()).split()


def test_bleu_by_hand():
    # 5, 3, 1 and 0 of the 6, 5, 4 and 3 n-grams are right; the first precision of 0 halves.
    answer, right = "the cat sat on the rug", "the cat lay on the rug"
    expected = 100 * (5 / 6 * 3 / 5 * 1 / 4 * (1 / 2) / 3) ** 0.25
    assert bleu([answer], [right]) == pytest.approx(expected)
    # Four of five words are there, in order: all precisions are 1, and it is too short.
    assert bleu(["a b c d"], ["a b c d e"]) == pytest.approx(100 * math.exp(1 - 5 / 4))
    # A word repeated counts no oftener than in the reference.
    expected = 100 * (1 / 4 * (1 / 2) / 3 * (1 / 4) / 2 * (1 / 8) / 1) ** 0.25
    assert bleu(["the the the the"], ["the dog ran off"]) == pytest.approx(expected)


def test_bleu_counts_over_the_corpus_and_not_by_sentence():
    answers, references = ["a b c d", "x"], ["a b c d", "y"]
    assert bleu(answers, references) == pytest.approx(100 * (4 / 5) ** 0.25)
    assert bleu(["a b c"], ["a b c"]) == 0  # there is no run of four


def test_chrf_by_hand():
    # 2 of 3 letters, 1 of 2 pairs; the only run of three is wrong. Both sides are as long.
    assert chrf(["abx"], ["aby"]) == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)
    # All that is said is right, and recall (2/4, 1/3; no longer runs) counts double.
    precision, recall = 1.0, (2 / 4 + 1 / 3) / 2
    expected = 100 * 5 * precision * recall / (4 * precision + recall)
    assert chrf(["ab"], ["abcd"]) == pytest.approx(expected)
    assert chrf(["a b"], ["ab"]) == 100


@given(st.lists(SENTENCES, min_size=1, max_size=5))
def test_a_perfect_answer_scores_full(texts):
    assert exact_match(texts, texts) == 1
    assert token_accuracy(texts, texts) == 1
    if any("".join(texts).split()):
        assert chrf(texts, texts) == pytest.approx(100)
        assert word_error_rate(texts, texts) == 0
    if any(len(mteval_words(text)) >= 4 for text in texts):
        assert bleu(texts, texts) == pytest.approx(100)


@given(CORPORA)
def test_scores_stay_in_range_and_empty_answers_get_none(pairs):
    answers, references = map(list, zip(*pairs, strict=True))
    assert 0 <= bleu(answers, references) <= 100 + 1e-9
    assert 0 <= chrf(answers, references) <= 100 + 1e-9
    nothing = [""] * len(references)
    assert bleu(nothing, references) == chrf(nothing, references) == 0


@given(TOKENS, TOKENS, TOKENS)
def test_edit_distance_is_a_metric(one, other, third):
    distance = edit_distance(one, other)
    assert (distance == 0) == (one == other)
    assert distance == edit_distance(other, one)
    assert distance <= edit_distance(one, third) + edit_distance(third, other)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))


@given(TOKENS, TOKENS)
def test_edit_distance_equals_its_definition(one, other):
    def naive(a: list[int], b: list[int]) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(naive(a[1:], b) + 1, naive(a, b[1:]) + 1, naive(a[1:], b[1:]) + (a[0] != b[0]))

    assert edit_distance(one[:5], other[:5]) == naive(one[:5], other[:5])


def test_known_edit_distances():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert word_error_rate(["find my files", "a b"], ["find files please", "a"]) == 3 / 4
    assert word_error_rate(["a b c"], ["x"]) == 3


def test_token_accuracy_counts_what_is_missing_and_what_is_too_much():
    assert token_accuracy([["la", "bola"]], [["la", "pelota"]]) == 1 / 2
    assert token_accuracy([["la"]], [["la", "bola", "es", "azul"]]) == 1 / 4
    assert token_accuracy([["la", "bola"], []], [["la"], []]) == 1 / 2
    assert token_accuracy([[]], [[]]) == 1
    assert exact_match([1, 2, 3, 4], [1, 2, 0, 0]) == 1 / 2


@pytest.mark.parametrize("score", [exact_match, token_accuracy, bleu, chrf, word_error_rate])
def test_what_cannot_be_scored_is_refused(score):
    with pytest.raises(InputError, match="2 answers for 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(InputError, match="nothing to score"):
        score([], [])


def test_no_word_has_no_error_rate():
    with pytest.raises(InputError, match="no words"):
        word_error_rate(["a"], [" "])
