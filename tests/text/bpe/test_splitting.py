"""Splitting: known pieces, nothing lost, the same however a text is cut."""

import pickle
import re
import time
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.text.bpe.drawn import edges, texts
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe import splitting
from tinygrad_tf.text.bpe.dialect import translate
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter

KNOWN = [name for name in PATTERNS if name != "none"]
names = st.sampled_from(KNOWN)


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt2", "I don't, DON'T!", "I| don|'t|,| DON|'|T|!"),
        ("gpt4", "I don't, DON'T!", "I| don|'t|,| DON|'T|!"),
        ("o200k", "I don't, DON'T!", "I| don't|,| DON'T|!"),
        ("gpt2", "1234567", "1234567"),
        ("gpt4", "1234567", "123|456|7"),
        ("gpt2", "a  b", "a| | b"),
        ("gpt2", "a\n\nb", "a|\n|\n|b"),
        ("gpt4", "a\n\nb", "a|\n\n|b"),
        ("gpt4", "a\n ", "a|\n "),
        ("gpt4-old", "a\n ", "a|\n| "),
        ("o200k", "a\n ", "a|\n| "),
        ("gpt2", "a\r\nb", "a|\r|\n|b"),
        ("gpt4", "a\r\nb", "a|\r\n|b"),
        ("gpt4", "f(x);\n\n y", "f|(x|);\n\n| y"),
        ("o200k", "camelCase HTMLParser", "camel|Case| HTMLParser"),
        ("o200k", "path//\n/x", "path|//\n/|x"),
        ("gpt2", "a\x1cb", "a|\x1c|b"),
        ("gpt2", "x²Ⅷ٣", "x|²Ⅷ٣"),
        ("gpt2", "naïve 世界。", "naïve| 世界|。"),
        ("gpt2", "e\u0301e", "e|\u0301|e"),
        ("o200k", "e\u0301e", "e\u0301e"),
        ("gpt2", "it'ſ", "it|'|ſ"),
        ("gpt4", "it'ſ", "it|'ſ"),
        ("gpt2", "\U00031350\U00010d50!", "\U00031350\U00010d50|!"),
        ("gpt2", "a\udcff\udc80 b", "a|\udcff\udc80| b"),
        ("none", "a b\n", "a b\n"),
    ],
)
def test_known_pieces(name, text, pieces):
    assert Splitter(name).split(text) == pieces.split("|")


@pytest.mark.parametrize("name", PATTERNS)
def test_the_empty_text_has_no_pieces(name):
    assert Splitter(name).split("") == []
    assert Splitter(name).cut("") == 0


@given(names, st.one_of(texts, st.text(st.characters())))
def test_nothing_is_lost_and_no_piece_is_empty(name, text):
    pieces = Splitter(name).split(text)
    assert "".join(pieces) == text
    assert "" not in pieces


@given(names, texts)
def test_known_patterns_equal_their_sources_written_out(name, text):
    source = translate(PATTERNS[name])
    assert Splitter(name).split(text) == [match[0] for match in re.finditer(source, text)]


@given(names, edges)
def test_ascii_and_stand_ins_agree(name, text):
    text = text.encode("ascii", "ignore").decode()
    split = Splitter(name).split
    assert list(map(len, split("b." + text))) == list(map(len, split("世." + text)))


@example("gpt2", "x'", "s")
@example("gpt2", "x\n", "\n")
@example("gpt4", "123456", "7")
@example("o200k", "don'r", "e")
@example("gpt2", "!\n\n!!!", "")
@example("o200k", "a!\n", "/x")
@example("o200k", "Aa", "\u0301")
@given(names, texts, texts)
def test_what_is_cut_splits_as_the_whole(name, text, rest):
    splitter = Splitter(name)
    cut = splitter.cut(text)
    assert 0 <= cut <= len(text)
    assert splitter.split(text + rest) == splitter.split(text[:cut]) + splitter.split(
        text[cut:] + rest
    )


@pytest.mark.parametrize("name", KNOWN)
def test_no_continuation_of_any_short_text_changes_what_was_cut(name):
    splitter = Splitter(name)
    for length in range(5):
        chars = "a1.'\u0301 \n/" if length < 4 else "a.' \n/"
        for text in map("".join, product(chars, repeat=length)):
            cut = splitter.cut(text)
            for rest in ("", "s", "a.", "1", ".", "\u0301", " a", "\n", "/") if cut else ():
                assert splitter.split(text + rest) == [
                    *splitter.split(text[:cut]),
                    *splitter.split(text[cut:] + rest),
                ]


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(
    "unit",
    ["word ", "世界。", "one\ntwo\n", "---\n---\n\n", "x=1;", "привет, мир ", "1,2 ", "\ud83d a"],
)
def test_a_cut_is_found_near_the_end_of_any_prose(name, unit):
    text = unit * 1000
    assert Splitter(name).cut(text) > len(text) - 20


def test_a_cut_is_found_among_digits_and_none_within_a_word():
    assert Splitter("gpt4").cut("1" * 1000) > 990
    assert Splitter("gpt2").cut("1" * 1000) == 0
    assert all(Splitter(name).cut("x" * 1000) == 0 for name in KNOWN)
    assert all(Splitter(name).cut(" \n" * 1000) == 0 for name in KNOWN)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(
    "unit", ["x", "X", " ", "\n", " \n", "!", "1", "'", "é", "世", "\u0301", "/\n"]
)
def test_time_grows_like_the_length(name, unit):
    splitter = Splitter(name)

    def seconds(length: int) -> float:
        text = (unit * length)[:length] + "é"
        times = []
        for _ in range(3):
            start = time.thread_time()
            splitter.split(text)
            splitter.cut(text)
            times.append(time.thread_time() - start)
        return min(times)

    assert seconds(40_000) < 30 * max(seconds(5_000), 1e-3)  # 64 if it grew with the square


def test_other_spellings_are_known_and_names_come_back():
    for source, name in splitting._SPELLINGS.items():
        assert Splitter(source).name == name
        assert Splitter(source).source == PATTERNS[name]
    assert Splitter(r"\p{L}+").name == "custom"
    assert Splitter(r"\p{L}+").source == r"\p{L}+"


@pytest.mark.parametrize("pattern", [*PATTERNS, r" ?\w+| "])
def test_splitters_travel_to_other_processes(pattern):
    original = Splitter(pattern)
    copy = pickle.loads(pickle.dumps(original))
    assert (copy.name, copy.source) == (original.name, original.source)
    assert copy.split("a b, ß") == original.split("a b, ß")
    assert repr(copy) == f"Splitter({pattern!r})"


def test_a_name_that_is_none_is_a_pattern_of_ones_own():
    with pytest.raises(InputError):
        Splitter("gpt(5")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?:=+ ?)+x|.|\s", "=" * 60),
        (r"(?:foo|foofoo)+bar", "foo" * 60),
        (r"(?:<[^>]*>|<.*>)+z", "<a>" * 40),
        (r"(?:a?){30}a{30}b", "a" * 30),
        (r"(?:é+)+x", "é" * 40),
        (r"(?:中|中中)+x", "中" * 60),
        (r"(?:\p{Lo}+)+x", "中" * 40),
        (r"(?:\p{M}+)+x", "\u0301" * 40),
        (r"(.*,){12}P", "a," * 3000),
    ],
)
def test_a_pattern_that_would_take_for_ever_is_refused(pattern, text, monkeypatch):
    monkeypatch.setattr("tinygrad_tf.text.bpe.probing._PATIENCE", 1.0)
    with pytest.raises(InputError, match="backtracks too much"):
        Splitter(pattern).split(text)


def test_what_the_probe_does_not_find_is_stopped_while_it_splits(monkeypatch):
    monkeypatch.setattr("tinygrad_tf.text.bpe.probing._PATIENCE", 0.3)
    monkeypatch.setattr("tinygrad_tf.text.bpe.splitting.slow_text", lambda *_: None)
    splitter = Splitter(r"(?:q|qq)+z|.")
    for pieces in (splitter.split, lambda text: list(splitter.pieces(text))):
        with pytest.raises(InputError, match="on this text of 50 characters"):
            pieces("q" * 50)
    assert splitter.split("qz") == ["qz"]
