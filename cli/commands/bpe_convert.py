"""`tt bpe-convert`: convert a tokenizer between formats."""

from pathlib import Path

import click

from cli.bpe_options import FormatChoice, load, tokenizer_options
from cli.console import print_json, say
from cli.options import GroupedCommand, option

EXAMPLES = (
    "tt bpe-convert tok.json gpt2-files --format gpt2",
    "tt bpe-convert cl100k.tiktoken cl100k.json --pattern gpt4",
    "tt bpe-convert tok.json tok.model",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["source"], metavar="FROM", type=click.Path(path_type=Path)),
    click.Argument(["target"], metavar="TO", type=click.Path(path_type=Path)),
    option("--format", type=FormatChoice(),
           help="Format of the new file.  [default: by its ending]"),
    option("--force", is_flag=True, help="Overwrite an existing file."),
    option("--json", is_flag=True, help="One object with the result."),
    *(p for p in tokenizer_options() if p.name != "tokenizer"),
]
# fmt: on


@click.command("bpe-convert", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    source: Path,
    target: Path,
    format: str | None,
    force: bool,
    json: bool,
    pattern: str | None,
    special: tuple[str, ...],
) -> None:
    """Read the tokenizer FROM, of any format, and write it to TO.

    A tokenizer that the new format cannot represent is refused; lesser losses are noted.
    """
    from tinygrad_tf.text.bpe.formats import save_bpe

    table = load(source, pattern, special).table
    notes = save_bpe(table, target, format, force=force)
    if json:
        print_json({"vocab_size": table.size, "sha256": table.sha256(), "notes": notes})
        return
    for note in notes:
        say(f"note: {note}")
    say(f"saved {target}: {table.size:,} tokens")
