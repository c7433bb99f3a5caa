"""GPT-2's pair of files: vocab.json, and merges.txt in rank order.

They tell neither how text is cut (GPT-2's pattern is meant) nor which tokens are special: entries
like <|endoftext|> or [SEP] that are neither bytes nor made by a merge are taken to be.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import CHAR_TO_BYTE
from tinygrad_tf.text.bpe.encoding import unreachable
from tinygrad_tf.text.bpe.formats.files import cannot_hold, parse_object, read_text
from tinygrad_tf.text.bpe.formats.format import Format
from tinygrad_tf.text.bpe.formats.huggingface import to_fields
from tinygrad_tf.text.bpe.table import BPETable

_SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
_VERSION = "#version"
_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))


def parse(
    vocab: Mapping[str, object],
    merges: str,
    *,
    pattern: str | None = None,
) -> BPETable:
    """Return the table of the two files' contents; InputError names the entry at fault."""
    ids: dict[str, int] = {}
    for token, i in vocab.items():
        if type(i) is not int:
            raise InputError(f"the vocabulary has the id {i!r} for {token!r}, not a whole number")
        ids[token] = i
    # Of a merge that occurs twice the later one counts, as where these files come from.
    pairs = list(dict.fromkeys(reversed(_pairs(merges))))[::-1]
    used = {*CHAR_TO_BYTE}.union(*pairs, (left + right for left, right in pairs))
    specials = {t: i for t, i in ids.items() if t not in used and _SPECIAL.fullmatch(t)}
    return BPETable(
        vocab={t: i for t, i in ids.items() if t in used or t not in specials},
        merges=tuple(pairs),
        pattern=pattern or "gpt2",
        specials=specials,
    ).checked()


def dump(table: BPETable) -> tuple[bytes, bytes]:
    """Return the contents of vocab.json and merges.txt; InputError where they cannot hold it."""
    name = "vocab.json + merges.txt"
    if table.kind != "byte-level":
        raise cannot_hold(name, "it encodes words, not bytes")
    if table.pattern != "gpt2":
        raise cannot_hold(name, f"its pattern is not GPT-2's but {table.pattern}")
    if table.ignore_merges and (token := unreachable(table)):
        raise cannot_hold(name, f"no merges make {token!r}, which is taken whole")
    model = to_fields(table)["model"]
    symbols = {*CHAR_TO_BYTE}.union(*(pair for pair in model["merges"]))
    for special in table.specials:
        if special in symbols or not _SPECIAL.fullmatch(special):
            raise cannot_hold(name, f"they would not show that {special!r} is special")
    lines = [f"{_VERSION}: 0.2"]
    for left, right in model["merges"]:
        if set(left + right) & set(" \r\n"):
            raise cannot_hold(name, f"the merge {(left, right)} holds a space or a line's end")
        lines.append(f"{left} {right}")
    vocab = json.dumps(model["vocab"], ensure_ascii=False) + "\n"
    return vocab.encode("utf-8"), ("\n".join(lines) + "\n").encode("utf-8")


def _pairs(merges: str) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(merges.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith(_VERSION)):
            continue
        match line.split(" "):
            case [left, right] if left and right:
                pairs.append((left, right))
            case _:
                raise InputError(f"line {number} of the merges, {line!r}, is not two tokens")
    return pairs


def _read(path: Path, pattern: str | None) -> BPETable:
    for names in _PAIRS:
        if path.name in names:
            vocab, merges = map(path.with_name, names)
            return parse(parse_object(vocab, read_text(vocab)), read_text(merges), pattern=pattern)
    raise InputError(
        f"{path} does not show where the other file of its pair is",
        "call the two vocab.json and merges.txt",
    )


FORMAT = Format(
    "gpt2",
    read=_read,
    write=lambda table, path: dict(zip(map(path.joinpath, _PAIRS[0]), dump(table), strict=True)),
    has_name=lambda name: any(name in pair for pair in _PAIRS),
    pattern="optional",
    in_directory=("vocab.json", "encoder.json"),
    files=_PAIRS[0],
)
