"""Smoothed n-grams: known figures on known texts, and their definitions by hand."""

import math
import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels.counts import NgramCounts, Rows
from toymodels.markov import Markov
from toymodels.model import score
from toymodels.ngrams import kneser_ney, witten_bell
from toymodels.sentences import PAIR, Language
from toymodels.text import Text

V = 4
streams = st.lists(st.integers(0, V - 1), min_size=2, max_size=40)


def stream(tokens, end):
    return Text(np.array(tokens), V, end)


def contexts(tokens, order, end):
    """The context of each token, by the rule: padding before the beginning of a sentence."""
    pad, found, before = V if end is None else end, [], []
    for token in tokens:
        found.append(tuple(([pad] * order + before)[len(before) :]))
        before = [] if token == end else [*before, token]
    return found


def table(tokens, order, end):
    seen = {}
    for context, token in zip(contexts(tokens, order, end), tokens, strict=True):
        seen.setdefault(context, Counter())[token] += 1
    return seen


def witten_bell_by_hand(tables, context, token):
    shorter = witten_bell_by_hand(tables[:-1], context[1:], token) if len(tables) > 1 else 1 / V
    row = tables[-1].get(context)
    if row is None:
        return shorter
    return (row[token] + len(row) * shorter) / (row.total() + len(row))


def kneser_ney_by_hand(tables, context, token):
    def ways(longer):
        return {
            c: Counter({t: sum(1 for d, r in longer.items() if d[1:] == c and t in r) for t in row})
            for c, row in {d[1:]: Counter(k for e in longer if e[1:] == d[1:] for k in longer[e])
                           for d in longer}.items()
        }  # fmt: skip

    levels = [ways(longer) for longer in tables[1:]] + [tables[-1]]
    p = 1 / V
    for length, level in enumerate(levels):
        counts = Counter(n for row in level.values() for n in row.values())
        d = counts[1] / (counts[1] + 2 * counts[2]) if counts[1] and counts[2] else 0.5
        row = level.get(context[len(context) - length :])
        if row:
            p = (max(row[token] - d, 0) + d * len(row) * p) / row.total()
    return p


@pytest.mark.parametrize(
    ("kind", "by_hand"), [(witten_bell, witten_bell_by_hand), (kneser_ney, kneser_ney_by_hand)]
)
@given(data=st.data(), train=streams, asked=streams, end=st.sampled_from([None, 2]))
def test_smoothed_models_are_their_definitions(kind, by_hand, data, train, asked, end):
    order = data.draw(st.integers(0, 3 if kind is witten_bell else 2))
    model = kind(NgramCounts.count(stream(train, end), 3), order)
    tables = [table(train, k, end) for k in range(order + 1)]
    wanted = [
        -math.log(by_hand(tables, context, token))
        for context, token in zip(contexts(asked, order, end), asked, strict=True)
    ]
    assert model.nats(np.array(asked)) == pytest.approx(wanted)


@given(streams, streams, st.integers(0, 3), st.sampled_from([0.03, 1.0]))
def test_adding_is_its_definition(train, asked, order, add):
    model = Markov(NgramCounts.count(stream(train, None), 3), order, add)
    rows = table(train, order, None)
    wanted = []
    for context, token in zip(contexts(asked, order, None), asked, strict=True):
        row = rows.get(context, Counter())
        wanted.append(-math.log((row[token] + add) / (row.total() + add * V)))
    assert model.nats(np.array(asked)) == pytest.approx(wanted)


@settings(max_examples=40)
@given(streams, streams, st.integers(0, 3), st.sampled_from([None, 0]))
def test_distributions_sum_to_one_and_costs_and_guesses_come_from_them(train, asked, order, end):
    counts, tokens = NgramCounts.count(stream(train, end), 3), np.array(asked)
    for model in (witten_bell(counts, order), kneser_ney(counts, order), Markov(counts, order, 1)):
        history = model.history(tokens)
        probs = model.probs(history, history.everywhere)
        assert probs.sum(axis=1) == pytest.approx(np.ones(len(tokens)))
        taken = probs[np.arange(len(tokens)), tokens]
        assert model.nats(tokens) == pytest.approx(-np.log(taken))
        assert model.predict(tokens).tolist() == probs.argmax(axis=1).tolist()
        assert model.next_probs(tokens[:-1]) == pytest.approx(probs[-1])
        got = score(model, tokens)
        assert got.mean_nats == pytest.approx(-np.log(taken).mean())
        assert got.accuracy == pytest.approx((probs.argmax(axis=1) == tokens).mean())


@pytest.mark.parametrize("seed", range(5))
def test_the_best_guess_may_come_from_any_shorter_context(seed):
    """Many tokens, a few of them frequent: often one wins that did not follow the context."""
    draws = np.random.default_rng(seed).zipf(1.3, 1200)
    tokens = np.minimum(draws - 1, 39)
    counts = NgramCounts.count(Text(tokens[:800], 40), 3)
    for model in (witten_bell(counts, 3), kneser_ney(counts, 3)):
        history = model.history(tokens[800:])
        probs = model.probs(history, history.everywhere)
        assert model.predict(tokens[800:]).tolist() == probs.argmax(axis=1).tolist()


@given(streams, streams, st.integers(1, 3))
def test_no_model_looks_further_back_than_its_reach(train, asked, order):
    counts = NgramCounts.count(stream(train, None), 3)
    for model in (witten_bell(counts, order), kneser_ney(counts, order)):
        assert model.reach == order
        near = np.array(asked)[-order:]
        if len(asked) > order:
            assert model.next_probs(np.array(asked)) == pytest.approx(model.next_probs(near))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 5)), max_size=30))
def test_sparse_rows_hold_a_matrix(entries):
    dense = np.zeros((10, V))
    for key, token, weight in entries:
        dense[key, token] += weight
    halves = [entries[::2], entries[1::2]]
    portions = [tuple(np.array(x, np.int64).reshape(-1, 3).T) for x in halves]
    rows = Rows.count([(k, t, w.astype(float)) for k, t, w in portions], V)
    found, keys = np.zeros((10, V)), np.arange(10)
    rows.add_to(found, rows.find(keys))
    assert found.tolist() == dense.tolist()
    assert rows.entries == np.count_nonzero(dense) and len(rows) == dense.any(axis=1).sum()
    for token in range(V):
        got = rows.weight_of(rows.find(keys), np.full(10, token))
        assert got.tolist() == dense[:, token].tolist()
    assert rows.best().tolist() == dense[dense.any(axis=1)].argmax(axis=1).tolist()
    assert rows.shares().total == pytest.approx(np.ones(len(rows)))
    half = rows.select(np.arange(0, len(rows), 2))
    assert half.keys.tolist() == rows.keys[::2].tolist()
    assert half.total.tolist() == rows.total[::2].tolist()


def test_a_large_vocabulary_takes_what_occurs_and_no_more():
    tokens = np.random.default_rng(1).integers(0, 100_000, 3000)
    counts = NgramCounts.count(Text(tokens, 100_000), 6)
    model = witten_bell(counts, 6)
    assert model.memory_bytes < 3e6 and model.parameters <= 7 * 3000
    assert np.isfinite(model.nats(tokens[:50])).all()
    assert counts.contexts.tokens(6, 0)[-1] < 100_000


def test_what_cannot_be_is_refused():
    counts = NgramCounts.count(Language.of(PAIR).text, 2)
    with pytest.raises(InputError, match="counted up to 2"):
        witten_bell(counts, 3)
    with pytest.raises(InputError, match="sentences have weights"):
        kneser_ney(counts, 2)
    with pytest.raises(InputError, match="too many to be numbered"):
        Rows.count([(np.array([2**61]), np.array([0]), np.ones(1))], 1000)


@pytest.fixture(scope="session")
def shakespeare(shared_data):
    text = (shared_data / "tinyshakespeare.txt").read_text(encoding="utf-8")
    letters, tokens = np.unique(np.array(list(text)), return_inverse=True)
    cut = int(0.9 * len(tokens))
    begun = time.process_time()
    counts = NgramCounts.count(Text(tokens[:cut], len(letters)), 6)
    return counts, tokens[cut:], time.process_time() - begun


@pytest.mark.slow
def test_figures_on_tinyshakespeare(shakespeare):
    counts, held_out, _ = shakespeare
    adding = {(1, 1): 2.4819, (2, 1): 2.0684, (2, 0.1): 2.0458, (3, 1): 1.9526, (3, 0.03): 1.7793}
    adding |= {(4, 1): 2.1737, (4, 0.03): 1.7503, (5, 1): 2.5931, (5, 0.03): 1.9790}
    for (order, add), nats in adding.items():
        found = Markov(counts, order, add).nats(held_out)[order:].mean()
        assert found == pytest.approx(nats, abs=6e-5)
    for order, nats in {2: 2.0492, 3: 1.7738, 4: 1.6688, 5: 1.6980}.items():
        found = witten_bell(counts, order).nats(held_out)[order:].mean()
        assert found == pytest.approx(nats, abs=6e-5)
    best = min((witten_bell(counts, k).nats(held_out).mean(), k) for k in range(7))
    assert best[1] == 4
    assert kneser_ney(counts, 5).nats(held_out).mean() < best[0] - 0.1


@pytest.mark.slow
def test_all_orders_are_counted_in_seconds_and_megabytes(shakespeare):
    counts, _, seconds = shakespeare
    assert seconds < 10
    held = sum(rows.memory_bytes for rows in counts.rows) + counts.contexts.memory_bytes(6)
    assert held < 100e6


def test_figures_on_names(shared_data):
    names = (shared_data / "names.txt").read_text(encoding="utf-8").splitlines()
    random.Random(42).shuffle(names)
    cuts = int(0.8 * len(names)), int(0.9 * len(names))

    def tokens(part):
        return np.array([ord(c) - ord("`") for name in part for c in name + "`"])

    train, dev = tokens(names[: cuts[0]]), tokens(names[cuts[0] : cuts[1]])
    counts = NgramCounts.count(Text(train, 27, 0), 3)
    wanted = {1: (2.4542, 2.4531), 2: (2.1874, 2.2225), 3: (1.9187, 2.1018)}
    for order, nats in wanted.items():
        model = Markov(counts, order, 0.1)
        found = model.nats(train).mean(), model.nats(dev).mean()
        assert found == pytest.approx(nats, abs=5e-5)
