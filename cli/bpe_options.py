"""Options that the byte pair encoding commands share: a tokenizer's file and its pattern."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.options import GroupedOption, option

if TYPE_CHECKING:
    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

TOKENIZER = "Tokenizer"
PATTERNS = "gpt2|gpt4|gpt4-old|o200k|none|REGEX"


class FormatChoice(click.Choice[str]):
    """The choice of a format of tokenizer files, which are loaded only when it is needed."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the formats."""
        from tinygrad_tf.text.bpe.formats import FORMATS

        return tuple(FORMATS)


def tokenizer_options(*, many: bool = False) -> list[click.Parameter]:
    """--tokenizer, and options for files that lack their pattern or special tokens."""
    return [
        GroupedOption(
            ["--tokenizer", "-t", "tokenizers" if many else "tokenizer"],
            group=TOKENIZER,
            type=click.Path(path_type=Path),
            multiple=many,
            required=True,
            metavar="FILE",
            help="A tokenizer's file of any format, or a run."
            + (" May be repeated." if many else ""),
        ),
        option(
            "--pattern",
            group=TOKENIZER,
            metavar=PATTERNS,
            help="How text is split into pieces, for files that do not record it.",
        ),
        option(
            "--special",
            "special",
            group=TOKENIZER,
            multiple=True,
            metavar="TEXT[=ID]",
            help="A special token that the file does not record; may be repeated.",
        ),
    ]


def load(path: Path, pattern: str | None, special: tuple[str, ...]) -> "BPETokenizer":
    """Load the tokenizer that the options name; raises InputError."""
    from tinygrad_tf.text.bpe.formats import load_bpe, with_specials
    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

    table = load_bpe(path, pattern=pattern)
    if special:
        table = with_specials(table, special_ids(special))
    return BPETokenizer(table)


def special_ids(special: tuple[str, ...]) -> dict[str, int | None]:
    """Parse TEXT or TEXT=ID into ids by text; without a number after the last =, the id is None."""
    ids: dict[str, int | None] = {}
    for argument in special:
        text, equals, number = argument.rpartition("=")
        if equals and text and number.isdecimal() and number.isascii():
            ids[text] = int(number)
        else:
            ids[argument] = None
    return ids
