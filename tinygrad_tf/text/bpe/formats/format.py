"""The facts about a format of tokenizer files from which all else about formats follows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinygrad_tf.text.bpe.table import BPETable


def _never(_: str | bytes) -> bool:
    return False


def _no_notes(_: BPETable) -> list[str]:
    return []


@dataclass(frozen=True)
class Format:
    """A format of tokenizer files: its name, and how it is recognised, read and written.

    `read` takes a path and a pattern, `write` returns the content of each file that it makes.
    `has_name` and `has_start` recognise a file by its name or by its first 4,096 bytes.
    """

    name: str
    read: Callable[[Path, str | None], BPETable]
    write: Callable[[BPETable, Path], dict[Path, bytes]]
    has_start: Callable[[bytes], bool] = _never
    has_name: Callable[[str], bool] = _never
    ending: str = ""
    """The ending of a new file's name by which the format is chosen, as `.json`."""
    pattern: Literal["held", "optional", "needed"] = "held"
    """The splitting pattern is held by the file, or is given to the reader, maybe or always."""
    in_directory: tuple[str, ...] = ()
    """The names by which a directory is known to hold a tokenizer of this format."""
    files: tuple[str, ...] = ()
    """The names of the files that it writes into a directory; empty where it writes one file."""
    notes: Callable[[BPETable], list[str]] = _no_notes
    """Notes on the parts of a table that its files do not hold, or that others read differently."""


def lost_specials(table: BPETable) -> list[str]:
    """Return the note that a file does not hold the special tokens, where there are any."""
    named = ", ".join(f"{token!r} {i}" for token, i in table.specials.items())
    return [f"the file does not hold the special tokens: {named}"] if named else []
