"""Splitting, piece for piece, against tiktoken, Hugging Face and the `regex` package."""

from itertools import chain

import pytest

from tests.text.bpe import drawn
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter
from tinygrad_tf.text.bpe.unicode16 import LAST, PROPERTIES, categories, ranges

pytestmark = pytest.mark.reference

CODES = [code for code in range(LAST + 1) if not 0xD800 <= code < 0xE000]
KNOWN = [name for name in PATTERNS if name != "none"]
OWN = [
    r"\p{Lu}?\p{Ll}+|\p{Lo}|[^\p{L}\s]+|\s",
    r"[\p{P}\p{S}]+|\p{M}|[\p{N}\p{L}]{1,4}",
    r" ?[^\s\p{Nd}]+|\d|\s+(?=\S)",
    r"(?i:s|k)+|\p{Lt}|\W\w",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+",
]

# Oniguruma's \w has the superscripts and fractions of Latin-1 and lacks the joiners.
NOT_ONIGURUMAS = dict.fromkeys((0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE, 0x200C, 0x200D), "")


def verbatim(name: str) -> str:
    """The pattern as tiktoken's own module has it."""
    module = pytest.importorskip("tiktoken_ext.openai_public")
    sources = {"gpt2": module.r50k_pat_str, "gpt4-old": PATTERNS["gpt4-old"]}
    cl100k = (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    )
    return sources.get(name, cl100k if name == "gpt4" else PATTERNS[name])


def agrees_with_tiktoken(source: str, splitter: Splitter, texts: list[str]) -> None:
    """Tokens are all pairs of bytes, so that ids show where pieces begin, all but a few."""
    tiktoken = pytest.importorskip("tiktoken")
    singles = [bytes([byte]) for byte in range(256)]
    ranks = {
        token: rank
        for rank, token in enumerate(singles + [a + b for a in singles for b in singles])
    }
    peer = tiktoken.Encoding("peer", pat_str=source, mergeable_ranks=ranks, special_tokens={})
    whole = tiktoken.Encoding(
        "whole", pat_str="(?s:.+)", mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary
    for text in texts:
        pieces = splitter.split(text)
        assert peer.encode_ordinary(text) == list(chain(*map(whole, pieces))), (text, pieces)


def agrees_with_hugging_face(source: str, splitter: Splitter, texts: list[str]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    peer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(source), "isolated")
    for text in texts:
        assert splitter.split(text) == [piece for piece, _ in peer.pre_tokenize_str(text)], text


@pytest.mark.parametrize("name", KNOWN)
def test_known_patterns_are_those_of_tiktoken(name):
    agrees_with_tiktoken(verbatim(name), Splitter(name), drawn.lines(100_000, seed=1))


@pytest.mark.parametrize("name", KNOWN)
def test_known_patterns_are_those_of_hugging_face(name):
    agrees_with_hugging_face(PATTERNS[name], Splitter(name), drawn.lines(100_000, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_a_million_characters_split_as_by_both(name):
    texts = drawn.lines(1_000_000, seed=3)
    agrees_with_hugging_face(PATTERNS[name], Splitter(name), texts)
    agrees_with_tiktoken(verbatim(name), Splitter(name), texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_every_character_is_in_its_class(name):
    assigned = [code for code in CODES if categories()[code] != ord("-")] + CODES[::50]
    texts = [
        "".join(f"a{chr(code)} {chr(code)}1" for code in assigned[start : start + 1000])
        for start in range(0, len(assigned), 1000)
    ]
    agrees_with_hugging_face(PATTERNS[name], Splitter(name), texts)


def test_gpt2_is_hugging_faces_byte_level():
    tokenizers = pytest.importorskip("tokenizers")
    peer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    splitter = Splitter("gpt2")
    for text in drawn.lines(50_000, seed=4):
        spans, start = [], 0
        for piece in splitter.split(text):
            spans.append((start, start + len(piece)))
            start += len(piece)
        assert spans == [span for _, span in peer.pre_tokenize_str(text)], text


@pytest.mark.parametrize("source", OWN)
def test_own_patterns_are_read_as_by_hugging_face(source):
    texts = [text.translate(NOT_ONIGURUMAS) for text in drawn.lines(50_000, seed=5)]
    agrees_with_hugging_face(source, Splitter(source), list(filter(None, texts)))


@pytest.fixture(scope="module")
def of_later_unicode() -> dict[int, str]:
    """The characters whose class `regex`, which knows a later Unicode, sees differently."""
    regex = pytest.importorskip("regex")
    everything = "".join(chr(code) for code in CODES)
    differing: set[int] = set()
    for name in PROPERTIES:
        pattern = {"White_Space": r"\s", "Word": r"\w"}.get(name, rf"\p{{{name}}}")
        theirs = set(map(ord, regex.findall(pattern, everything)))
        ours = {code for first, last in ranges(PROPERTIES[name]) for code in range(first, last + 1)}
        differing |= theirs ^ ours
    assert len(differing) < 30_000
    return dict.fromkeys(differing, "")


@pytest.mark.parametrize("source", [*OWN, *filter(None, PATTERNS.values())])
def test_patterns_are_read_as_by_regex(source, of_later_unicode):
    regex = pytest.importorskip("regex")
    compiled, splitter = regex.compile(source), Splitter(source)
    for text in drawn.lines(50_000, seed=6):
        kept = text.translate(of_later_unicode)
        expected, end = [], 0
        for match in compiled.finditer(kept):
            expected += [kept[end : match.start()], match[0]]
            end = match.end()
        expected.append(kept[end:])
        assert splitter.split(kept) == list(filter(None, expected)), kept
