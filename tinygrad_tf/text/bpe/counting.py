"""Counts of the distinct pieces or words of a text, in constant memory; or read from a table.

Several processes may share the counting of pieces.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.specials import WORD, Specials, well_formed
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.streaming import blocks, cut_words
from tinygrad_tf.text.bpe.workers import in_workers
from tinygrad_tf.text.reading import read_text

_CHUNK = 1 << 16  # characters; longer chunks are sliced, for a split takes 50 bytes for each
_BATCH = 32  # blocks that a worker counts at a time: 2 million characters
_FREQUENCY = re.compile(r"[0-9]{1,15}")  # that sums of counts stay far below 2**63

Block = tuple[int, str]


@dataclass(frozen=True)
class PieceCounts:
    """The distinct pieces of a text in order of first occurrence, and how often each occurs.

    `total_bytes` is the length of the text without its special tokens.
    """

    pieces: list[bytes]
    counts: list[int]
    total_bytes: int


def count_pieces(
    chunks: Iterable[str] | Iterable[bytes],
    splitter: Splitter,
    specials: Sequence[str] = (),
    workers: int = 1,
) -> PieceCounts:
    """Count the pieces of a text that comes in chunks; special tokens part it, uncounted.

    The result depends neither on the number of workers nor on how the text is cut into chunks.
    Memory is that of the distinct pieces and a few blocks, where the splitter knows places to
    cut; for "none" and users' own patterns it is that of the text between special tokens.
    InputError for fewer than one worker and lone surrogates, FailedError when a worker dies.
    """
    if workers < 1:
        raise InputError(f"{workers} workers cannot count", "give 1 or more")
    finder = Specials(dict.fromkeys(specials, 0))
    cut = blocks(_sliced(chunks), finder, "allow", splitter.cut)
    if workers == 1:
        return _as_bytes(_count(cut, splitter, finder))
    batches = iter(lambda: list(islice(cut, _BATCH)), [])
    first = list(islice(batches, 2))
    if len(first) < 2:  # not worth the start of a process
        return _as_bytes(_count(chain.from_iterable(first), splitter, finder))
    counts: Counter[str] = Counter()
    count = partial(_count, splitter=splitter, finder=finder)
    for counted in in_workers(count, chain(first, batches), workers, "counted pieces"):
        counts.update(counted)
    return _as_bytes(counts)


def _sliced(chunks: Iterable[str] | Iterable[bytes]) -> Iterator[str] | Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _CHUNK):
            yield chunk[start : start + _CHUNK]


def _count(cut: Iterable[Block], splitter: Splitter, finder: Specials) -> Counter[str]:
    """Count the pieces of blocks, each of which splits as it would within the whole text."""
    counts: Counter[str] = Counter()
    for start, block in cut:
        text = block if block.isascii() else well_formed(block, start=start)
        for part, _ in finder.cut(text, "allow"):
            counts.update(splitter.pieces(part))
    return counts


def _as_bytes(counts: Counter[str]) -> PieceCounts:
    """Return the counts by bytes; a character and its bytes as surrogate escapes are one."""
    by_bytes: dict[bytes, int] = {}
    for piece, count in counts.items():
        data = piece.encode("utf-8", "surrogateescape")
        by_bytes[data] = by_bytes.get(data, 0) + count
    total = sum(len(piece) * count for piece, count in by_bytes.items())
    return PieceCounts(list(by_bytes), list(by_bytes.values()), total)


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
        if not _FREQUENCY.fullmatch(count) or int(count) < 1:
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
