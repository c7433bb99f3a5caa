"""minbpe's .model files: pattern, special tokens, and merges by ids from 256."""

from itertools import pairwise

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR
from tinygrad_tf.text.bpe.encoding import unreachable
from tinygrad_tf.text.bpe.formats.files import cannot_hold, read_text
from tinygrad_tf.text.bpe.formats.format import Format
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.table import BPETable

VERSION = "minbpe v1"
_Pairs = dict[tuple[int, int], int]


def parse(text: str) -> BPETable:
    """Return the table of a .model file; InputError names the line at fault."""
    lines = text.removesuffix("\n").split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    if lines[0] != VERSION:
        raise InputError(f"its first line is {lines[0][:40]!r}, not {VERSION!r}")
    if len(lines) < 3 or not lines[2].isdecimal():
        raise InputError("line 3 is not the number of special tokens")
    splitter = Splitter(lines[1] or "none")
    first_merge = 3 + int(lines[2])
    if first_merge > len(lines):
        raise InputError(f"it ends before its {int(lines[2])} special tokens do")
    specials: dict[str, int] = {}
    for number, line in enumerate(lines[3:first_merge], 4):
        token, _, i = line.rpartition(" ")
        if not token or not i.isdecimal() or token in specials:
            raise InputError(f"line {number}, {line!r}, is not a new special token and its id")
        specials[token] = int(i)
    spelled = list(BYTE_TO_CHAR)
    pairs: _Pairs = {}
    for number, line in enumerate(lines[first_merge:], first_merge + 1):
        left, right = _merge(number, line, len(spelled))
        pairs.pop((left, right), None)  # a merge that occurs twice has its later id
        pairs[left, right] = len(spelled)
        spelled.append(spelled[left] + spelled[right])
    chosen = _chosen(spelled, pairs)
    return BPETable(
        vocab={spelled[i]: i for i in chosen},
        merges=tuple(
            (spelled[left], spelled[right])
            for (left, right), new in pairs.items()
            if {left, right, new} <= chosen
        ),
        pattern=splitter.source if splitter.name == "custom" else splitter.name,
        specials=specials,
        duplicates={i: token for i, token in enumerate(spelled) if i not in chosen},
    ).checked()


def dump(table: BPETable) -> bytes:
    """Return the .model file; InputError where the format cannot hold the table."""
    if table.kind != "byte-level":
        raise cannot_hold("minbpe", "it encodes words, not bytes")
    if any(table.vocab[char] != byte for byte, char in enumerate(BYTE_TO_CHAR)):
        raise cannot_hold("minbpe", "its ids 0 to 255 are not the bytes in order")
    vocab = table.vocab
    merges = [(vocab[a], vocab[b], vocab[a + b]) for a, b in table.listed_merges()]
    in_order = [new for *_, new in merges] == list(range(256, len(vocab)))
    if not in_order or any(max(merge) > merge[2] for merge in merges) or table.duplicates:
        raise cannot_hold("minbpe", "its further ids are not those of its merges in order")
    if table.ignore_merges and (token := unreachable(table)):
        raise cannot_hold("minbpe", f"no merges make {token!r}, which is taken whole")
    lines = [VERSION, _pattern_line(table.pattern), str(len(table.specials))]
    for token, i in table.specials.items():
        if len(token.split()) != 1 or token.split()[0] != token:
            raise cannot_hold("minbpe", f"the special token {token!r} holds white space")
        lines.append(f"{token} {i}")
    lines += [f"{left} {right}" for left, right, _ in merges]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _merge(number: int, line: str, new: int) -> tuple[int, int]:
    ids = line.split(" ")
    if len(ids) != 2 or not all(i.isascii() and i.isdigit() for i in ids):
        raise InputError(f"line {number}, {line[:40]!r}, is not a pair of ids")
    left, right = map(int, ids)
    if max(left, right) >= new:
        raise InputError(f"line {number} merges {left} and {right} to {new}, which comes first")
    return left, right


def _chosen(spelled: list[str], pairs: _Pairs) -> set[int]:
    """Return one id for each token: where several are spelled alike, that which merges make.

    Merges within a token are the same in every text, so that they make only one of these.
    """
    alike: dict[str, list[int]] = {}
    for i, token in enumerate(spelled):
        alike.setdefault(token, []).append(i)
    chosen = set()
    for token, ids in alike.items():
        made = _merged([BYTE_TO_CHAR.index(char) for char in token], pairs) if ids[1:] else ids
        chosen.add(made[0] if len(made) == 1 else ids[0])
    return chosen


def _merged(ids: list[int], pairs: _Pairs) -> list[int]:
    while True:
        found = [(pairs[pair], i) for i, pair in enumerate(pairwise(ids)) if pair in pairs]
        if not found:
            return ids
        new, i = min(found)
        ids[i : i + 2] = [new]


def _pattern_line(pattern: str) -> str:
    source = Splitter(pattern).source
    if "\n" in source or "\r" in source:
        raise cannot_hold("minbpe", "its pattern has more than one line")
    # minbpe strips the line: a space at either end stays if it stands in brackets.
    if source.startswith(" "):
        source = "[ ]" + source[1:]
    if source.endswith(" "):
        source = source[:-1] + "[ ]"
    if source.strip() != source:
        raise cannot_hold("minbpe", "its pattern begins or ends with white space")
    return source


FORMAT = Format(
    "minbpe",
    read=lambda path, _: parse(read_text(path)),
    write=lambda table, path: {path: dump(table)},
    has_start=lambda start: start.startswith(VERSION.encode()),
    ending=".model",
)
