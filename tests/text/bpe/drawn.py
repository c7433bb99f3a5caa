"""Texts on which splitting patterns go wrong, drawn by hypothesis or by the million characters."""

import random
from functools import cache

from hypothesis import strategies as st

from tinygrad_tf.text.bpe.unicode16 import categories

# ASCII of every kind, spaces and line ends of every kind, controls that `re` takes for space,
# letters that fold to ASCII, numbers that are no digits, marks, cases, and letters of Unicode 15+.
EDGES = (
    "abzASTRELVMDtsrvelmd019 \n\r\t\v\f/.,!-_'’\x00\x01\x02\x1c\x1f\x7f\x85\xa0"
    "ſ\u212aİıßé²½Ⅷ٣ǅʰªא世\u0301\u200b\u200d\u2028\u3000😀\U0001f1e6\U00031350\U00010d50\U0001e5f0"
)
BITS = ("'s", "'LL", "'ſ", "'re", " don't", "I'VE", "\r\n", " \n ", "   ", "123456", "!\n\n", "/\n")

edges = st.lists(st.one_of(st.sampled_from(EDGES), st.sampled_from(BITS))).map("".join)
texts = st.one_of(edges, st.text(st.characters(codec="utf-8")), st.text(st.sampled_from("a A'\n1")))


@cache
def _by_category() -> list[list[int]]:
    members: dict[int, list[int]] = {}
    for code, category in enumerate(categories()):
        if not 0xD800 <= code < 0xE000:
            members.setdefault(category, []).append(code)
    return list(members.values())


def text(chars: int, seed: int) -> str:
    """A text of at least so many characters: edges, runs of one category, spaces, words."""
    rng = random.Random(seed)
    parts: list[str] = []
    size = 0
    while size < chars:
        kind = rng.random()
        if kind < 0.45:
            part = rng.choice(EDGES)
        elif kind < 0.6:
            part = rng.choice(BITS)
        elif kind < 0.7:
            part = rng.choice(" \n\r\t/\u3000\u2028") * rng.randint(1, 4)
        else:
            members = rng.choice(_by_category())
            part = "".join(chr(rng.choice(members)) for _ in range(rng.randint(1, 6)))
        parts.append(part)
        size += len(part)
    return "".join(parts)


def lines(chars: int, seed: int) -> list[str]:
    """The same, cut at random into short texts and some long ones: every end is a case."""
    whole, rng = text(chars, seed), random.Random(seed)
    cut, at = [], 0
    while at < len(whole):
        length = rng.choice((1, 2, 3, 5, 8, 40, 1000))
        cut.append(whole[at : at + length])
        at += length
    return cut
