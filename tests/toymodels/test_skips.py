"""Second order with skips: the documents' votes and masks, and the definition by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from toymodels import model as model_file
from toymodels import skips as skips_file
from toymodels.markov import Markov
from toymodels.masks import information, selective
from toymodels.onehot import Vocabulary, one_hot
from toymodels.sentences import LOGS, Language
from toymodels.skips import MIXED_IN, SHARPNESS, Skips
from toymodels.text import Text

LANGUAGE = Language.of(LOGS)
WORDS = LANGUAGE.vocabulary.words
IDS = LANGUAGE.vocabulary.ids
PLAIN, MASKED = Skips.fit(LANGUAGE.text), selective(LANGUAGE.text)
DOWN, PLEASE = IDS("down please")
BATTERY = "check the battery log and find out whether it ran"
PROGRAM = "check the program log and find out whether it ran"


def walked(model, prompt):
    """Each word of a greedy walk, with all votes for words that are not 0."""
    steps = []
    for step in model.walk(IDS(prompt), 20):
        votes = {WORDS[i]: round(float(step.scores[i]), 9) for i in range(13) if step.scores[i]}
        steps.append((LANGUAGE.vocabulary.text([step.token]), votes))
    return steps


def test_the_vocabulary():
    words = "and battery check down find it log out please program ran the whether"
    assert " ".join(WORDS) == words
    assert [len(ids) for ids in LANGUAGE.sentences] == [11, 12]


def test_rows_of_ran():
    table, wanted = PLAIN.table(IDS("ran")), np.zeros((13, 2))
    wanted[IDS("and check find it log out the whether")] = 0.5
    wanted[IDS("battery"), 0] = wanted[IDS("program"), 1] = 1
    assert table[:13, [DOWN, PLEASE]].tolist() == wanted.tolist()
    assert np.delete(table, [DOWN, PLEASE], axis=1).sum() == 0


def test_how_many_rows_are_not_empty():
    pairs = [(context, set(votes)) for _, context, votes in PLAIN.pairs()]
    assert sum(followers != {LANGUAGE.end} for _, followers in pairs) == 64
    assert sum(context == tuple(IDS("ran")) for context, _ in pairs) == 10


@pytest.mark.parametrize(("prompt", "down", "please"), [(PROGRAM, 4, 5), (BATTERY, 5, 4)])
def test_votes_after_ran(prompt, down, please):
    votes = PLAIN.next_scores(IDS(prompt))
    assert votes[DOWN] == down and votes[PLEASE] == please and votes.sum() == 9
    assert votes == pytest.approx(PLAIN.activities(IDS(prompt)) @ PLAIN.table(IDS("ran")))


def test_greedy_walks_by_votes():
    words = ["log", "and", "find", "out", "whether", "it", "ran"]
    assert walked(PLAIN, "check the battery") == [
        *((word, {word: votes}) for votes, word in enumerate(words, 2)),
        ("down", {"down": 5, "please": 4}),
        ("please", {"please": 10}),
        ("END", {}),
    ]
    assert walked(PLAIN, "check the program")[-3:] == [
        ("ran", {"ran": 8}),
        ("please", {"down": 4, "please": 5}),
        ("END", {}),
    ]
    for model in (PLAIN, MASKED):
        for sentence in ("battery ran down please", "program ran please"):
            prompt = f"check the {sentence.split()[0]}"
            text = LANGUAGE.vocabulary.text(model.continue_(IDS(prompt), 20))
            assert f"{prompt} {text}" in {s.lower().rstrip(".") for s, _ in LOGS}


def test_of_equal_votes_the_first_word_of_the_vocabulary_is_taken():
    step = next(PLAIN.walk(IDS("check the"), 1))
    assert step.scores[IDS("battery program")].tolist() == [0.5, 0.5]
    assert WORDS[step.token] == "battery"


def test_the_mask_is_learned_and_leaves_the_deciding_words_alone():
    battery = [1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1]
    program = [1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1]
    mask = [0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert PLAIN.activities(IDS(BATTERY))[:13].tolist() == battery
    assert PLAIN.activities(IDS(PROGRAM))[:13].tolist() == program
    assert MASKED.mask(IDS("ran"))[:13].tolist() == mask
    for prompt, activities, down, please in ((BATTERY, battery, 1, 0), (PROGRAM, program, 0, 1)):
        masked = np.array(activities) * mask
        assert masked.sum() == 1
        votes = MASKED.next_scores(IDS(prompt))
        assert (votes[DOWN], votes[PLEASE]) == (down, please) and votes.sum() == 1
        by_hand = masked @ PLAIN.table(IDS("ran"))[:13]
        assert votes == pytest.approx(by_hand)
    found = [(WORDS[u], WORDS[c[0]], votes) for u, c, votes in MASKED.pairs()]
    assert found == [("battery", "ran", {DOWN: 1}), ("program", "ran", {PLEASE: 1})]


def test_a_one_hot_query_pulls_its_mask_out_of_all_masks():
    masks = MASKED.masks()[:13, :13]
    query = one_hot(IDS("ran")[0], 13)
    assert np.flatnonzero(query).tolist() == [10]
    assert np.flatnonzero(query @ masks).tolist() == [1, 9]
    assert masks.sum() == 2  # no other word asks for anything


def test_information_is_what_a_word_tells():
    told = dict(zip(PLAIN.rows.keys.tolist(), information(PLAIN), strict=True))
    ran = int(IDS("ran")[0])
    number = next(k for k in range(99) if PLAIN.counts.contexts.tokens(1, k) == (ran,))
    of = {w: told.get(number * 14 + i, 0.0) for i, w in enumerate(WORDS)}
    assert of.pop("battery") == of.pop("program") == pytest.approx(0.5 * np.log(2))
    assert list(of.values()) == pytest.approx([0] * 11, abs=1e-15)


sentence = st.lists(st.integers(0, 4), min_size=2, max_size=8)
languages = st.lists(st.tuples(sentence, st.integers(1, 4)), min_size=1, max_size=5)


def text_of(found):
    tokens = np.concatenate([[*s, 5] for s, _ in found])
    weights = np.concatenate([[w] * (len(s) + 1) for s, w in found]).astype(float)
    return Text(tokens, 6, 5, weights)


def earlier_words(before, order, window):
    reach = before[-window:] if window else before
    return set(reach[: max(0, len(reach) - order)])


def padded(before, order):
    return tuple(([5] * order + before)[-order:])


def brute_force(found, order, window):
    seen = {}
    for s, weight in found:
        s = s + [5]
        for t in range(len(s)):
            for u in earlier_words(s[:t], order, window):
                seen.setdefault((u, padded(s[:t], order)), Counter())[s[t]] += weight
    return {c: {t: w / r.total() for t, w in r.items()} for c, r in seen.items()}


@settings(max_examples=40)
@given(languages, sentence, st.integers(1, 2), st.sampled_from([None, 3, 5]))
def test_votes_are_the_definition(found, prompt, order, window):
    model = Skips.fit(text_of(found), order, window)
    rows = brute_force(found, order, window)
    assert {(u, context): votes for u, context, votes in model.pairs()} == {
        feature: pytest.approx(votes) for feature, votes in rows.items()
    }
    for t in range(len(prompt) + 1):
        before, wanted = prompt[:t], np.zeros(6)
        for u in earlier_words(before, order, window):
            for token, share in rows.get((u, padded(before, order)), {}).items():
                wanted[token] += share
        history = model.history(np.array(prompt))
        assert model.votes(history, np.array([t]))[0] == pytest.approx(wanted)
        if wanted.any():
            assert model.next_scores(np.array(before, np.int64)) == pytest.approx(wanted)


@settings(max_examples=30)
@given(languages, sentence, st.integers(1, 2), st.booleans())
def test_votes_become_distributions(found, asked, order, masked):
    text = text_of(found)
    model = (selective if masked else Skips.fit)(text, order)
    tokens = np.array([*asked, 5])
    history = model.history(tokens)
    probs = model.probs(history, history.everywhere)
    assert probs.sum(axis=1) == pytest.approx(np.ones(len(tokens))) and (probs > 0).all()
    assert model.nats(tokens) == pytest.approx(-np.log(probs[np.arange(len(tokens)), tokens]))
    scores = model.scores(history, history.everywhere)
    assert model.predict(tokens).tolist() == scores.argmax(axis=1).tolist()
    assert model.sharpness in SHARPNESS and model.mixed_in in MIXED_IN
    votes, plain = model.votes(history, history.everywhere), model.without_votes
    for t in np.flatnonzero(votes.any(axis=1)):
        sharp = votes[t] ** model.sharpness
        kept = (1 - model.mixed_in) * sharp / sharp.sum()
        rest = model.mixed_in * plain.probs(history, np.array([t]))[0]
        assert probs[t] == pytest.approx(kept + rest)


@pytest.mark.slow
@given(languages, sentence, st.integers(1, 2), st.integers(1, 30))
def test_portions_and_sparse_votes_change_nothing(found, asked, order, size):
    model, tokens = Skips.fit(text_of(found), order), np.array([*asked, 5, *asked, 5])
    nats, history = model.nats(tokens), model.history(tokens)
    scores = model.scores(history, history.everywhere)
    for small_vocab in (0, 6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(skips_file, "_SMALL_VOCAB", small_vocab)
            patch.setattr(skips_file, "_PLACES", size)
            patch.setattr(model_file, "_CELLS", size)
            assert model.nats(tokens) == pytest.approx(nats)
            guess = model.predict(tokens)
        taken = scores[np.arange(len(tokens)), guess]
        assert taken == pytest.approx(scores.max(axis=1))  # sums may differ in their last bit


@settings(max_examples=20)
@given(languages, st.integers(1, 2))
def test_a_mask_only_takes_votes_away(found, order):
    text = text_of(found)
    plain, masked = Skips.fit(text, order), selective(text, order)
    rows = {(u, c): votes for u, c, votes in plain.pairs()}
    kept = {(u, c): votes for u, c, votes in masked.pairs()}
    assert kept == {feature: rows[feature] for feature in kept}
    assert masked.parameters <= plain.parameters and masked.memory_bytes <= plain.memory_bytes
    for _, context, _ in plain.pairs():
        context = np.array([t for t in context if t != 5])
        assert (masked.mask(context) <= plain.mask(context)).all()


@pytest.mark.slow
@settings(max_examples=25)
@given(languages)
def test_votes_become_the_distributions_that_cost_least_on_the_training_text(found):
    text = text_of(found)
    model = Skips.fit(text)
    least = text.weight @ model.nats(text.tokens)
    for model.sharpness in SHARPNESS:
        for model.mixed_in in MIXED_IN:
            assert text.weight @ model.nats(text.tokens) >= least - 1e-9


def test_the_votes_beat_the_chain_where_it_is_the_far_word_that_decides():
    for model, right in ((Markov.fit(LANGUAGE.text, 2), 1), (PLAIN, 2), (MASKED, 2)):
        guesses = [model.next_scores(IDS(p)).argmax() for p in (BATTERY, PROGRAM)]
        assert sum(g == w for g, w in zip(guesses, (DOWN, PLEASE), strict=True)) == right


LARGE = Skips.fit(Text(np.arange(30), 5000), window=4)


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: Skips.fit(Text(np.array([0, 1, 0]), 2)), "not made of sentences"),
        (lambda: Skips.fit(LANGUAGE.text, 0), "0 words"),
        (lambda: Skips.fit(LANGUAGE.text, 2, 2), "window of 2"),
        (lambda: Skips.fit(LANGUAGE.text, 2).masks(), "contexts are of 2 words"),
        (lambda: LARGE.masks(), r"5,000 rows and columns takes 0\.2 GB"),
        (lambda: LARGE.table(np.array([1])), "pairs"),
        (lambda: PLAIN.votes(PLAIN.history(IDS("check the engine")), np.array([1])), "engine"),
    ],
)
def test_bad_input_is_refused(call, fault):
    with pytest.raises(InputError, match=fault):
        call()


def test_a_stream_with_a_window():
    model = Skips.fit(Text(np.array([0, 1, 2, 0, 1, 3] * 3), 4), 1, window=3)
    assert model.reach == 3 and PLAIN.reach is None
    assert {(u, c) for u, c, _ in model.pairs() if c == (1,)} == {(0, (1,)), (2, (1,)), (3, (1,))}
    assert Vocabulary(("a",)).ids("a").tolist() == [0]
