"""Files of tokenizers: recognised, read, and written in every format of `FORMATS`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.formats import gpt2, huggingface, minbpe, subword_nmt, tiktoken
from tinygrad_tf.text.bpe.formats.files import (
    make_directory,
    malformed,
    parse_object,
    read_bytes,
    require_free,
    write_files,
)
from tinygrad_tf.text.bpe.formats.format import Format
from tinygrad_tf.text.bpe.table import BPETable

PathLike = str | os.PathLike[str]

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT
    for module in (huggingface, gpt2, tiktoken, minbpe, subword_nmt)
}
"""Every format by its name. The first that recognises a file reads it."""


def load_bpe(
    path: PathLike,
    *,
    pattern: str | None = None,
    specials: Mapping[str, int] | Sequence[str] | None = None,
    format: str | None = None,
) -> BPETable:
    """Read a tokenizer's file, or the directory that holds it, in any of `FORMATS`.

    `format` is recognised from name and content by default; `pattern` is for formats that do not
    hold it; `specials` are added to those of the file. InputError names file and fault.
    """
    path = _resolved(Path(path))
    format = format or _recognised(path)
    if format not in FORMATS:
        raise InputError(f"{format!r} is no format of tokenizers", f"use {', '.join(FORMATS)}")
    with _naming(path):
        if pattern is not None and FORMATS[format].pattern == "held":
            raise InputError("it holds its own pattern", "leave out `pattern`")
        table = FORMATS[format].read(path, pattern)
        return table if specials is None else with_specials(table, specials)


def parse_bpe(content: bytes, path: PathLike) -> BPETable:
    """Read the content of a tokenizer.json; InputError names `path` and the fault."""
    with _naming(Path(path)):
        return huggingface.from_fields(parse_object(Path(path), content.decode("utf-8")))


def save_bpe(
    table: BPETable, path: PathLike, format: str | None = None, *, force: bool = False
) -> list[str]:
    """Write a tokenizer's file and return notes on the parts that the format does not hold.

    `format` is one of `FORMATS`, by default that of the name's ending; "gpt2" takes a directory for
    vocab.json and merges.txt. InputError where the format cannot hold the table, or a file exists
    and `force` is False; FailedError where it cannot be written.
    """
    path = Path(path)
    chosen = _chosen(path, format)
    files = chosen.write(table.checked(), path)
    if chosen.files:
        make_directory(path)
    write_files(files, force=force)
    return chosen.notes(table)


def check_target(path: PathLike, format: str | None = None, *, force: bool = False) -> None:
    """Refuse, before any work is done, a place where `save_bpe` would not write.

    InputError where a file exists and `force` is False, or the format is not known.
    """
    path = Path(path)
    targets = [path / name for name in _chosen(path, format).files] or [path]
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


def format_of_ending(path: PathLike) -> str | None:
    """Return the name of the format that the ending of a new file's name chooses, or None."""
    ending = Path(path).suffix
    return next((name for name, one in FORMATS.items() if ending and one.ending == ending), None)


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


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an InputError that does not name it yet."""
    try:
        yield
    except InputError as fault:
        if str(path) in fault.what:
            raise
        raise InputError(malformed(path, fault.what).what, fault.next) from fault


def _chosen(path: Path, format: str | None) -> Format:
    """Return the format to write; InputError where neither name nor ending is known."""
    format = format or format_of_ending(path)
    if format not in FORMATS:
        raise InputError(f"{path} does not show its format", f"name one of {', '.join(FORMATS)}")
    return FORMATS[format]


def _resolved(path: Path) -> Path:
    """Return the file that is meant by a directory."""
    if not path.is_dir():
        return path
    names = [name for one in FORMATS.values() for name in one.in_directory]
    for name in names:
        if (path / name).is_file():
            return path / name
    raise InputError(
        f"{path} holds no tokenizer: neither {', '.join(names[:-1])} nor {names[-1]}",
        "name the tokenizer's file",
    )


def _recognised(path: Path) -> str:
    """Return the format of a file, by its content where the name does not show it."""
    for name, one in FORMATS.items():
        if one.has_name(path.name):
            return name
    start = read_bytes(path)[:4096]
    for name, one in FORMATS.items():
        if one.has_start(start):
            return name
    raise InputError(
        f"{path} is no tokenizer's file that is known here", f"name one of {', '.join(FORMATS)}"
    )
