"""`tt bpe-view`: show a text in the colours of its tokens, with ids, bytes and offsets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.bpe_options import load, tokenizer_options
from cli.bytes_io import chunks_of
from cli.console import answer, has_colour, is_terminal, print_json, print_picture, printable, say
from cli.options import GroupedCommand, option

if TYPE_CHECKING:
    from rich.console import Group

    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

# Of the 256 colours of older terminals, and neighbours still differ where there are only 16.
BACKGROUNDS = ("#005f87", "#870000", "#005f00", "#5f0087", "#875f00", "#000087")

EXAMPLES = (
    'tt bpe-view -t tok.json "the oldest lowest"',
    'tt bpe-view -t tok.json "naïve café" --json',
    "tt bpe-view -t tok.json - --save tokens.svg < page.txt",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["text"]),
    *tokenizer_options(),
    option("--specials", type=click.Choice(["refuse", "allow", "text"]), default="allow",
           show_default=True, help="How to treat special tokens in the text."),
    option("--json", is_flag=True, help="One object with every token."),
    option("--save", type=click.Path(path_type=Path), help="Save as .svg, .html or .txt."),
    option("--force", is_flag=True, help="Overwrite the saved file."),
]
# fmt: on


@click.command("bpe-view", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    text: str,
    tokenizer: Path,
    pattern: str | None,
    special: tuple[str, ...],
    specials: Any,
    json: bool,
    save: Path | None,
    force: bool,
) -> None:
    """Show how TEXT (- for stdin) splits: each token with its id, bytes and offsets."""
    from cli.pictures.export import check_target
    from cli.pictures.export import save as save_picture

    if save is not None:
        check_target(save, force=force)
    encoder = load(tokenizer, pattern, special)
    if text == "-":
        text = b"".join(chunks_of([Path("-")])).decode("utf-8", "surrogateescape")
    offsets = encoder.offsets(text, specials=specials)
    if json:
        print_json(_as_json(encoder, text, offsets))
    elif is_terminal(sys.stdout):
        print_picture(_picture(encoder, offsets, colour=has_colour(sys.stdout)))
    else:
        answer(_table(encoder, offsets).tsv())
    if save is not None:
        save_picture(
            _picture(encoder, offsets, colour=True), save, title="tt bpe-view", force=force
        )
        say(f"saved {save}")


def _as_json(encoder: "BPETokenizer", text: str, offsets: list[tuple[int, int, int]]) -> Any:
    tokens = [
        {"id": i, "text": encoder.token_text(i), "bytes": list(encoder.token_bytes(i)),
         "start": start, "end": end}
        for i, start, end in offsets
    ]  # fmt: skip
    size = len(text.encode("utf-8", "surrogateescape"))
    return {"bytes": size, "tokens": tokens, "count": len(tokens)}


def _table(encoder: "BPETokenizer", offsets: list[tuple[int, int, int]]) -> Any:
    from cli.pictures.tables import Table

    rows = [
        (encoder.token_text(i), i, encoder.token_bytes(i).hex(" "), start, end)
        for i, start, end in offsets
    ]
    return Table(("token", "id", "bytes", "start", "end"), rows)


def _picture(
    encoder: "BPETokenizer", offsets: list[tuple[int, int, int]], *, colour: bool
) -> "Group":
    """The text, one background a token (bars between them without colour), over the table."""
    from rich.console import Group
    from rich.text import Text

    line = Text(no_wrap=False)
    for place, (token, _, _) in enumerate(offsets):
        shown = printable(encoder.token_bytes(token).decode("utf-8", "replace"), keep="\n")
        if colour:
            line.append(shown, style=f"#ffffff on {BACKGROUNDS[place % len(BACKGROUNDS)]}")
        else:
            line.append(("|" if place else "") + shown)
    tokens = f"{len(offsets)} tokens" if len(offsets) != 1 else "1 token"
    return Group(line, Text(tokens), Text(""), _table(encoder, offsets))
