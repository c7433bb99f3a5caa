r"""Cutting a text into the pieces within which merges happen, as tiktoken and Hugging Face do."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from tinygrad_tf.text.bpe.dialect import Alphabet, invalid, stand_ins, translate, unlike_stand_ins
from tinygrad_tf.text.bpe.probing import patience, slow_text

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

# As other tools write them. In gpt4 only one quantifier is possessive: Oniguruma, which Hugging
# Face uses, reads {1,3}+ as a repetition, and \s++$ is needed because its $ ends a line.
PATTERNS: dict[str, str] = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "gpt4-old": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "none": "",
}

# Other spellings of the same languages: GPT-2's own, tiktoken's and minbpe's.
_SPELLINGS: dict[str, str] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": "gpt2",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s": "gpt4",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+": "gpt4-old",
    **{source: name for name, source in PATTERNS.items()},
}

# Between these two neighbours every known pattern ends a piece, whatever stands around them;
# after a newline all but gpt2 do, which may put it to the space that follows.
_BORDER = r"[\p{L}\p{N}](?=[^\p{L}\p{N}\p{M}'])|\S(?=[\p{Z}\t\v\f\x85])"
_LINE_BORDER = r"|[\r\n](?=[^\s/])"
_LONGEST_CONTRACTION = 3
_LONG = 1 << 20  # characters of which a list of pieces is better not made


class Splitter:
    r"""Cuts texts into pieces by a known pattern or a user's own.

    `pattern` is a name of `PATTERNS` or the source of a pattern, which may use `\p{L}` and its
    kin, `\s`, `\d` and `\w` with the meaning of Unicode 16. Raises InputError when the pattern
    is invalid, matches the empty text, or takes more than its share of time on a short one.

    `name` is a name of `PATTERNS` or "custom"; `source` is the pattern as other tools write it.
    """

    def __init__(self, pattern: str = "gpt2") -> None:
        self.name = pattern if pattern in PATTERNS else _SPELLINGS.get(pattern, "custom")
        self.source = PATTERNS.get(self.name, pattern)
        self._pattern = _checked(pattern) if self.name == "custom" else _pattern(self.source)
        self._border = _pattern(_BORDER + _LINE_BORDER * (self.name != "gpt2"))

    def __repr__(self) -> str:
        return f"Splitter({self.source if self.name == 'custom' else self.name!r})"

    def __reduce__(self) -> tuple[type["Splitter"], tuple[str]]:
        return Splitter, (self.source if self.name == "custom" else self.name,)

    @property
    def known(self) -> bool:
        """True if `cut` can find borders for the pattern."""
        return self.name not in ("none", "custom")

    def split(self, text: str) -> list[str]:
        """Return the pieces; joined they are the text, what the pattern leaves out included.

        Bytes that are not UTF-8 may be in the text as surrogate escapes: they are neither
        letters, numbers nor space.
        """
        if self.name == "none":
            return [text] if text else []
        if self.name != "custom":
            return self._pattern.split(text)
        with patience(self.source, text):
            return self._pattern.split(text)

    def pieces(self, text: str) -> Iterable[str]:
        """Return what `split` does, a long text of a user's pattern one piece at a time."""
        if self.name == "custom" and len(text) > _LONG:
            return self._patiently(text)
        return self.split(text)

    def _patiently(self, text: str) -> Iterator[str]:
        with patience(self.source, text):
            yield from self._pattern.iterate(text)

    def cut(self, text: str) -> int:
        """Return an i, as late as is known, at which the text can be cut without a difference.

        That is: split(text + rest) == split(text[:i]) + split(text[i:] + rest) for every rest.
        0 when no such place is known, as always for "none" and for users' own patterns.
        """
        if not self.known:
            return 0
        window = 256
        while True:
            start = max(0, len(text) - window)
            if last := self._border.last_end(text[start:]):
                return start + last
            if start == 0:
                return self._last_sure_end(text)
            window *= 16

    def _last_sure_end(self, text: str) -> int:
        """Return the end of the last piece that no continuation changes.

        A piece that ends before the text does cannot grow: what the patterns repeat, they
        repeat as far as they can. Only a contraction at the very end may yet be completed, and
        only a piece that ends in white space depends on what follows it.
        """
        last = 0
        for end in accumulate(map(len, self.split(text))):
            if end > len(text) - _LONGEST_CONTRACTION:
                break
            if not text[end - 1].isspace():
                last = end
        return last


class _Pattern:
    """A pattern and its regexes, compiled when a text first needs them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.ascii = self._compiled("ascii")
        # What a group matched may be asked for again, and stand-ins are not told apart.
        self._has_groups = self.ascii.groups > 0

    @cached_property
    def by_stand_ins(self) -> re.Pattern[str]:
        return self._compiled("stand-ins")

    @cached_property
    def unicode(self) -> re.Pattern[str]:
        return self._compiled("unicode")

    def _compiled(self, alphabet: Alphabet) -> re.Pattern[str]:
        try:
            return re.compile(translate(self.source, alphabet))
        except (re.error, OverflowError, RecursionError) as fault:
            raise invalid(self.source, f"is not valid: {fault}") from None

    def _regex(self, text: str) -> tuple[re.Pattern[str], str]:
        """Return the regex to match with, and the text or its stand-ins to match on."""
        if text.isascii():
            return self.ascii, text
        if self._has_groups or unlike_stand_ins(self.source).search(text):
            return self.unicode, text
        return self.by_stand_ins, stand_ins(text)

    def split(self, text: str) -> list[str]:
        """Return the whole matches, and what lies between them as pieces of its own."""
        regex, shown = self._regex(text)
        if regex.groups:  # findall would return the groups
            return list(self.iterate(text))
        pieces: list[str] = regex.findall(shown)
        if sum(map(len, pieces)) != len(text):
            return list(self.iterate(text))
        if shown is not text:
            ends = accumulate(map(len, pieces), initial=0)
            pieces = [text[start:end] for start, end in pairwise(ends)]
        return list(filter(None, pieces)) if "" in pieces else pieces

    def iterate(self, text: str) -> Iterator[str]:
        """Yield what `split` returns, one by one."""
        regex, shown = self._regex(text)
        end = 0
        for match in regex.finditer(shown):
            if end < match.start():
                yield text[end : match.start()]
            if match.start() < match.end():
                yield text[match.start() : match.end()]
            end = match.end()
        if end < len(text):
            yield text[end:]

    def last_end(self, text: str) -> int:
        """Return where the last match ends, 0 if there is none."""
        regex, shown = self._regex(text)
        return max((match.end() for match in regex.finditer(shown)), default=0)


_pattern = lru_cache(maxsize=32)(_Pattern)


@lru_cache(maxsize=32)
def _checked(source: str) -> _Pattern:
    """Return a user's pattern; InputError when it is of no use."""
    pattern = _Pattern(source)
    if pattern.ascii.match("") is not None:
        raise invalid(source, "matches the empty text, which is no piece", "use + in place of *")
    if text := slow_text(pattern.last_end, source):
        raise invalid(
            source,
            f"backtracks too much: {text[:8]!r} and so on, {len(text)} characters in all, "
            "take it more than a tenth of a second",
            "let no repetition hold another that matches the same text",
        )
    return pattern
