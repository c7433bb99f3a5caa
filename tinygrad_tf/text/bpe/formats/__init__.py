"""Files of tokenizers: found out what they are, read, and written."""

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.formats import gpt2, huggingface, minbpe, subword_nmt, tiktoken
from tinygrad_tf.text.bpe.formats.files import (
    make_directory,
    malformed,
    parse_object,
    read_bytes,
    read_text,
    require_free,
    write_files,
)
from tinygrad_tf.text.bpe.splitting import PATTERNS
from tinygrad_tf.text.bpe.table import BPETable

PathLike = str | os.PathLike[str]

FORMATS = ("huggingface", "gpt2", "tiktoken", "minbpe", "subword-nmt")
_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
_ENDINGS = {".json": "huggingface", ".tiktoken": "tiktoken", ".model": "minbpe"}


def load_bpe(
    path: PathLike,
    *,
    pattern: str | None = None,
    specials: Mapping[str, int] | Sequence[str] | None = None,
    format: str | None = None,
) -> BPETable:
    """Read a tokenizer's file, or the directory that holds it, in any of `FORMATS`.

    `format` is found from the content unless given; `pattern` is for formats that do not hold
    it; `specials` are added to those of the file. InputError names file and fault.
    """
    path = _resolved(Path(path))
    format = format or _format(path)
    if format not in FORMATS:
        raise InputError(f"{format!r} is no format of tokenizers", f"use {', '.join(FORMATS)}")
    try:
        table = _read(path, format, pattern)
        return table if specials is None else with_specials(table, specials)
    except InputError as fault:
        if str(path) in fault.what:
            raise
        raise InputError(malformed(path, fault.what).what, fault.next) from fault


def save_bpe(
    table: BPETable, path: PathLike, format: str | None = None, *, force: bool = False
) -> list[str]:
    """Write a tokenizer's file and return remarks on what the format does not hold.

    `format` is one of `FORMATS`, or known by the ending .json, .tiktoken or .model; "gpt2"
    takes a directory for vocab.json and merges.txt. InputError where the format cannot hold the
    table, or a file is there and `force` is not given; FailedError where it cannot be written.
    """
    path = Path(path)
    format = format or _ENDINGS.get(path.suffix)
    if format not in FORMATS:
        raise InputError(f"{path} does not show its format", f"name one of {', '.join(FORMATS)}")
    files = _contents(table.checked(), path, format)
    if format == "gpt2":
        make_directory(path)
    write_files(files, force=force)
    return _remarks(table, format)


def check_target(path: PathLike, format: str | None = None, *, force: bool = False) -> None:
    """Refuse, before any work is done, a place where `save_bpe` would not write.

    InputError where a file is there and `force` is not given, or the format is not known.
    """
    path = Path(path)
    format = format or _ENDINGS.get(path.suffix)
    if format not in FORMATS:
        raise InputError(f"{path} does not show its format", f"name one of {', '.join(FORMATS)}")
    targets = [path / name for name in _PAIRS[0]] if format == "gpt2" else [path]
    for target in targets:
        if target.is_dir() or not target.name:
            raise InputError(
                f"{target} is a directory", f"name a file in it: {target / 'tok.json'}"
            )
        if target.exists() and not target.is_file():
            raise InputError(f"{target} is no regular file", "name a file")
    home = path.parent
    if not home.is_dir():
        raise InputError(f"there is no directory {home}", f"make it first: mkdir {home}")
    require_free(targets, force=force)


def with_specials(table: BPETable, specials: Mapping[str, int | None] | Sequence[str]) -> BPETable:
    """Return the table with further special tokens, InputError where their ids are taken.

    Names without ids get that of their token in the vocabulary, or the next free one.
    """
    wanted = specials if isinstance(specials, Mapping) else dict.fromkeys(specials)
    ids: dict[str, int] = dict(table.specials)
    free = table.size
    for token, given in wanted.items():
        known = ids.get(token, table.vocab.get(token))
        ids[token] = given if given is not None else free if known is None else known
        free = max(free, ids[token] + 1)
    merged = {part for pair in table.merges for part in (*pair, pair[0] + pair[1])}
    vocab = {
        token: i
        for token, i in table.vocab.items()
        if ids.get(token) != i or token in merged or len(token) == 1 or table.by_rank
    }
    return replace(table, vocab=vocab, specials=ids).checked()


def _read(path: Path, format: str, pattern: str | None) -> BPETable:
    if format == "tiktoken":
        return tiktoken.parse(read_bytes(path), pattern=pattern)
    if format == "gpt2":
        vocab, merges = _pair(path)
        fields = parse_object(vocab, read_text(vocab))
        return gpt2.parse(fields, read_text(merges), pattern=pattern)
    if pattern is not None:
        raise InputError("it holds its own pattern", "leave out `pattern`")
    if format == "huggingface":
        return huggingface.from_fields(parse_object(path, read_text(path)))
    if format == "minbpe":
        return minbpe.parse(read_text(path))
    return subword_nmt.parse(read_text(path))


def _resolved(path: Path) -> Path:
    """Return the file that is meant by a directory."""
    if not path.is_dir():
        return path
    names = ["tokenizer.json", *(vocab for vocab, _ in _PAIRS)]
    for name in names:
        if (path / name).is_file():
            return path / name
    raise InputError(
        f"{path} holds no tokenizer: neither {', '.join(names[:-1])} nor {names[-1]}",
        "name the tokenizer's file",
    )


def _pair(path: Path) -> tuple[Path, Path]:
    """Return the paths of a vocabulary and its merges, of which one is given."""
    for names in _PAIRS:
        if path.name in names:
            return path.with_name(names[0]), path.with_name(names[1])
    raise InputError(
        f"{path} does not show where the other file of its pair is",
        "call the two vocab.json and merges.txt",
    )


def _format(path: Path) -> str:
    """Find out of which format a file is, by its content where the name does not say."""
    if any(path.name in names for names in _PAIRS):
        return "gpt2"
    if path.suffix == ".tiktoken":
        return "tiktoken"
    start = read_bytes(path)[:4096]
    if start.lstrip().startswith(b"{"):
        return "huggingface"
    if start.startswith(minbpe.VERSION.encode()):
        return "minbpe"
    first = start.partition(b"\n")[0].split()
    if _is_rank(first):
        return "tiktoken"
    if first[:1] == [b"#version:"] or len(first) in (2, 3):
        return "subword-nmt"
    raise InputError(
        f"{path} is no tokenizer's file that is known here", f"name one of {', '.join(FORMATS)}"
    )


def read_otherwise(pattern: str) -> str:
    """Return the first part of a user's pattern that Hugging Face reads otherwise, or nothing."""
    if pattern in PATTERNS or pattern in PATTERNS.values():
        return ""
    found = re.search(r"\\[wWbBZ]|(?<!\\)(?<!\[)\^|(?<!\\)\$|\(\?[a-z]*i", pattern)
    return found[0] if found else ""


def _is_rank(words: list[bytes]) -> bool:
    """Return True if a line is a token in base64 and a rank."""
    if len(words) != 2 or not words[1].isdigit():
        return False
    try:
        return bool(base64.b64decode(words[0], validate=True))
    except binascii.Error:
        return False


def _contents(table: BPETable, path: Path, format: str) -> dict[Path, bytes]:
    if format == "gpt2":
        return dict(zip((path / name for name in _PAIRS[0]), gpt2.dump(table), strict=True))
    dumps: dict[str, Callable[[BPETable], bytes]] = {
        "huggingface": huggingface.dump,
        "tiktoken": tiktoken.dump,
        "minbpe": minbpe.dump,
        "subword-nmt": subword_nmt.dump,
    }
    return {path: dumps[format](table)}


def _remarks(table: BPETable, format: str) -> list[str]:
    """Return notes on the parts of the table that the format does not hold."""
    remarks = []
    if format == "tiktoken":
        remarks.append(f"the rank file does not hold the pattern: load it with {table.pattern}")
    if format in ("tiktoken", "subword-nmt") and table.specials:
        named = ", ".join(f"{token!r} {i}" for token, i in table.specials.items())
        remarks.append(f"the file does not hold the special tokens: {named}")
    if format == "subword-nmt":
        remarks.append(
            "codes hold no ids, and no characters that take part in no merge: a reader numbers the "
            "tokens anew, and does not know those characters"
        )
    if format == "huggingface" and (read := read_otherwise(table.pattern)):
        remarks.append(
            f"Hugging Face reads {read} in this pattern otherwise: its ids may differ; write "
            "classes such as [\\p{L}\\p{M}\\p{N}_] instead"
        )
    return remarks
