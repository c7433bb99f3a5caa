"""tiktoken's rank files: one token a line in base64, and its rank, which is its id.

They hold neither pattern nor special tokens; those of the published files are known by SHA-256.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import to_chars
from tinygrad_tf.text.bpe.formats.files import cannot_hold, read_bytes
from tinygrad_tf.text.bpe.formats.format import Format, lost_specials
from tinygrad_tf.text.bpe.ranks import parts_before
from tinygrad_tf.text.bpe.table import BPETable, spelled_bytes


@dataclass(frozen=True)
class Published:
    """The facts about a published rank file that the file itself does not hold."""

    pattern: str
    specials: Mapping[str, int] = field(default_factory=dict)


_END = "<|endoftext|>"
PUBLISHED = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": Published(
        "gpt2", {_END: 50256}
    ),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": Published(
        "gpt2", {_END: 50256}
    ),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Published(
        "gpt4",
        {
            _END: 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Published(
        "o200k", {_END: 199999, "<|endofprompt|>": 200018}
    ),
}


def parse(data: bytes, *, pattern: str | None = None) -> BPETable:
    """Return the table of a rank file; InputError names the line at fault."""
    published = PUBLISHED.get(hashlib.sha256(data).hexdigest())
    if pattern is None:
        if published is None:
            raise InputError(
                "a rank file does not hold the pattern that cuts text",
                "give `pattern=gpt2`, gpt4, gpt4-old or o200k (and `special` for special tokens)",
            )
        pattern = published.pattern
    vocab: dict[str, int] = {}
    lines: dict[int, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            token, rank = _entry(number, line)
            if rank in lines:
                raise InputError(f"line {number} has the rank {rank} of line {lines[rank]}")
            lines[rank] = number
            vocab[to_chars(token)] = rank  # a token that occurs twice has its later rank
    return BPETable(
        vocab=vocab,
        pattern=pattern,
        specials=published.specials if published else {},
        ignore_merges=True,
        by_rank=True,
    ).checked()


def dump(table: BPETable) -> bytes:
    """Return the rank file; InputError where ranks do not merge as the table does."""
    if table.kind != "byte-level":
        raise cannot_hold("tiktoken", "it encodes words, not bytes")
    if table.duplicates:
        raise cannot_hold("tiktoken", "several ids have the same token", "train it again")
    if not table.by_rank:
        _check_ranks(table)
    lines = [
        base64.b64encode(spelled_bytes(token)) + b" %d\n" % rank
        for token, rank in sorted(table.vocab.items(), key=lambda item: item[1])
    ]
    return b"".join(lines)


def _check_ranks(table: BPETable) -> None:
    """Check that every token's merge is the one that lower ids lead to, in the order of ids."""
    parts = {left + right: [left, right] for left, right in table.merges}
    made = [table.vocab[left + right] for left, right in table.merges]
    if any(later <= earlier for earlier, later in pairwise(made)):
        raise cannot_hold("tiktoken", "its ids do not ascend with the ranks of its merges")
    for token in table.vocab:
        if len(token) > 1 and parts_before(token, table.vocab) != parts.get(token):
            raise cannot_hold("tiktoken", f"its merges do not make {token!r} as ranks would")


def _entry(number: int, line: bytes) -> tuple[bytes, int]:
    shown = line[:40].decode("utf-8", "replace")
    match line.split():
        case [encoded, rank] if rank.isdigit() and len(rank) < 10:
            try:
                token = base64.b64decode(encoded, validate=True)
            except binascii.Error:
                raise InputError(f"line {number}, {shown!r}, is not valid base64") from None
            if token:
                return token, int(rank)
    raise InputError(f"line {number}, {shown!r}, is not a token in base64 and a rank")


def _has_start(start: bytes) -> bool:
    """Return True if the first line is a token in base64 and a rank."""
    words = start.partition(b"\n")[0].split()
    if len(words) != 2 or not words[1].isdigit():
        return False
    try:
        return bool(base64.b64decode(words[0], validate=True))
    except binascii.Error:
        return False


FORMAT = Format(
    "tiktoken",
    read=lambda path, pattern: parse(read_bytes(path), pattern=pattern),
    write=lambda table, path: {path: dump(table)},
    has_start=_has_start,
    has_name=lambda name: name.endswith(".tiktoken"),
    ending=".tiktoken",
    pattern="needed",
    notes=lambda table: [
        f"the rank file does not hold the pattern: load it with {table.pattern}",
        *lost_specials(table),
    ],
)
