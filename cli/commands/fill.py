"""`tt fill`: fill in the hidden words of a text."""

from pathlib import Path
from typing import Any

import click

from cli.console import print_json, write_text
from cli.options import POSITIVE_INT, GroupedCommand, RunPath, option
from cli.sentences import UNKNOWN, WEIGHTS, print_ranked, sentences_of

EXAMPLES = (
    'tt fill runs/fill "the cat drank the _ because it was sweet"',
    'tt fill runs/fill "the _ ate the [MASK] because it was hungry" --top 3',
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1),
    option("--top", type=POSITIVE_INT, metavar="K", default=5, show_default=True,
           help="Print the K likeliest words of each."),
    WEIGHTS,
    UNKNOWN,
    option("--json", is_flag=True, help="One object a text."),
    option("--quiet", "-q", is_flag=True, help="Only the texts, filled in."),
]
# fmt: on


@click.command("fill", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    run: Path,
    texts: tuple[str, ...],
    top: int,
    weights: str,
    unknown: Any,
    json: bool,
    quiet: bool,
) -> None:
    """Fill in the words that _ or [MASK] hides in each TEXT, or in each line of stdin."""
    from tinygrad_tf.tasks.masked_lm import MaskFiller

    filler = MaskFiller.load(run, weights)
    for some in sentences_of(texts, 1):
        for text in some:
            filled = filler.fill(text, top, unknown)
            if json:
                answers = [dict(ranked) for ranked in filled.answers]
                print_json({"source": text, "text": filled.text, "answers": answers})
                continue
            write_text(filled.text + "\n")
            for ranked in () if quiet else filled.answers:
                print_ranked(ranked)
