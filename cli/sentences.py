"""Sentences from arguments or from lines of stdin, and the options of commands that read them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click

from cli.console import is_terminal, printable, write_text
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
    """Yield the arguments, or the lines of stdin as they arrive, `together` at a time.

    A terminal is read line by line, so that each is answered at once. Raises InputError if
    there is no text, for an empty line, and for a byte that is not UTF-8.
    """
    lines = iter(texts) if texts else _lines()
    if not texts and sys.stdin is not None and sys.stdin.isatty():
        together = 1
    first = True
    while some := list(islice(lines, together)):
        first = False
        yield some
    if first:
        raise InputError("there is no text on stdin", "give it as an argument, in quotes")


def print_ranked(ranked: Sequence[tuple[str, float]]) -> None:
    """Print names and their probabilities in one line, tab-separated."""
    line = "\t".join(f"{name}\t{prob:.4f}" for name, prob in ranked)
    write_text((printable(line, keep="\t") if is_terminal(sys.stdout) else line) + "\n")


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
