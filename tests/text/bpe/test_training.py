"""From counts to a tokenizer: the worked example, layouts of ids, stops, notices, faults."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.bpe import naive
from tests.text.bpe.naive import Counted
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.counting import count_pieces
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.training import train_bpe, train_classical

WORDS = {"old": 7, "older": 3, "finest": 9, "lowest": 4}
COUNTS = {
    "separate": [13, 13, 13, 10, 10, 9, 9, 9, 7, 4, 4, 4, 3, 3, 3],
    "attached": [13, 13, 10, 9, 9, 9, 7, 4, 4, 4, 3, 3, 3],
}
MERGES = {
    ("separate", "first-seen"): "e+s es+t est+</w> o+l ol+d f+i fi+n fin+est</w> old+</w> "
    "l+o lo+w low+est</w> old+e olde+r older+</w>",
    ("separate", "largest"): "t+</w> s+t</w> e+st</w> o+l ol+d n+est</w> i+nest</w> "
    "f+inest</w> old+</w> w+est</w> o+west</w> l+owest</w> r+</w> old+e olde+r</w>",
    ("separate", "lowest-id"): "e+s t+</w> es+t</w> l+d o+ld f+i n+est</w> fi+nest</w> "
    "old+</w> l+o w+est</w> lo+west</w> e+r old+er older+</w>",
    ("attached", "first-seen"): "e+s es+t</w> o+l f+i fi+n fin+est</w> ol+d</w> l+o lo+w "
    "low+est</w> ol+d old+e olde+r</w>",
    ("attached", "largest"): "s+t</w> e+st</w> o+l n+est</w> i+nest</w> f+inest</w> ol+d</w> "
    "w+est</w> o+west</w> l+owest</w> ol+d old+e olde+r</w>",
    ("attached", "lowest-id"): "e+s es+t</w> o+l f+i n+est</w> fi+nest</w> ol+d</w> l+o "
    "w+est</w> lo+west</w> d+e ol+de olde+r</w>",
}


def said(trained):
    return " ".join("+".join(pair) for pair in trained.table.merges)


@pytest.mark.parametrize(("end_of_word", "ties"), MERGES)
def test_the_worked_example(end_of_word, ties):
    trained = train_classical(WORDS, end_of_word=end_of_word, ties=ties)
    assert said(trained) == MERGES[end_of_word, ties]
    assert [m.count for m in trained.merges] == COUNTS[end_of_word]
    assert trained.stopped == f"learned {len(COUNTS[end_of_word])} merges: no pair is left"


@pytest.mark.parametrize("ties", ["first-seen", "largest", "lowest-id"])
def test_the_worked_example_after_five_merges(ties):
    """Source document S4: 12 symbols at first, 11 in use after 5 merges, oldest -> old est</w>."""
    steps = []
    trained = train_classical(
        WORDS, merges=5, ties=ties, watch=[*WORDS, "oldest"], on_step=steps.append
    )
    assert trained.table.size == 12 + 5
    assert trained.stopped == ""
    splits = dict(zip([*WORDS, "oldest"], steps[-1].splits, strict=True))
    assert splits == {
        "old": ["old", "</w>"],
        "older": ["old", "e", "r", "</w>"],
        "finest": ["f", "i", "n", "est</w>"],
        "lowest": ["l", "o", "w", "est</w>"],
        "oldest": ["old", "est</w>"],
    }
    assert len({token for word in WORDS for token in splits[word]}) == 11


def test_the_totals_of_symbols_along_the_worked_example():
    totals = []

    def tell(step):
        totals.append(sum(n * len(s) for n, s in zip(WORDS.values(), step.splits, strict=True)))

    train_classical(WORDS, ties="first-seen", watch=list(WORDS), on_step=tell)
    assert totals == [124, 111, 98, 88, 78, 69, 60, 51, 44, 40, 36, 32, 29, 26, 23]


def test_a_minimum_frequency_ends_it():
    trained = train_classical(WORDS, merges=1000, ties="first-seen", min_frequency=10)
    assert said(trained) == "e+s es+t est+</w> o+l ol+d"
    assert trained.stopped == "learned 5 of 1,000 merges: no pair occurs 10 times"
    twice = train_classical({"ab": 1}, merges=3, min_frequency=2)
    assert twice.stopped == "learned 0 of 3 merges: no pair occurs twice"


def test_ids_of_words_are_characters_marks_merges_unknown_specials():
    trained = train_classical(WORDS, vocab_size=16, unk="<unk>", specials=["<s>"])
    by_id = [trained.table.id_to_token[i] for i in range(16)]
    assert by_id == [*"defilnorstw", "</w>", "es", "t</w>", "<unk>", "<s>"]
    attached = train_classical(WORDS, vocab_size=15, end_of_word="attached").table
    assert list(attached.vocab) == [*"defilnorstw", "d</w>", "r</w>", "t</w>", "es"]
    # Every character has a token without the mark, so that words of other make are known too.


def test_words_that_spell_the_mark_stay_distinguishable():
    """Their characters merge, but never to the mark itself nor to a character that carries it."""
    for end_of_word in ("separate", "attached"):
        words = {"a</w>": 1, "</w>": 1, "a": 1, "</w>b": 3, "</w>c": 3, "x</w>d": 1}
        trained = train_classical(words, end_of_word=end_of_word)
        for left, right in trained.table.merges:
            assert right.endswith("</w>") == (left + right).endswith("</w>")
        assert "</w" in trained.table.vocab
        assert any("stay apart" in notice for notice in trained.notices)


def test_ids_of_bytes_are_bytes_merges_specials():
    specials = ["<|endoftext|>"]
    counted = count_pieces(["ab<|endoftext|>ab"], Splitter("none"), specials)
    trained = train_bpe(counted, vocab_size=258, pattern="none", specials=specials)
    vocab = trained.table.vocab
    assert [vocab[c] for c in "ab"] == [97, 98]
    assert vocab["ab"] == 256
    assert trained.table.specials == {"<|endoftext|>": 257}
    assert [(m.left, m.right, m.new, m.count) for m in trained.merges] == [(97, 98, 256, 2)]
    assert not [token for token in vocab if "<|" in token]


def test_ids_in_hugging_faces_order_are_specials_characters_merges():
    trained = train_bpe(
        Counted.of(b" a", b" a"), vocab_size=259, specials=["<s>", "</s>"], order="huggingface"
    )
    assert trained.table.specials == {"<s>": 0, "</s>": 1}
    vocab = trained.table.vocab
    assert (vocab["!"], vocab["a"], vocab["Ġ"], vocab["Ġa"]) == (2, 66, 222, 258)
    assert [(m.left, m.right, m.new, m.count) for m in trained.merges] == [(222, 66, 258, 2)]


def test_the_order_of_ids_decides_ties():
    """A space is byte 32, below the letters; in Hugging Face's order it stands above them."""
    counted = Counted.of(b" t", b"bc")
    assert train_bpe(counted, vocab_size=257).table.merges == (("Ġ", "t"),)
    theirs = train_bpe(counted, vocab_size=257, order="huggingface")
    assert theirs.table.merges == (("b", "c"),)


@pytest.mark.parametrize("order", ["bytes", "huggingface"])
def test_the_largest_is_so_by_bytes_in_either_order(order):
    trained = train_bpe(Counted.of(b" t", b"bc"), vocab_size=257, ties="largest", order=order)
    assert trained.table.merges == (("b", "c"),)


def test_no_text_gives_the_bytes_and_a_notice():
    trained = train_bpe(count_pieces([], Splitter()), vocab_size=1000)
    assert trained.table.size == 256
    assert trained.stopped == "learned 0 of 744 merges: no pair is left"
    assert trained.notices == ["the text is empty, so there is nothing to merge"]


def test_three_spaces():
    trained = train_bpe(count_pieces(["   "], Splitter()), vocab_size=1000)
    merges = [(m.left, m.right, m.count) for m in trained.merges]
    assert merges == [(32, 32, 2), (256, 32, 1)]
    assert not trained.notices


def test_an_enormous_word_is_remarked_on():
    trained = train_bpe(Counted.of(b"ACGT" * 5000), vocab_size=257)
    assert "the longest word has 20,000 bytes" in trained.notices[0]


def test_steps_tell_how_pieces_split():
    steps = []
    train_bpe(
        Counted.of(b" aaa", b" aaa"),
        vocab_size=300,
        ties="first-seen",
        watch=[" aaaaa", "é"],
        on_step=steps.append,
    )
    assert [(s.number, s.left, s.right, s.merge.count) for s in steps] == [
        (1, "a", "a", 4),
        (2, "Ġ", "aa", 2),
        (3, "Ġaa", "a", 2),
    ]
    assert [s.splits[0] for s in steps] == [
        ["Ġ", "aa", "aa", "a"],
        ["Ġaa", "aa", "a"],
        ["Ġaa", "aa", "a"],
    ]
    assert steps[-1].splits[1] == ["Ã", "©"]


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=6))
def test_the_splits_are_those_of_the_corpus(words):
    """Watching the words of the corpus itself, the splits count what is merged next."""
    splits = [[[*word, "</w>"] for word in words]]
    steps = []
    train_classical(Counter(words), ties="first-seen", watch=words, on_step=steps.append)
    for step in steps:
        pairs = Counter(pair for split in splits[-1] for pair in pairwise(split))
        assert step.merge.count == pairs[step.left, step.right] == max(pairs.values())
        splits.append(step.splits)
    assert splits[-1] == [[word + "</w>"] for word in words]


def test_the_same_in_any_process():
    """Python draws another hash of strings in each; nothing may follow it."""
    program = (
        "from tinygrad_tf.text.bpe.training import train_classical;"
        "t = [train_classical({'bbbaaaddddcccc': 1, 'abcd': 2, 'dcba': 2}, ties=ties,"
        "     end_of_word=end) for ties in ('lowest-id', 'first-seen', 'largest')"
        "     for end in ('separate', 'attached')];"
        "print([(x.merges, x.table.sha256()) for x in t])"
    )

    def run(seed):
        root = Path(__file__).resolve().parents[3]
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=env, capture_output=True, check=True).stdout

    assert run("0") == run("1") == run("2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 255}, "a vocabulary of 255 does not hold the 256 bytes"),
        ({"vocab_size": 256, "specials": ["<s>"]}, "256 bytes and 1 special token; give 257"),
        ({"vocab_size": 300, "specials": ["<s>", "<s>"]}, "'<s>' is given 2 times"),
        ({"vocab_size": 300, "specials": [""]}, "a special token is empty"),
        ({"vocab_size": 300, "specials": ["a"]}, "'a' is also the token of a single character"),
        ({"vocab_size": 300, "specials": ["abc"]}, "'abc' is also what merge 2 makes of 'ab'"),
        ({"vocab_size": 300, "min_frequency": 0}, "minimum frequency is 0"),
        ({"vocab_size": 300, "ties": "random"}, "no tie rule 'random'"),
        ({"vocab_size": 300, "order": "random"}, "no order of ids 'random'"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        train_bpe(Counted.of(b"abc"), **options)


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ({"a b": 1}, {}, "the word 'a b' with count 1"),
        ({}, {}, "there are no words"),
        ({"": 1}, {}, "the word '' with count 1"),
        ({"a": 0}, {}, "the word 'a' with count 0"),
        ({"ab": 1}, {"vocab_size": 2}, "a vocabulary of 2 does not hold the 3 characters"),
        ({"ab": 1}, {"unk": "a"}, "'a' is also the token of a single character"),
        ({"ab": 1}, {"unk": "u", "specials": ["u"]}, "'u' is given 2 times"),
        ({"abab": 2}, {"unk": "ab"}, "'ab' is also what merge 1 makes"),
        ({"ab": 1}, {"end_of_word": "none"}, "no way 'none' to mark"),
        ({"ab": 1}, {"merges": -1}, "-1 merges"),
    ],
)
def test_bad_words_are_refused(words, options, message):
    with pytest.raises(InputError, match=message):
        train_classical(words, **options)


def test_words_that_are_special_are_not_learned_from():
    trained = train_classical({"<s>": 9, "ab": 1}, specials=["<s>"])
    assert said(trained) == "a+b ab+</w>"
    assert trained.table.specials == {"<s>": 5}


@given(st.lists(st.text("aé</w>", min_size=1, max_size=7), min_size=1, max_size=6))
def test_attached_marks_by_the_book(words):
    expected = naive.learn(
        [[*w[:-1], w[-1] + "</w>"] for w in words], 99, naive.largest, naive.joined
    )
    found = train_classical(Counter(words), merges=99, end_of_word="attached", ties="largest")
    if not any("stay apart" in notice for notice in found.notices):
        pairs = zip(found.table.merges, found.merges, strict=True)
        assert [(*pair, merge.count) for pair, merge in pairs] == expected
