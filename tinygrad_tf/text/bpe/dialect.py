r"""The regex dialect of tokenizer files, written for the standard library's `re`.

tiktoken and Hugging Face read `\p{L}`, and mean Unicode 16's sets by `\s`, `\d` and `\w`. `re`
knows no `\p`, counts U+001C to U+001F as space and has the Unicode of its Python. So each such
set becomes a list of ranges, `$` becomes `\Z` (`re` also stops before a last newline), and
`(?<name>` becomes `(?P<name>`.

There are three alphabets to write the ranges in. `re` tests sets of code points below 256 by a
bitmap, and long lists of ranges one after the other; so a text is matched as it is if it is
ASCII, and else, where the pattern allows, as stand-ins: a character of Latin-1's second half for
each that is not ASCII, one for each category.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe import unicode16

Alphabet = Literal["ascii", "stand-ins", "unicode"]

_SETS = {"s": "White_Space", "d": "Nd", "w": "Word"}
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)\s*(\w+)\s*\}|(\w))")
_CODE_POINT = re.compile(r"\\[xu]\{([0-9A-Fa-f]{1,6})\}")
_FLAGS = re.compile(r"\(\?([aiLmsux]*)(?:-[imsx]+)?[:)]")
_SET_OPERATORS = ("&&", "--", "~~", "||")
_NOWHERE = r"\uffff"  # in no ASCII text: what a set without ASCII members matches there
_CATEGORIES = "".join(unicode16.PROPERTIES[name] for name in "LMNPSZC")
_STAND_INS = {category: chr(0x80 + place) for place, category in enumerate(_CATEGORIES)}
# Characters and escapes that may mean a single character which is not ASCII.
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]|\\[xuUN0-7]")
_FOLDS = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}  # where case is ignored
_NO_LETTERS = re.compile(r"\\[pP]\{[^}]*\}|\\.|\(\?[a-z-]*")


def translate(source: str, alphabet: Alphabet = "unicode") -> str:
    """Return the pattern for `re`, with its sets written in an alphabet.

    Raises InputError for a property that is not in the table and for nested sets, which `re`
    reads differently.
    """
    return "".join(_Translation(source, alphabet).parts())


@cache
def unlike_stand_ins(source: str) -> re.Pattern[str]:
    """Return what finds the characters with which a text must not be matched on its stand-ins.

    All that are not ASCII, if the pattern may name one; where it ignores case, those that fold
    to a letter of the pattern, or to any within its ranges.
    """
    if _BEYOND_ASCII.search(source):
        return re.compile(r"[^\x00-\x7f]")
    letters = _NO_LETTERS.sub("", source).lower() if "i" in _flags(source) else ""
    folded = [char for char, letter in _FOLDS.items() if letter in letters or "-" in letters]
    return re.compile("|".join(folded) or "(?!)")


def _flags(source: str) -> str:
    return "".join(_FLAGS.findall(source))


def stand_ins(text: str) -> str:
    """Return the text with a stand-in of its category for each character that is not ASCII."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return str(_stand_in_table()[codes].tobytes(), "latin-1")


@cache
def _stand_in_table() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    categories, values = ("".join(part) for part in (_STAND_INS, _STAND_INS.values()))
    to = bytes.maketrans(categories.encode("ascii"), values.encode("latin-1"))
    table = unicode16.categories().translate(to)
    return np.frombuffer(bytes(range(128)) + table[128:], np.uint8)


def invalid(source: str, why: str, remedy: str = "correct the pattern") -> InputError:
    """The fault of a pattern, in one line."""
    return InputError(f"the pattern {source!r} {why}", remedy)


@cache
def _written(categories: frozenset[str], alphabet: Alphabet) -> str:
    """Return a set of categories as members of a class."""
    last = unicode16.LAST if alphabet == "unicode" else 0x7F
    ranges = unicode16.ranges("".join(sorted(categories)))
    members = [f"\\U{a:08x}-\\U{min(b, last):08x}" for a, b in ranges if a <= last]
    if alphabet == "stand-ins":
        members += sorted(map(_STAND_INS.__getitem__, categories))
    return "".join(members) or _NOWHERE


class _Translation:
    """One walk over a pattern; `at` is the place in it."""

    def __init__(self, source: str, alphabet: Alphabet) -> None:
        self.source = source
        self.alphabet = alphabet
        self.at = 0
        self.end_of_text = "$" if "m" in _flags(source) else r"\Z"

    def parts(self) -> Iterator[str]:
        """Yield the pieces of the translated pattern."""
        while self.at < len(self.source):
            char = self.source[self.at]
            if char == "\\":
                yield self._escape()
            elif char == "[":
                yield self._class()
            elif named := re.compile(r"\(\?<(?![=!])").match(self.source, self.at):
                self.at = named.end()
                yield "(?P<"
            else:
                self.at += 1
                yield self.end_of_text if char == "$" else char

    def _escape(self) -> str:
        """Translate the escape at `at`, outside a class."""
        if (members := self._set()) is not None:
            return f"[{members}]"
        word = f"[{_written(frozenset(unicode16.PROPERTIES['Word']), self.alphabet)}]"
        known = {
            r"\b": f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))",
            r"\B": f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))",
            r"\z": r"\Z",
        }
        if (escape := self.source[self.at : self.at + 2]) in known:
            self.at += 2
            return known[escape]
        if named := re.compile(r"\\k<(\w+)>").match(self.source, self.at):
            self.at = named.end()
            return f"(?P={named[1]})"
        return self._literal()

    def _class(self) -> str:
        """Translate the `[...]` at `at`."""
        start = self.at
        opening = re.compile(r"\[\^?(\]?)").match(self.source, start)
        assert opening is not None  # there is a [
        self.at = opening.end()
        parts = [opening[0].replace("]", r"\]")]
        while not self.source.startswith("]", self.at):
            if self.at >= len(self.source):
                raise invalid(self.source, f"has no ] for the [ at position {start}")
            parts.append(self._member())
        self.at += 1
        return "".join([*parts, "]"])

    def _member(self) -> str:
        """Translate one member of a class."""
        operator = self.source[self.at : self.at + 2]
        if operator.startswith("[") or operator in _SET_OPERATORS:
            operator = operator[:1] if operator.startswith("[") else operator
            raise invalid(
                self.source,
                f"has {operator} in the [...] at position {self.at}, which engines read otherwise",
                f"write {''.join(map(re.escape, operator))} for the characters",
            )
        if self.source[self.at] != "\\":
            self.at += 1
            return self.source[self.at - 1]
        members = self._set()
        return self._literal() if members is None else members

    def _literal(self) -> str:
        r"""Copy the escape at `at`, which stands for one character; `\x{...}` is rewritten."""
        if code := _CODE_POINT.match(self.source, self.at):
            self.at = code.end()
            return f"\\U{int(code[1], 16):08x}"
        self.at += 2
        return self.source[self.at - 2 : self.at]

    def _set(self) -> str | None:
        """Return the members of the set that the escape at `at` names; None if it names none."""
        letter = self.source[self.at + 1 : self.at + 2]
        if name := _SETS.get(letter.lower()):
            self.at += 2
            negated = letter.isupper()
        elif letter in ("p", "P"):
            found = _PROPERTY.match(self.source, self.at)
            name = (found[3] or found[4]) if found else "?"
            if found is None or name not in unicode16.PROPERTIES:
                raise invalid(
                    self.source,
                    f"names the property {name} at position {self.at}, which is not known here",
                    f"use one of {' '.join(unicode16.PROPERTIES)}",
                )
            self.at = found.end()
            negated = (found[1] == "P") != (found[2] == "^")
        else:
            return None
        categories = frozenset(unicode16.PROPERTIES[name])
        return _written(
            frozenset(_CATEGORIES) - categories if negated else categories, self.alphabet
        )
