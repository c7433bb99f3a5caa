"""Encoding equals its definition, whatever the table, and stays fast whatever the text."""

import random
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.bpe.oracle import RANDOM_TOKENS, by_pairs, by_ranks, merge_lists, rank_table
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import to_chars
from tinygrad_tf.text.bpe.encoding import Merger, PieceEncoder, unreachable
from tinygrad_tf.text.bpe.ranks import ambiguous, merges_of_ranks
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

LETTERS = st.text("abc", max_size=30)
LONG = st.integers(1, 40).flatmap(lambda n: st.text("abc", min_size=n, max_size=n))


def byte_table(merges, **options):
    """A table of merges with ids in an order of their own, and their products once each."""
    made = dict.fromkeys(left + right for left, right in merges)
    plain = BPETable.from_merges([]).vocab
    vocab = plain | {token: 256 + i for i, token in enumerate(made)}
    return BPETable(vocab=vocab, merges=merges, pattern="none", **options).checked()


def test_runs_merge_from_the_left():
    encoder = PieceEncoder(byte_table([("a", "a")]))
    assert encoder.ids("aaa") == [256, 97]
    assert encoder.ids("aaaa") == [256, 256]
    assert encoder.ids("aaaaa") == [256, 256, 97]


@given(merge_lists(), LETTERS)
def test_short_pieces_merge_as_defined(merges, text):
    table = byte_table(merges)
    assert PieceEncoder(table).ids(text) == [table.vocab[t] for t in by_pairs(text, merges)]


@given(merge_lists(), st.lists(st.sampled_from(["a", "b", "c", "ab", "abc"]), max_size=60))
def test_long_pieces_merge_as_defined(merges, parts):
    text = "".join(parts)
    table = byte_table(merges)
    ids = [table.vocab[char] for char in text]
    found = Merger(table).merged(ids, keep=lambda: True)  # which always takes the queue
    assert found == [table.vocab[token] for token in by_pairs(text, merges)]


@pytest.mark.slow
@given(merge_lists(), st.text("abc", min_size=49, max_size=120))
def test_pieces_beyond_the_scan_merge_as_defined(merges, text):
    table = byte_table(merges)
    assert PieceEncoder(table).ids(text) == [table.vocab[t] for t in by_pairs(text, merges)]


@given(RANDOM_TOKENS, st.text("abc", max_size=60))
def test_ranks_merge_as_defined(tokens, text):
    table = rank_table(tokens)
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token: 256 + i for i, token in enumerate(tokens)}
    assert PieceEncoder(table).ids(text) == by_ranks(text.encode(), ranks)


@given(RANDOM_TOKENS, st.text("abc", max_size=40))
def test_ranks_as_merges_give_the_same_ids(tokens, text):
    table = rank_table(tokens)
    if ambiguous(table.vocab) is None:
        merges = merges_of_ranks(table.vocab)
        pairs = BPETable(table.vocab, merges, pattern="none", ignore_merges=True).checked()
        assert PieceEncoder(pairs).ids(text) == PieceEncoder(table).ids(text)


def test_overlapping_tokens_of_different_halves_are_seen_to_be_ambiguous():
    table = rank_table([b"aba", b"ab", b"ba"])
    assert ambiguous(table.vocab) == "aba"
    assert ambiguous(rank_table([b"ab", b"ba", b"aba"]).vocab) is None


def test_ranks_reach_a_token_by_parts_of_higher_rank():
    table = rank_table([b"abc", b"bc"])
    pairs = BPETable(table.vocab, merges_of_ranks(table.vocab), ignore_merges=True)
    for encoder in (PieceEncoder(table), PieceEncoder(pairs)):
        assert encoder.ids("zabc") == [122, 256]


def test_ranks_are_of_joined_bytes_not_of_pairs():
    by_rank = PieceEncoder(rank_table([b"bc", b"ab", b"abc"]))
    assert by_rank.ids("zabc") == [122, 258]
    pairs = PieceEncoder(byte_table([("b", "c"), ("a", "b"), ("ab", "c")]))
    assert pairs.ids("zabc") == [122, 97, 256]


def test_unreachable_tokens_are_taken_whole_but_never_merged():
    encoder = PieceEncoder(rank_table([b":.", b".:", b".:.:"]))
    assert encoder.ids(".:.:") == [258]
    assert encoder.ids("a.:.:") == [97, 46, 256, 58]


def test_a_piece_that_is_a_token_is_taken_whole_only_where_merges_are_ignored():
    vocab = dict(BPETable.from_merges([]).vocab) | {"abc": 256}
    assert PieceEncoder(BPETable(vocab, ignore_merges=True)).ids("abc") == [256]
    assert PieceEncoder(BPETable(vocab)).ids("abc") == [97, 98, 99]
    assert unreachable(BPETable(vocab)) == "abc"
    assert unreachable(BPETable.from_merges([("a", "b"), ("ab", "c")])) is None


@given(merge_lists(), st.lists(st.text("abc", min_size=1, max_size=6), max_size=30))
def test_many_pieces_are_the_single_ones_in_turn(merges, pieces):
    encoder = PieceEncoder(byte_table(merges))
    alone = [i for piece in pieces for i in encoder.ids(piece)]
    for _ in range(2):  # the second time from memory
        assert memoryview(encoder.packed(pieces)).cast("i").tolist() == alone
        assert encoder.count(pieces) == len(alone)


@pytest.mark.slow
@given(
    merge_lists(),
    st.lists(st.text("abc", min_size=1, max_size=12) | st.text("ab", min_size=60, max_size=70)),
)
def test_pieces_side_by_side_are_the_single_ones(merges, pieces):
    encoder = PieceEncoder(byte_table(merges))
    alone = [i for piece in pieces for i in encoder.ids(piece)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinygrad_tf.text.bpe.encoding._MANY", 1)
        assert memoryview(encoder.packed(pieces)).cast("i").tolist() == alone


@given(RANDOM_TOKENS, st.lists(st.text("abc", min_size=1, max_size=12), max_size=30))
def test_pieces_side_by_side_merge_by_rank(tokens, pieces):
    encoder = PieceEncoder(rank_table(tokens))
    alone = [i for piece in pieces for i in encoder.ids(piece)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinygrad_tf.text.bpe.encoding._MANY", 1)
        assert memoryview(encoder.packed(pieces)).cast("i").tolist() == alone


def test_words_side_by_side_keep_their_unknown_characters(monkeypatch):
    monkeypatch.setattr("tinygrad_tf.text.bpe.encoding._MANY", 1)
    table = BPETable.classical(["a", "b", "</w>"], [("a", "b"), ("b", "</w>")])
    encoder = PieceEncoder(table)
    ids = memoryview(encoder.packed(["ab", "xb", "ax", "x"])).cast("i").tolist()
    assert ids == [3, 2, -1, 4, 0, -1, 2, -1, 2]


def test_the_memory_of_pieces_is_bounded(monkeypatch):
    monkeypatch.setattr("tinygrad_tf.text.bpe.encoding._CACHE_PIECES", 50)
    encoder = PieceEncoder(byte_table([("a", "b")]))
    for block in range(20):
        pieces = [f"ab{n}" for n in range(30 * block, 30 * block + 30)] + ["ab" * 500]
        ids = memoryview(encoder.packed(pieces)).cast("i").tolist()
        assert ids == [i for piece in pieces for i in encoder.ids(piece)]
        assert len(encoder._cache) <= 50
        assert "ab" * 500 not in encoder._cache


DROPPED = "the old man and the sea, the older man and the oldest sea " * 3


def dropout_tokenizer():
    merges = [("t", "h"), ("th", "e"), ("o", "l"), ("ol", "d"), ("Ġ", "old"), ("a", "n")]
    return BPETokenizer(BPETable.from_merges(merges))


def test_dropout_of_nothing_is_plain_and_of_all_merges_nothing():
    tokenizer = dropout_tokenizer()
    plain = tokenizer.encode(DROPPED).tolist()
    assert tokenizer.encode(DROPPED, dropout=0, seed=3).tolist() == plain
    assert tokenizer.encode(DROPPED, dropout=1).tolist() == list(DROPPED.encode())


def test_dropout_follows_its_seed_and_leaves_no_memory():
    tokenizer = dropout_tokenizer()
    plain = tokenizer.encode(DROPPED).tolist()
    first = tokenizer.encode(DROPPED, dropout=0.5, seed=7).tolist()
    assert first != plain and tokenizer.decode(first) == DROPPED
    assert tokenizer.encode(DROPPED, dropout=0.5, seed=7).tolist() == first
    assert tokenizer.encode(DROPPED, dropout=0.5, seed=8).tolist() != first
    assert tokenizer.encode(DROPPED).tolist() == plain
    with pytest.raises(InputError, match=r"1\.5"):
        tokenizer.encode("a", dropout=1.5)


def test_dropout_misses_each_chance_with_its_probability_and_gives_it_again():
    tokenizer = BPETokenizer(BPETable.from_merges([("a", "b"), ("c", "d")], pattern=r"\w+|\s"))
    ids = tokenizer.encode("abcd " * 20_000, dropout=0.5, seed=1)
    found = Counter(tokenizer.decode(ids).split())
    assert found == {"abcd": 20_000}
    shown = Counter("".join(f"{i}," for i in ids.tolist()).split("32,"))
    # Each step offers ab, then cd, and ends without a merge only if both are missed.
    expected = {"256,257,": 0.375, "256,99,100,": 0.25, "97,98,257,": 0.125, "97,98,99,100,": 0.25}
    for way, share in expected.items():
        assert abs(shown[way] / 20_000 - share) < 0.015


def test_dropout_takes_no_piece_whole():
    table = BPETable(dict(BPETable.from_merges([]).vocab) | {"abc": 256}, ignore_merges=True)
    assert BPETokenizer(table).encode("abc", dropout=1e-9).tolist() == [97, 98, 99]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["letters", "one letter", "spaces"])
def test_twice_the_length_takes_little_more_than_twice_the_time(kind):
    rng = random.Random(0)
    merges = [("a", "b"), ("c", "d"), ("x", "x"), ("xx", "xx"), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ")]
    merges += [("ab", "cd"), ("b", "a"), ("xxxx", "xxxx")]
    encoder = PieceEncoder(BPETable.from_merges(merges, pattern="none"))

    def seconds(length):
        text = {"letters": "".join(rng.choices("abcd", k=length)), "one letter": "x" * length}
        piece = text.get(kind, " " * length)
        times = []
        for _ in range(2):
            begun = time.process_time()
            encoder.ids(piece)
            times.append(time.process_time() - begun)
        return min(times)

    small, large = seconds(50_000), seconds(400_000)
    assert large < 8 * 1.8 * small  # a quadratic way would take 64 times as long


@given(st.binary(max_size=40))
def test_token_strings_of_bytes_are_found_whole(data):
    if len(data) > 1:
        assert PieceEncoder(rank_table([data])).ids(data.decode("utf-8", "surrogateescape")) == [
            256
        ]
        assert to_chars(data) in rank_table([data]).vocab
