"""What the commands of byte pair encoding share: naming a tokenizer and a pattern."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.options import GroupedOption, option

if TYPE_CHECKING:
    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

TOKENIZER = "Tokenizer"
FORMATS = ("huggingface", "gpt2", "tiktoken", "minbpe", "subword-nmt")
PATTERNS = "gpt2|gpt4|gpt4-old|o200k|none|REGEX"


def tokenizer_options(*, many: bool = False) -> list[click.Parameter]:
    """-t, and what files that do not tell everything need besides."""
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
            help="How text is cut, for files that do not tell.",
        ),
        option(
            "--special",
            "special",
            group=TOKENIZER,
            multiple=True,
            metavar="TEXT[=ID]",
            help="A special token that the file does not tell; may be repeated.",
        ),
    ]


def load(path: Path, pattern: str | None, special: tuple[str, ...]) -> "BPETokenizer":
    """The tokenizer that the options name; raises InputError."""
    from tinygrad_tf.text.bpe.formats import load_bpe, with_specials
    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

    table = load_bpe(path, pattern=pattern)
    if special:
        table = with_specials(table, special_ids(special))
    return BPETokenizer(table)


def special_ids(special: tuple[str, ...]) -> dict[str, int | None]:
    """TEXT or TEXT=ID, by text; an id is taken only if what follows the last = is a number."""
    ids: dict[str, int | None] = {}
    for given in special:
        text, equals, number = given.rpartition("=")
        if equals and text and number.isdecimal() and number.isascii():
            ids[text] = int(number)
        else:
            ids[given] = None
    return ids
