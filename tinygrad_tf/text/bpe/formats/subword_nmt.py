"""subword-nmt's codes: the merges of words, one a line; also fastBPE's, with counts.

Codes hold no ids: these are given to the characters by code point, then to the merges in order.
"""

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.formats.files import cannot_hold, read_text
from tinygrad_tf.text.bpe.formats.format import Format, lost_specials
from tinygrad_tf.text.bpe.table import MARK, BPETable, EndOfWord

_VERSION = "#version:"
_WRITTEN: dict[EndOfWord, str] = {"separate": "0.1", "attached": "0.2"}


def parse(text: str) -> BPETable:
    """Return the table of a codes file; InputError names the line at fault."""
    lines = [line.strip("\r ") for line in text.removesuffix("\n").split("\n")]
    end_of_word: EndOfWord = "separate"  # of files without a header
    skipped = 0
    if lines[0].startswith(_VERSION):
        version = lines[0].removeprefix(_VERSION).strip()
        named: dict[str, EndOfWord] = {name: kind for kind, name in _WRITTEN.items()}
        if version not in named:
            raise InputError(f"its version is {version!r}, not one of {', '.join(named)}")
        end_of_word, skipped = named[version], 1
    elif len(lines[0].split(" ")) == 3:
        end_of_word = "attached"
    pairs = [_pair(number, line) for number, line in enumerate(lines[skipped:], skipped + 1)]
    merges = list(dict.fromkeys(pairs))  # of a merge that occurs twice the first counts
    made = {left + right for left, right in merges}
    parts = {part for pair in merges for part in pair}
    characters = sorted({char for part in parts for char in part.removesuffix(MARK)})
    if end_of_word == "separate":
        alphabet = [*characters, MARK]
    else:
        alphabet = [form for char in characters for form in (char, char + MARK)]
    tokens = dict.fromkeys([*alphabet, *sorted(parts - made), *(a + b for a, b in merges)])
    return BPETable(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=tuple(merges),
        kind="classical",
        pattern="",
        end_of_word=end_of_word,
    ).checked()


def dump(table: BPETable) -> bytes:
    """Return the codes file; InputError where the table is not one of words."""
    if table.end_of_word is None:
        raise cannot_hold("subword-nmt", "it encodes bytes, not words")
    if table.ignore_merges:
        raise cannot_hold("subword-nmt", "words that are tokens are taken whole")
    lines = [f"{_VERSION} {_WRITTEN[table.end_of_word]}"]
    lines += [f"{left} {right}" for left, right in table.merges]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _pair(number: int, line: str) -> tuple[str, str]:
    match line.split(" "):
        case [left, right] | [left, right, _] if left and right:
            return left, right
    raise InputError(f"line {number}, {line[:40]!r}, is not a pair of symbols")


def _has_start(start: bytes) -> bool:
    words = start.partition(b"\n")[0].split()
    return words[:1] == [_VERSION.encode()] or len(words) in (2, 3)


FORMAT = Format(
    "subword-nmt",
    read=lambda path, _: parse(read_text(path)),
    write=lambda table, path: {path: dump(table)},
    has_start=_has_start,
    notes=lambda table: [
        *lost_specials(table),
        "codes hold no ids, and no characters that take part in no merge: a reader numbers the "
        "tokens anew, and does not know those characters",
    ],
)
