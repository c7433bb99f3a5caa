"""Words and how often each occurs: counted in a text, or read from a table."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.specials import WORD, Specials, well_formed
from tinygrad_tf.text.bpe.streaming import blocks, cut_words
from tinygrad_tf.text.reading import read_text

_COUNT = re.compile(r"[0-9]{1,15}")  # that sums of counts stay far below 2**63


def count_words(
    chunks: Iterable[str] | Iterable[bytes], specials: Sequence[str] = ()
) -> dict[str, int]:
    """Return the words of a text that comes in chunks, by first occurrence, with their counts.

    Words are what white space and special tokens part. InputError for lone surrogates.
    """
    finder = Specials(dict.fromkeys(specials, 0))
    counts: Counter[str] = Counter()
    for start, block in blocks(chunks, finder, "allow", cut_words):
        for part, _ in finder.cut(well_formed(block, start=start), "allow"):
            counts.update(WORD.findall(part))
    return dict(counts)


def read_counts_table(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read lines of a word, a tab and a count; blank lines are passed over.

    InputError names the line that is not so, has white space in its word, a count below 1, or a
    word that an earlier line has.
    """
    text, _ = read_text(path)
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        word, tab, count = line.partition("\t")
        if not tab:
            raise _fault(path, number, f"has no tab: {line[:40]!r}")
        if not WORD.fullmatch(word):
            raise _fault(path, number, f"has no single word before its tab: {word[:40]!r}")
        if not _COUNT.fullmatch(count) or int(count) < 1:
            raise _fault(path, number, f"has the count {count[:40]!r}, not a number from 1 on")
        if word in counts:
            raise _fault(path, number, f"has the word {word!r} of line {lines[word]} again")
        counts[word], lines[word] = int(count), number
    if not counts:
        raise InputError(f"{path} has no words", "write a word, a tab and its count on each line")
    return counts


def _fault(path: str | os.PathLike[str], number: int, what: str) -> InputError:
    return InputError(
        f"line {number} of {os.fspath(path)} {what}", "write a word, a tab and its count"
    )
