"""Opinions: a reader in order is always right, a bag of words hardly better than a coin."""

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tinygrad_tf.corpus.opinions import (
    BAD,
    GOOD,
    LABELS,
    PLAIN,
    Opinion,
    draw_opinions,
    judgement,
)

Floats = NDArray[np.float64]
Parts = tuple[tuple[Opinion, ...], tuple[Opinion, ...]]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return draw_opinions()


def is_good(clause: str) -> bool:
    """Whether a single judgement, denied or not, is good."""
    words = clause.split()
    return (words[-1] in GOOD) != ("not" in words)


def read(sentence: str) -> str:
    """The label, by reading the words in their order."""
    if sentence.startswith("although "):
        return LABELS[is_good(sentence.rsplit("the ", 1)[1])]
    if " although " in sentence:
        return LABELS[is_good(sentence.split(" although ")[0])]
    if " but " in sentence:
        return LABELS[is_good(sentence.split(" but ")[1])]
    return LABELS[is_good(sentence.split(" and not ")[0])]


def twin(sentence: str) -> str:
    """The same words with the two judgements exchanged; plain sentences have none."""
    clauses = re.findall(r"was ((?:not )?(?:very |really )?\w+)", sentence)
    if len(clauses) == 2:
        first, second = clauses
        halves = re.split(r"(?<=was )(?:not )?(?:very |really )?\w+", sentence)
        return halves[0] + second + halves[1] + first + halves[2]
    match = re.fullmatch(r"(the \w+ was )not (.+) but (.+)", sentence)
    if match:
        return f"{match[1]}not {match[3]} but {match[2]}"
    match = re.fullmatch(r"(the \w+ was )(.+) and not (.+)", sentence)
    return f"{match[1]}{match[3]} and not {match[2]}" if match else sentence


def bags(opinions: tuple[Opinion, ...], words: list[str]) -> tuple[Floats, Floats]:
    """Word counts (N, V) and labels (N,), 1 for positive."""
    index = {word: column for column, word in enumerate(words)}
    counts = np.zeros((len(opinions), len(words)))
    for row, one in enumerate(opinions):
        for word in one.sentence.split():
            counts[row, index[word]] += 1
    return counts, np.array([one.label == "positive" for one in opinions], float)


def naive_bayes(x: Floats, y: Floats) -> tuple[Floats, float]:
    """Weights and bias of multinomial naive Bayes with one added to each count."""
    good, bad = (x[y == label].sum(axis=0) + 1 for label in (1, 0))
    prior = np.log(y.mean() / (1 - y.mean()))
    return np.log(good / good.sum()) - np.log(bad / bad.sum()), float(prior)


def logistic_regression(x: Floats, y: Floats) -> tuple[Floats, float]:
    """Weights and bias after 2,000 full steps down the gradient of the mean cross-entropy."""
    weights, bias = np.zeros(x.shape[1]), 0.0
    for _ in range(2000):
        error = 1 / (1 + np.exp(-(x @ weights + bias))) - y
        weights -= 0.5 * (x.T @ error) / len(y)
        bias -= 0.5 * float(error.mean())
    return weights, bias


@pytest.mark.parametrize("fit", [naive_bayes, logistic_regression])
def test_a_bag_of_words_stays_below_three_quarters(
    parts: Parts, fit: Callable[[Floats, Floats], tuple[Floats, float]]
) -> None:
    train, _ = parts
    words = sorted({word for one in train for word in one.sentence.split()})
    weights, bias = fit(*bags(train, words))
    for opinions in parts:
        x, y = bags(opinions, words)
        assert ((x @ weights + bias > 0) == y).mean() < 0.72


def test_no_bag_of_words_can_know(parts: Parts) -> None:
    plain = 0
    for one in (*parts[0], *parts[1]):
        other = twin(one.sentence)
        assert Counter(other.split()) == Counter(one.sentence.split())
        if one.construction == "plain":
            plain += 1
        else:
            assert read(other) != one.label and twin(other) == one.sentence
    # At best right in all of the plain, of which few are different, and half of the others.
    share = plain / 3500
    assert 0.1 < share <= PLAIN and share + (1 - share) / 2 < 0.7


def test_reading_in_order_is_always_right(parts: Parts) -> None:
    assert all(read(one.sentence) == one.label for part in parts for one in part)


@pytest.mark.parametrize(
    ("sentence", "label"),
    [
        ("the food was good but the service was bad", "negative"),
        ("the food was not good but bad", "negative"),
        ("the food was not bad but good", "positive"),
        ("although the food was good the service was bad", "negative"),
        ("the food was good although the service was bad", "positive"),
        ("the food was good and not bad", "positive"),
    ],
)
def test_what_the_labels_mean(sentence: str, label: str) -> None:
    assert read(sentence) == label


def test_both_labels_are_as_likely_in_every_construction(parts: Parts) -> None:
    counts = Counter((one.construction, one.label) for one in parts[0])
    kinds = {construction for construction, _ in counts}
    assert kinds == {"plain", "not but", "and not", "but", "although first", "although"}
    for kind in kinds:
        good, bad = counts[kind, "positive"], counts[kind, "negative"]
        assert abs(good - bad) < 4 * np.sqrt(good + bad)


def test_a_denial_turns_a_judgement_round() -> None:
    assert judgement("food", GOOD[0]).is_good and not judgement("food", BAD[0]).is_good
    one = judgement("food", "bad", "very", denied=True)
    assert one.is_good and one.clause == "the food was not very bad"


def test_each_line_is_label_and_sentence(parts: Parts) -> None:
    for one in parts[1]:
        assert one.text.split("\t") == [one.label, one.sentence]
    assert (len(parts[0]), len(parts[1])) == (3000, 500)


def test_held_out_aspects_were_never_so_described(parts: Parts) -> None:
    def described(one: Opinion) -> set[tuple[str, str]]:
        found = set()
        aspect = ""
        for word in one.sentence.split():
            if word in GOOD + BAD:
                found.add((aspect, word))
            elif word not in ("was", "not", "very", "really", "but", "and", "the", "although"):
                aspect = word
        return found

    trained = set().union(*map(described, parts[0]))
    assert len(trained) == 126
    assert all(described(one) - trained for one in parts[1])
