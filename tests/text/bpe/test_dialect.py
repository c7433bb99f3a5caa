"""Users' own patterns: their classes, gaps, groups, and the faults that are told at once."""

import re
import time

import pytest
from hypothesis import given

from tests.text.bpe.drawn import texts
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.dialect import translate
from tinygrad_tf.text.bpe.probing import slow_text
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"\p{L}+", "ab1世", "ab|1|世"),
        (r"\pL+|\PL", "ab1", "ab|1"),
        (r"\p{^L}", "ab12", "ab|1|2"),
        (r"\P{^L}", "ab12", "a|b|12"),
        (r"\P{L}", "ab12世", "ab|1|2|世"),
        (r"[^\p{L}\p{N}]+", "ab, 1", "ab|, |1"),
        (r"[\P{L}]+", "ab, 1", "ab|, 1"),
        (r"[\p{Lu}_-]\p{Ll}*", "AbC-É_x", "Ab|C|-|É|_x"),
        (r"[\p{P}\p{S}]+", "a+-«b", "a|+-«|b"),
        (r"\d+", "1²٣", "1|²|٣"),
        (r"\s+", "a\x1c\x85b", "a\x1c|\x85|b"),
        (r"\S", "a\x1c\x85\x85b", "a|\x1c|\x85\x85|b"),
        (r"[\S]", "ab\u3000\u3000b", "a|b|\u3000\u3000|b"),
        (r"\D|\W", "1a1 ", "1|a|1| "),
        (r"[^\W1]", "ab1!", "a|b|1!"),
        (r"\w+", "e\u0301 a", "e\u0301| |a"),
        (r"\b\w", "ab é", "a|b |é"),
        (r"\Bb", "abb b", "a|b|b| b"),
        (r"b$", "b\nb\n", "b\nb\n"),
        (r"(?m:b$)", "b\nb\n", "b|\n|b|\n"),
        (r"\x{e9}|\u{4e16}", "é世a", "é|世|a"),
        (r"[]a]+|[^]a]+", "a]b", "a]|b"),
        (r"[\p{Lt}]|[^\p{Lt}]", "aǅ", "a|ǅ"),
        (r"(?<q>['`]).*?\k<q>", "a'b'c`d", "a|'b'|c`d"),
        (r"(?<=a)b|(?<!a)c", "abcc", "a|b|c|c"),
        (r"\p{N}{1,2}+", "12345", "12|34|5"),
        ("(a)|b", "ab", "a|b"),
        ("(a)(b)", "abab", "ab|ab"),
        (r"(?<q>\p{L})\k<q>", "éèè", "é|èè"),
        ("(é)(b)", "ébéb", "éb|éb"),
        ("(?<=a)|bb", "abbb", "a|bb|b"),
        ("\u00e9|[\u4e00-\u9fff]", "aéé世", "a|é|é|世"),
        ("(?i:s)|k", "sſSkK\u212a", "s|ſ|S|k|K\u212a"),
        ("(?i)[j-l]", "\u212aaa", "\u212a|aa"),
        (r"(?i:I)|\p{L}", "ai\u0131", "a|i|\u0131"),
        ("(?i)[^k]", "aa\u212aſ", "a|a|\u212a|ſ"),
        ("('s|'t)|\\w+|\\s+|.", "it's a", "it|'s| |a"),
        (r"\w+", "a b", "a| |b"),
        (r" ?\w+| ", "a b  ", "a| b| | "),
        ("[^x]+", "axxb", "a|xx|b"),
        ("é", "aéb", "a|é|b"),
        ("(?i)k", "akK", "a|k|K"),
        (r"\[|\(|\$|\\p", "[(a$\\p", "[|(|a|$|\\p"),
    ],
)
def test_known_pieces_of_own_patterns(pattern, text, pieces):
    assert Splitter(pattern).split(text) == pieces.split("|")


@pytest.mark.parametrize("pattern", [r"\p{Lt}", r"[\p{Lt}]+", r"[^\p{Lt}]+", r"\P{Lt}+"])
def test_classes_without_ascii_members_are_right_in_ascii(pattern):
    assert Splitter(pattern).split("a!") == ["a!"]
    assert len(Splitter(pattern).split("ǅa!")) == 2


@given(texts)
def test_ascii_texts_split_as_by_the_full_ranges(text):
    text = text.encode("ascii", "ignore").decode()
    for source in PATTERNS.values():
        short = re.finditer(translate(source, "ascii"), text)
        full = re.finditer(translate(source), text)
        assert [match.span() for match in short] == [match.span() for match in full]


@given(texts)
def test_gaps_are_kept(text):
    for pattern in (r"\p{Lu}+", r"(\w)(\s)", "a"):
        splitter = Splitter(pattern)
        pieces = splitter.split(text)
        assert "".join(pieces) == text and "" not in pieces
        assert list(splitter.pieces(text)) == pieces
        assert splitter.cut(text) == 0


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(", "not valid"),
        ("a)", "not valid"),
        ("*", "not valid"),
        ("[a", "no ] for the [ at position 0"),
        ("[", "no ] for the [ at position 0"),
        ("[b-a]", "not valid"),
        ("a{9999999999}", "not valid"),
        ("\\", "not valid"),
        (r"\q", "not valid"),
        (r"\p{Klingon}", "property Klingon at position 0"),
        (r"a\p{L", "at position 1"),
        (r"\p", "at position 0"),
        ("[a[b]]", "has [ in"),
        ("[[:alpha:]]", "has [ in"),
        (r"[\w&&a]", "&&"),
        (r"[\w--a]", "--"),
        ("a*", "matches the empty text"),
        (r"\s*|x", "matches the empty text"),
        ("(?=a)|", "matches the empty text"),
        ("(a+)+b|.", "backtracks"),
        (r"(?:a|a)+!|\w", "backtracks"),
        (r"(?:\w+\s?)+#|.", "backtracks"),
        (r"(?:ab|a|b)+c|.", "backtracks"),
        (r"\s*\s*\s*x|.", "backtracks"),
    ],
)
def test_faults_are_told_in_one_line(pattern, what):
    start = time.thread_time()
    with pytest.raises(InputError) as caught:
        Splitter(pattern)
    assert what in caught.value.what
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert repr(pattern) in str(caught.value)
    assert caught.value.next
    assert time.thread_time() - start < 10


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:\s+\w+)+|\w+",
        r"(?:[A-Z][a-z]+)+|.",
        ".*x|.",
        r"[^\s]+\s*",
        r"(?:\d{3},)+|\d",
        *(source for source in PATTERNS.values() if source),
    ],
)
def test_patterns_that_only_look_dangerous_pass(pattern):
    regex = re.compile(translate(pattern, "ascii"))
    assert slow_text(lambda text: list(regex.finditer(text)), pattern) is None
