"""Sentences as arguments, or one a line on stdin; and what commands that read them share."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice

import click

from cli.options import option
from tinygrad_tf.errors import InputError

WEIGHTS = option(
    "--weights",
    type=click.Choice(["best", "last"]),
    default="best",
    show_default=True,
    help="The best checkpoint by validation, or the last.",
)
UNKNOWN = option(
    "--unknown",
    type=click.Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="What to do with words the model never saw.",
)


def sentences_of(texts: tuple[str, ...], together: int) -> Iterator[list[str]]:
    """The arguments, or the lines of stdin as they come, `together` at a time.

    A terminal is read line by line, so that each is answered at once. Raises InputError where
    there is nothing, for an empty line, and for a byte that is not UTF-8.
    """
    found = iter(texts) if texts else _lines()
    if not texts and sys.stdin is not None and sys.stdin.isatty():
        together = 1
    first = True
    while some := list(islice(found, together)):
        first = False
        yield some
    if first:
        raise InputError("there is no text on stdin", "give it as an argument, in quotes")


def _lines() -> Iterable[str]:
    if sys.stdin is None:
        raise InputError("stdin is closed", "give the text as an argument, in quotes")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as fault:
            raise InputError(
                f"line {number} of stdin is not UTF-8: byte 0x{line[fault.start]:02x} "
                f"at its offset {fault.start}",
                "convert it with iconv -f latin1 -t utf-8",
            ) from None
        if not text:
            raise InputError(f"line {number} of stdin is empty", "give one sentence a line")
        yield text
