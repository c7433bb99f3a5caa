"""Output of commands: answers to stdout, messages to stderr, control characters escaped."""

import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from cli.option_names import in_options

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

GLYPHS = "⣿▀█░▁╌│└┬●⏎·×"  # what the pictures draw with

# C0 and C1 controls, line separators, bidirectional overrides and lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, keep: str = "") -> str:
    r"""Return `text` with characters that control a terminal as escapes such as `\x1b`.

    Characters in `keep` (say, the newline) are left alone.
    """

    def escape(match: re.Match[str]) -> str:
        character = match.group()
        return character if character in keep else character.encode("unicode_escape").decode()

    return _UNSAFE.sub(escape, text)


def one_line(text: str) -> str:
    """Return `text` with every run of white space replaced by one space."""
    return " ".join(text.split())


def streams() -> Iterator[TextIO]:
    """Yield the standard output streams that are open (a closed one is None in Python)."""
    yield from (stream for stream in (sys.stdout, sys.stderr) if stream is not None)


def prepare_streams() -> None:
    """Make both streams escape characters that their encoding lacks, and keep newlines."""
    for stream in streams():
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", newline="\n")


def silence(stream: TextIO | None) -> None:
    """Discard the rest of `stream`, so that closing it at exit cannot fail."""
    try:
        if stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    except (OSError, ValueError):
        pass  # a stream without a descriptor has nothing left to flush


def is_terminal(stream: TextIO | None) -> bool:
    """Return true if `stream` is a terminal."""
    return stream is not None and stream.isatty()


def has_colour(stream: TextIO | None) -> bool:
    """Return true if `stream` may be coloured: a terminal, not dumb, and NO_COLOR unset."""
    old_windows = os.name == "nt" and "WT_SESSION" not in os.environ
    dumb = os.environ.get("TERM") == "dumb" or old_windows
    return is_terminal(stream) and not dumb and not os.environ.get("NO_COLOR")


def has_glyphs(stream: TextIO | None) -> bool:
    """Return true if the encoding of `stream` has the characters that pictures are made of."""
    try:
        GLYPHS.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write(text: str, stream: TextIO | None) -> None:
    """Write `text` unchanged and flush; do nothing if the stream is closed."""
    if stream is not None:
        stream.write(text)
        stream.flush()


def say(message: str) -> None:
    """Print one message on stderr, with settings named by their options."""
    write(printable(in_options(message)) + "\n", sys.stderr)


def answer(text: str) -> None:
    """Print text that the command itself composed on stdout."""
    write(text + "\n", sys.stdout)


def print_error(message: str) -> None:
    """Print one line `tt: error: ...` on stderr, its head red where colour is allowed."""
    head = click.style("tt: error:", fg="red") if has_colour(sys.stderr) else "tt: error:"
    write(f"{head} {printable(message)}\n", sys.stderr)


def write_text(text: str) -> None:
    r"""Write text of a model or a corpus to stdout and flush, with nothing added.

    A terminal gets control characters other than `\n` and `\t` as escapes; a pipe gets all as is.
    """
    write(printable(text, keep="\n\t") if is_terminal(sys.stdout) else text, sys.stdout)


def print_json(value: Any) -> None:
    """Print `value` as one line of JSON on stdout; NaN and infinity, which JSON lacks, as null."""
    answer(json.dumps(_finite(value), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def rich_console(stream: TextIO) -> "Console":
    """Return a rich console on `stream` that keeps text unchanged: no markup, emoji or wrapping."""
    from rich.console import Console

    # rich takes every dumb terminal to be 80 columns wide, unless both sizes are set.
    columns = os.environ.get("COLUMNS", "")
    is_set = columns.isdecimal() and int(columns) > 0
    return Console(
        file=stream,
        width=int(columns) if is_set else None,
        height=25 if is_set else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )


def print_picture(picture: "RenderableType") -> None:
    """Print a picture on stdout; at its full width where stdout is not a terminal."""
    console = rich_console(sys.stdout)
    if not console.is_terminal:
        console.width = 10_000
    console.print(picture)
