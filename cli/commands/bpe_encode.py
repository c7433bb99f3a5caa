"""`tt bpe-encode`: encode text as token ids."""

from itertools import islice
from pathlib import Path
from typing import Any

import click

from cli.bpe_options import load, tokenizer_options
from cli.bytes_io import chunks_of, write_bytes
from cli.console import answer
from cli.options import NATURAL, GroupedCommand, Number, option

EXAMPLES = (
    "tt bpe-encode -t tok.json book.txt > book.ids",
    "tt bpe-encode -t tok.json book.txt | tt bpe-decode -t tok.json   the same bytes again",
    "echo hello | tt bpe-encode -t tok.json --count",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["file"], metavar="[FILE]", default="-", type=click.Path(path_type=Path)),
    *tokenizer_options(),
    option("--specials", type=click.Choice(["refuse", "allow", "text"]), default="refuse",
           show_default=True, help="How to treat special tokens in the text."),
    option("--unknown", type=click.Choice(["error", "skip"]), default="error", show_default=True,
           help="What to do with characters that the tokenizer lacks."),
    option("--binary", type=click.Choice(["u16", "u32"]),
           help="Little-endian numbers instead of decimals."),
    option("--count", is_flag=True, help="Print only how many ids there are."),
    option("--dropout", type=Number(min=0, max=1), default=0.0, show_default=True,
           help="Probability of skipping a merge."),
    option("--seed", type=NATURAL, default=0, show_default=True, help="Seed of the dropout."),
]
# fmt: on


@click.command("bpe-encode", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    file: Path,
    tokenizer: Path,
    pattern: str | None,
    special: tuple[str, ...],
    specials: Any,
    unknown: Any,
    binary: str | None,
    count: bool,
    dropout: float,
    seed: int,
) -> None:
    """Print the ids of FILE (stdin by default), whatever bytes it holds."""
    from tinygrad_tf.errors import InputError

    encoder = load(tokenizer, pattern, special)
    if binary == "u16" and encoder.vocab_size > 1 << 16:
        raise InputError(f"ids up to {encoder.vocab_size:,} do not fit in u16", "use --binary u32")
    chunks = chunks_of([file])
    if dropout or unknown == "skip":
        text = b"".join(chunks).decode("utf-8", "surrogateescape")
        blocks = iter(
            [encoder.encode(text, specials=specials, unknown=unknown, dropout=dropout, seed=seed)]
        )
    else:
        blocks = encoder.encode_chunks(chunks, specials=specials)
    total = 0
    for ids in blocks:
        total += len(ids)
        if binary:
            write_bytes(ids.astype("<u2" if binary == "u16" else "<u4").tobytes())
        elif not count:
            listed = iter(ids.tolist())
            while row := list(islice(listed, 1000)):
                answer(" ".join(map(str, row)))
    if count:
        answer(str(total))
