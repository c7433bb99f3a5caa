"""`tt bpe-stats`: compare tokenizers on a text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.bpe_options import load, tokenizer_options
from cli.bytes_io import chunks_of
from cli.console import print_json
from cli.options import NATURAL, GroupedCommand, option

if TYPE_CHECKING:
    from tinygrad_tf.text.bpe.statistics import Statistics

EXAMPLES = (
    "tt bpe-stats -t tok.json book.txt",
    "tt bpe-stats -t small.json -t large.json -t runs/book book.txt --json",
)

OPTIONS: list[click.Parameter] = [
    click.Argument(["file"], type=click.Path(path_type=Path)),
    *tokenizer_options(many=True),
    option("--longest", type=NATURAL, default=3, show_default=True, help="Longest tokens to list."),
    option("--json", is_flag=True, help="One object with every figure."),
]


@click.command("bpe-stats", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    file: Path,
    tokenizers: tuple[Path, ...],
    pattern: str | None,
    special: tuple[str, ...],
    longest: int,
    json: bool,
) -> None:
    """Compare tokenizers on FILE (- for stdin), beside its characters and its words."""
    from tinygrad_tf.text.bpe.statistics import baselines, measure

    text = [*chunks_of([file])]
    rows = [
        measure(str(path), load(path, pattern, special), text, longest) for path in tokenizers
    ] + baselines(text)
    if json:
        print_json({"file": str(file), "tokenizers": [_as_json(row) for row in rows]})
        return
    from cli.pictures.tables import print_table

    print_table(
        ("tokenizer", "vocabulary", "tokens", "bytes per token", "unused %", "longest"),
        [
            (r.name, r.vocab_size, r.tokens, r.bytes_per_token, 100 * r.unused, _shown(r))
            for r in rows
        ],
    )


def _shown(row: "Statistics") -> str:
    return " ".join(repr(token.decode("utf-8", "replace")) for token in row.longest)


def _as_json(row: "Statistics") -> dict[str, Any]:
    return {
        "name": row.name,
        "vocab_size": row.vocab_size,
        "tokens": row.tokens,
        "bytes": row.size,
        "bytes_per_token": row.bytes_per_token,
        "unused": row.unused,
        "longest": [token.decode("utf-8", "replace") for token in row.longest],
    }
