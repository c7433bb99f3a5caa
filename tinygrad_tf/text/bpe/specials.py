"""Text as it comes: special tokens found in it, words, and characters that are only half there."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from tinygrad_tf.errors import InputError

Policy = Literal["refuse", "allow", "text"]

WORD = re.compile(r"[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""A run of characters without Unicode's White_Space, which `str.split` takes more broadly."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # U+DC80..DCFF stand for bytes


class Specials:
    """Finds special tokens in text: the first in the text, and there the longest."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
        self.longest = max(map(len, ids), default=0)
        self._pattern = re.compile(
            "|".join(map(re.escape, sorted(ids, key=len, reverse=True))) or r"(?!)"
        )

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the special tokens of a text."""
        return self._pattern.finditer(text)

    def cut(self, text: str, policy: Policy, start: int = 0) -> Iterator[tuple[str, int | None]]:
        """Yield the text between special tokens, and after each the id of what ends it, or None.

        By policy, special tokens are an InputError that names them, are allowed, or are text like
        any other.
        """
        end = 0
        if policy != "text":
            for match in self.matches(text):
                if policy == "refuse":
                    raise _refused(match, start)
                yield text[end : match.start()], self.ids[match[0]]
                end = match.end()
        yield text[end:], None


def well_formed(text: str, *, skip: bool = False, start: int = 0) -> str:
    """Return the text with surrogate pairs joined; U+DC80..DCFF stay, as they stand for bytes.

    Other surrogates are an InputError that names the first, or are left out with `skip`.
    """
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        text = _PAIR.sub(lambda pair: _joined(pair[0]), text)
    else:
        return text
    if skip:
        return _HALF.sub("", text)
    if half := _HALF.search(text):
        raise InputError(
            f"the text holds a lone surrogate (U+{ord(half[0]):04X}) "
            f"at position {start + half.start()}",
            "give well-formed text",
        )
    return text


def _joined(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _refused(match: re.Match[str], start: int) -> InputError:
    return InputError(
        f"the text holds the special token {match[0]!r} at position {start + match.start()}",
        "allow special tokens (`specials=allow`), or take them as text (`specials=text`)",
    )
