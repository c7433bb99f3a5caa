"""Markov models: the documents' matrices, and counting by hand on random languages."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.counts import NgramCounts
from toymodels.markov import Markov, entropy, matrix_size
from toymodels.model import score
from toymodels.onehot import Vocabulary
from toymodels.sentences import CMD3, PAIR, Language
from toymodels.text import Text

COMMANDS, TWO = Language.of(CMD3), Language.of(PAIR)
FOUR = (
    "check whether the battery ran down please",
    "check whether the battery ran please",
    "check whether the program ran down please",
    "check whether the program ran please",
)


def cells(model, language):
    """The numbers of the matrix that are not 0, by the words of row and column."""
    text, matrix = language.vocabulary.text, model.matrix()
    shape = (len(language.vocabulary),) * model.order
    return {
        (text(np.unravel_index(row, shape)), text([column])): matrix[row, column]
        for row, column in np.argwhere(matrix)
    }


def test_first_order_of_three_commands():
    words = COMMANDS.vocabulary.words
    assert " ".join(words) == "directories files me my photos please show"
    model = Markov.fit(COMMANDS.text, 1)
    wanted = {("show", "me"): 1, ("me", "my"): 1}
    wanted |= {("my", "directories"): 0.2, ("my", "files"): 0.3, ("my", "photos"): 0.5}
    wanted |= {(word, "please"): 1 for word in ("directories", "files", "photos")}
    assert cells(model, COMMANDS) == pytest.approx(wanted)
    matrix = model.matrix()
    assert matrix.shape == (7, 7)
    assert matrix.sum(axis=1) == pytest.approx([1, 1, 1, 1, 1, 0, 1])
    my = np.eye(7)[words.index("my")]
    assert my @ matrix == pytest.approx([0.2, 0.3, 0, 0, 0.5, 0, 0])
    assert model.matrix(with_end=True)[words.index("please")].tolist() == [0] * 7 + [1]
    assert model.branches() == [(words.index("my"),)]


def test_entropy_and_sentences_of_three_commands():
    model, ids = Markov.fit(COMMANDS.text, 1), COMMANDS.vocabulary.ids
    nats = model.row_entropy(ids("show me my"))
    assert nats == pytest.approx(1.0296530140645737, abs=1e-15)
    assert nats / math.log(2) == pytest.approx(1.4854752972273344, abs=1e-15)
    assert model.row_entropy(ids("show")) == 0
    assert COMMANDS.vocabulary.text(model.continue_(ids("show"), 9)) == "me my photos please"
    likely = [COMMANDS.likelihood(model, sentence) for sentence, _ in CMD3]
    assert likely == pytest.approx([0.2, 0.3, 0.5])
    assert COMMANDS.leaked_mass(model) == pytest.approx(0)


def test_both_orders_of_the_pair():
    first, second = (Markov.fit(TWO.text, order) for order in (1, 2))
    certain = "battery ran, check whether, down please, program ran, whether the"
    wanted = {tuple(pair.split()): 1 for pair in certain.split(", ")}
    wanted |= {("ran", "down"): 0.4, ("ran", "please"): 0.6}
    wanted |= {("the", "battery"): 0.4, ("the", "program"): 0.6}
    assert cells(first, TWO) == pytest.approx(wanted)
    certain = "battery ran:down, check whether:the, program ran:please, the battery:ran, "
    certain += "the program:ran, ran down:please"
    wanted = {tuple(pair.split(":")): 1 for pair in certain.split(", ")}
    wanted |= {("whether the", "battery"): 0.4, ("whether the", "program"): 0.6}
    assert cells(second, TWO) == pytest.approx(wanted)
    matrix = second.matrix()
    assert matrix.shape == (64, 8) and (matrix.sum(axis=1) > 0).sum() == 7
    text = TWO.vocabulary.text
    assert [text(c) for c in first.branches()] == ["ran", "the"]
    assert [text(c) for c in second.branches()] == ["whether the"]


def test_likelihoods_and_leak_of_the_pair():
    first, second = (Markov.fit(TWO.text, order) for order in (1, 2))
    assert [TWO.likelihood(first, s) for s in FOUR] == pytest.approx([0.16, 0.24, 0.24, 0.36])
    assert [TWO.likelihood(second, s) for s in FOUR] == pytest.approx([0.4, 0, 0, 0.6])
    assert TWO.leaked_mass(first) == pytest.approx(0.48)
    assert TWO.leaked_mass(second) == pytest.approx(0)
    assert TWO.cross_entropy(first) == pytest.approx(1.346023334018513, abs=1e-14)
    assert TWO.cross_entropy(second) == pytest.approx(0.6730116670092565, abs=1e-14)
    assert TWO.cross_entropy(first) / math.log(2) == pytest.approx(1.9419011889093374, abs=1e-14)
    assert TWO.entropy == pytest.approx(0.6730116670092565, abs=1e-14)
    assert TWO.entropy / math.log(2) == pytest.approx(0.9709505944546686, abs=1e-14)
    for model in (first, second):
        walk = TWO.vocabulary.text(model.continue_(TWO.vocabulary.ids("check"), 20))
        assert walk == "whether the program ran please"


def test_how_large_a_matrix_would_be():
    assert matrix_size(13, 2).rows == 169
    assert matrix_size(13, 8).rows == 815_730_721
    stream = np.random.default_rng(0).integers(0, 2000, 5000)
    model = Markov.fit(Text(stream, 2000), 2)
    with pytest.raises(InputError, match=r"2,000\^2 = 4,000,000 rows.* 64\.0 GB.*sparse"):
        model.matrix()
    context, followers = next(iter(model.sparse_rows()))
    assert len(context) == 2 and sum(followers.values()) == pytest.approx(1)
    assert len(model.continue_(stream[:2], 5)) >= 1


sentence = st.lists(st.integers(0, 3), min_size=1, max_size=6)
languages = st.lists(st.tuples(sentence, st.integers(1, 5)), min_size=1, max_size=5).filter(
    lambda found: sum(len(s) for s, _ in found) > 1
)


def language_of(found):
    words = [("abcd"[i] for i in s) for s, _ in found]
    weights = [w for _, w in found]
    pairs = [(list(s), float(w)) for s, w in zip(words, weights, strict=True)]
    return Language.of(pairs, Vocabulary(tuple("abcd")))


def brute_force(found, order):
    """Followers of each context, END being 4 and what lies before a sentence too."""
    seen = {}
    for s, weight in found:
        padded = [4] * order + s + [4]
        for i in range(order, len(padded)):
            seen.setdefault(tuple(padded[i - order : i]), Counter())[padded[i]] += weight
    return {c: {t: w / r.total() for t, w in r.items()} for c, r in seen.items()}


@given(languages, st.integers(0, 4))
def test_equal_to_counting_by_hand(found, order):
    model = Markov.fit(language_of(found).text, order)
    assert dict(model.sparse_rows()) == {
        context: pytest.approx(row) for context, row in brute_force(found, order).items()
    }


@given(languages, st.integers(1, 3))
def test_the_matrix_is_the_sparse_rows_and_its_rows_sum_to_one_or_nothing(found, order):
    model = Markov.fit(language_of(found).text, order)
    matrix, whole = model.matrix(), model.matrix(with_end=True)
    assert matrix.shape == (4**order, 4)
    for sums in (matrix.sum(axis=1), whole.sum(axis=1)):
        assert (np.isclose(sums, 0) | np.isclose(sums, 1)).all()
    sparse = brute_force(found, order)
    for row in range(4**order):
        digits = tuple(int(d) for d in np.unravel_index(row, (4,) * order))
        wanted = sparse.get(digits, {})
        assert whole[row] == pytest.approx([wanted.get(t, 0) for t in range(5)])
        words = sum(share for t, share in wanted.items() if t != 4)
        assert matrix[row] == pytest.approx([wanted.get(t, 0) / (words or 1) for t in range(4)])


@given(languages)
def test_second_order_is_first_order_over_pairs(found):
    pairs = [([a * 5 + b for a, b in zip([4] + s, s + [4], strict=True)], w) for s, w in found]
    tokens = np.concatenate([[*s, 25] for s, _ in pairs])
    weights = np.concatenate([[w] * (len(s) + 1) for s, w in pairs]).astype(float)
    over_pairs = dict(Markov.fit(Text(tokens, 26, 25, weights), 1).sparse_rows())
    for (a, b), row in Markov.fit(language_of(found).text, 2).sparse_rows():
        if a == b == 4:
            continue  # before the first pair
        assert {b * 5 + t: p for t, p in row.items()} == pytest.approx(over_pairs[(a * 5 + b,)])


@settings(max_examples=50)
@given(languages, languages, st.integers(0, 3), st.sampled_from([0.0, 0.1, 1.0]))
def test_costs_and_guesses_come_from_the_distributions(found, asked, order, add):
    model = Markov.fit(language_of(found).text, order, add)
    tokens = language_of(asked).text.tokens
    history = model.history(tokens)
    probs = model.probs(history, history.everywhere)
    sums = probs.sum(axis=1)
    assert (np.isclose(sums, 1) | (np.isclose(sums, 0) & (add == 0))).all()
    with np.errstate(divide="ignore"):
        wanted = -np.log(probs[np.arange(len(tokens)), tokens])
    assert model.nats(tokens) == pytest.approx(wanted)
    assert model.predict(tokens).tolist() == probs.argmax(axis=1).tolist()


def test_a_stream_without_sentences_runs_on():
    model = Markov.fit(Text(np.array([0, 1, 0, 1, 1]), 2), 1)
    assert model.matrix() == pytest.approx(np.array([[0, 1], [0.5, 0.5]]))
    assert model.continue_(np.array([0]), 4).tolist() == [1, 0, 1, 0]  # 0 and 1 tie after 1


def test_after_an_unseen_context_there_is_nothing_to_say():
    model = Markov.fit(Text(np.array([0, 1, 2]), 4), 1)
    assert model.next_probs(np.array([3])).tolist() == [0, 0, 0, 0]
    assert model.continue_(np.array([3]), 5).tolist() == []
    assert model.nats(np.array([3, 0]))[1] == math.inf
    assert entropy(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: Text(np.array([0]), 2), "the text has 1 token,"),
        (lambda: Text(np.array([], np.int64), 2), "0 tokens"),
        (lambda: Text(np.array([0, 5]), 2), "outside of 0 to 1"),
        (lambda: Text(np.array([0, -1]), 2), "outside of 0 to 1"),
        (lambda: Text(np.array([0.0, 1.0]), 2), "whole numbers"),
        (lambda: Text(np.array([0, 1]), 2, end=2), "end token is 2"),
        (lambda: Text(np.array([0, 1]), 2, None, np.array([1.0, -1.0])), "positive weight"),
        (lambda: Text(np.array([0, 1]), 2, None, np.array([1.0])), "positive weight"),
        (lambda: Markov.fit(COMMANDS.text, -1), "order is -1"),
        (lambda: Markov.fit(COMMANDS.text, 1, -0.1), "`add` is -0.1"),
        (lambda: Markov.fit(COMMANDS.text, 1, math.nan), "`add` is nan"),
        (lambda: Markov(NgramCounts.count(COMMANDS.text, 1), 2), "counted up to 1"),
        (lambda: Markov.fit(COMMANDS.text, 1).nats(np.array([99])), "outside of 0 to 7"),
        (lambda: Markov.fit(COMMANDS.text, 1).continue_(np.array([0]), 3, -1), "seed"),
        (lambda: COMMANDS.vocabulary.ids("show me your files"), "'your'"),
        (lambda: score(Markov.fit(COMMANDS.text, 1), np.array([], np.int64)), "held-out split"),
        (lambda: score(Markov.fit(COMMANDS.text, 1), np.array([1]), 1), "after the first 1"),
    ],
)
def test_bad_input_is_refused(call, fault):
    with pytest.raises(InputError, match=fault) as refused:
        call()
    assert refused.value.next
