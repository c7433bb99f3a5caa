"""Learning merges: equal to counting anew for every merge, under the rule of every peer."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.text.bpe import naive
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe import merging
from tinygrad_tf.text.bpe.merging import Merge, learn_merges

BYTES = [bytes([byte]) for byte in range(256)]
# Few letters make ties, runs and overlaps common; a few words of any bytes reach the rest.
dense = st.lists(st.binary(max_size=14).map(lambda w: bytes(97 + b % 3 for b in w)), max_size=12)
corpora = dense | st.lists(st.binary(max_size=8), max_size=6)
limits = st.integers(0, 30)
frequencies = st.integers(1, 4)


# Few positions are handled as lists, many as arrays: both must be right for any number.
each_way = pytest.mark.parametrize(
    "few", [pytest.param(0, id="arrays"), pytest.param(3, id="mixed"), pytest.param(99, id="lists")]
)


def learned(words, merges, ties="lowest-id", min_frequency=1, few=merging._FEW, **options):
    """The merges (left, right, count) of a corpus of words of bytes."""
    counts = Counter(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_FEW", few)
        found = learn_merges(
            list(counts),
            list(counts.values()),
            first_id=256,
            merges=merges,
            ties=ties,
            min_frequency=min_frequency,
            names=BYTES if ties == "largest" else None,
            **options,
        )
    assert [m.new for m in found] == list(range(256, 256 + len(found)))
    return [(m.left, m.right, m.count) for m in found]


def spelled(merges):
    tokens = list(BYTES)
    for left, right, _ in merges:
        tokens.append(tokens[left] + tokens[right])
    return [(tokens[left], tokens[right], count) for left, right, count in merges]


def split(words):
    return [[word[i : i + 1] for i in range(len(word))] for word in words]


@pytest.mark.slow
@each_way
@settings(max_examples=300)
@given(corpora, limits, frequencies)
@example([b"aaaaaaa"], 9, 1)
def test_lowest_id_is_the_rule_of_rustbpe_and_bpeasy(few, words, merges, least):
    expected = naive.learn(words, merges, naive.lowest, naive.numbered(256), least)
    assert learned(words, merges, "lowest-id", least, few) == expected


@each_way
@settings(max_examples=300)
@given(corpora, limits, frequencies)
def test_first_seen_is_the_rule_of_minbpe(few, words, merges, least):
    expected = naive.learn(words, merges, naive.first_seen, naive.numbered(256), least)
    assert learned(words, merges, "first-seen", least, few) == expected


@pytest.mark.slow
@each_way
@settings(max_examples=300)
@given(corpora, limits)
def test_first_seen_is_the_rule_of_tiktokens_trainer(few, words, merges):
    expected = naive.learn(split(words), merges, naive.first_seen, naive.joined)
    assert spelled(learned(words, merges, "first-seen", few=few)) == expected


@pytest.mark.slow
@each_way
@settings(max_examples=300)
@given(corpora, limits, frequencies)
def test_largest_by_bytes_is_the_rule_of_cs336(few, words, merges, least):
    expected = naive.learn(split(words), merges, naive.largest, naive.joined, least)
    assert spelled(learned(words, merges, "largest", least, few)) == expected


symbols = st.sampled_from(["a", "b", "\0", "é", "￿", "\U0010ffff", "\udc80", "</w>"])


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.lists(symbols, max_size=8), max_size=8), limits)
def test_largest_by_strings_is_the_rule_of_subword_nmt(words, merges):
    names = sorted({name for word in words for name in word})
    found = learn_merges(
        [[names.index(name) for name in word] for word in words],
        [1] * len(words),
        first_id=len(names),
        merges=merges,
        ties="largest",
        names=names,
    )
    tokens = list(names)
    for m in found:
        tokens.append(tokens[m.left] + tokens[m.right])
    pairs = [(tokens[m.left], tokens[m.right]) for m in found]
    expected = naive.learn(words, merges, naive.largest, naive.joined)
    assert [(*pair, m.count) for pair, m in zip(pairs, found, strict=True)] == expected


wide = st.sampled_from([0, 1, 256, 65_536, 65_537, 131_072])


@pytest.mark.slow
@each_way
@given(st.lists(st.lists(wide, max_size=9), max_size=9), limits)
def test_symbols_may_be_many(few, words, merges):
    """More than 16 bits hold, as characters and late merges are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_FEW", few)
        found = learn_merges(words, [1] * len(words), first_id=200_000, merges=merges)
    expected = naive.learn(words, merges, naive.lowest, naive.numbered(200_000))
    assert [(m.left, m.right, m.count) for m in found] == expected


@given(dense, limits, st.sampled_from(["lowest-id", "first-seen", "largest"]), st.randoms())
def test_a_repeated_word_is_a_word_with_a_count(words, merges, ties, random):
    """Also, the merges fewer are the first of the merges more."""
    counts = [random.randint(1, 5) for _ in words]
    names = {"names": BYTES} if ties == "largest" else {}
    once = learn_merges(words, counts, first_id=256, merges=merges, ties=ties, **names)
    repeated = [word for word, n in zip(words, counts, strict=True) for _ in range(n)]
    assert [(m.left, m.right, m.count) for m in once] == learned(repeated, merges, ties)
    assert [(m.left, m.right, m.count) for m in once[:5]] == learned(repeated, min(merges, 5), ties)


@given(dense)
def test_in_the_end_every_word_is_one_token(words):
    found = learned(words, 10**6)
    tokens = {(left, right): 256 + i for i, (left, right, _) in enumerate(found)}
    for word in filter(None, words):
        ids = list(word)
        for (left, right), new in tokens.items():
            ids = naive.merge(ids, left, right, new)
        assert len(ids) == 1


def test_the_example_of_wikipedia():
    word = b"aaabdaaabac"
    assert learned([word], 3) == [(97, 97, 4), (97, 98, 2), (256, 257, 2)]
    assert learned([word], 3, "first-seen") == [(97, 97, 4), (256, 97, 2), (257, 98, 2)]
    for ties in ("lowest-id", "first-seen"):
        ids = list(word)
        for new, (left, right, _) in enumerate(learned([word], 3, ties), 256):
            ids = naive.merge(ids, left, right, new)
        assert ids == [258, 100, 258, 97, 99]


@each_way
def test_a_run_of_n_holds_n_minus_1_pairs_and_is_replaced_from_the_left(few):
    assert learned([b"aaaaaaa"], 9, few=few) == [
        (97, 97, 6),
        (256, 256, 2),
        (256, 97, 1),
        (257, 258, 1),
    ]


@each_way
def test_a_live_pair_is_not_lost_behind_a_stale_one(few):
    found = learned([b"ab", b"abc", b"bcd", b"bc"], 9, few=few)
    assert found == [(98, 99, 3), (97, 98, 1), (97, 256, 1), (256, 100, 1)]


@each_way
def test_ties_in_a_word_without_splits(few):
    word = [b"bbbaaaddddcccc"]
    assert learned(word, 4, few=few) == [(99, 99, 3), (100, 100, 3), (97, 97, 2), (98, 98, 2)]
    first = [(100, 100, 3), (99, 99, 3), (98, 98, 2), (97, 97, 2)]
    assert learned(word, 4, "first-seen", few=few) == first


@each_way
def test_a_skipped_pair_stays_apart(few):
    found = learned(
        [b"abab", b"abc"], 9, few=few, skip=lambda left, right: (left, right) == (97, 98)
    )
    assert found[0] == (98, 97, 1)
    assert (97, 98) not in {pair[:2] for pair in found}


def test_each_merge_is_told_as_it_is_made():
    told = []
    found = learn_merges([b"abab"], [2], first_id=256, merges=9, on_merge=told.append)
    assert told == found == [Merge(97, 98, 256, 4), Merge(256, 256, 257, 2)]


def test_counts_are_exact_beyond_floating_point():
    n = 2**60 + 1
    assert learn_merges([b"ab"], [n], first_id=256, merges=1)[0].count == n


@pytest.mark.parametrize("kind", [list, tuple, bytes, np.array])
def test_any_sequences_of_symbols_will_do(kind):
    words = [kind([1, 0, 1]), kind([0, 1])]
    found = learn_merges(words, [1, 2], first_id=2, merges=1)
    assert found == [Merge(0, 1, 2, 3)]


@pytest.mark.parametrize(
    ("words", "counts", "options", "message"),
    [
        ([[0, 5]], [1], {}, "symbols 0 to 5"),
        ([[-1, 0]], [1], {}, "symbols -1 to 0"),
        ([[0, 1]], [], {}, "1 words have 0 counts"),
        ([[0, 1]], [0], {}, "counts are below 1"),
        ([[0, 1]], [2**62], {}, "in all beyond 64 bits"),
        ([[0, 1]], [1], {"min_frequency": 0}, "minimum frequency is 0"),
        ([[0, 1]], [1], {"ties": "random"}, "no tie rule 'random'"),
        ([[0, 1]], [1], {"ties": "largest"}, "a name for each of the 2 base symbols"),
    ],
)
def test_bad_input_is_refused(words, counts, options, message):
    with pytest.raises(InputError, match=message):
        learn_merges(words, counts, first_id=2, merges=1, **options)


def test_a_long_word_costs_no_more_than_its_symbols(few_seconds):
    """A million drawn letters, unsplit: 200 merges, the first as on a prefix by the book."""
    rng = np.random.default_rng(0)
    letters = rng.choice(np.frombuffer(b"ACGT", dtype=np.uint8), 1_000_000).tobytes()
    assert len(few_seconds(lambda: learned([letters], 200))) == 200
    prefix = letters[:2000]
    expected = naive.learn([prefix], 200, naive.lowest, naive.numbered(256))
    assert learned([prefix], 200) == expected


@pytest.mark.parametrize("letters", [b"a", b"ab", b" "])
def test_a_long_repetition_is_learned_by_doubling(few_seconds, letters):
    found = few_seconds(lambda: learned([letters * (500_000 // len(letters))], 1000))
    assert 15 < len(found) < 40


@pytest.fixture
def few_seconds():
    """Run a function that a quadratic way would take minutes for."""
    from time import process_time

    def run(function):
        begun = process_time()
        result = function()
        assert process_time() - begun < 10
        return result

    return run
