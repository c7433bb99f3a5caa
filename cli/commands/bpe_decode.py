"""`tt bpe-decode`: decode ids to the original bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.bpe_options import load, tokenizer_options
from cli.bytes_io import chunks_of, write_bytes
from cli.options import GroupedCommand, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = (
    "tt bpe-decode -t tok.json book.ids > book.txt",
    "echo 72 105 | tt bpe-decode -t tok.json",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["file"], metavar="[FILE]", default="-", type=click.Path(path_type=Path)),
    *tokenizer_options(),
    option("--binary", type=click.Choice(["u16", "u32"]),
           help="Little-endian numbers instead of decimals."),
]
# fmt: on


@click.command("bpe-decode", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    file: Path,
    tokenizer: Path,
    pattern: str | None,
    special: tuple[str, ...],
    binary: str | None,
) -> None:
    """Write the bytes of the ids in FILE (stdin by default), and nothing else."""
    decoder = load(tokenizer, pattern, special)
    if decoder.table.kind == "classical":
        import numpy as np

        # The space between words belongs to the next one, so the ids go together.
        parts = list(_ids(chunks_of([file]), binary))
        write_bytes(decoder.decode_bytes(np.concatenate(parts) if parts else []))
        return
    for ids in _ids(chunks_of([file]), binary):
        write_bytes(decoder.decode_bytes(ids))


def _ids(chunks: Iterator[bytes], binary: str | None) -> Iterator["NDArray[Any]"]:
    """Parse the ids of a file, a chunk at a time; raises InputError naming a word that is none."""
    import numpy as np

    from tinygrad_tf.errors import InputError

    width = {"u16": 2, "u32": 4}.get(binary or "", 0)
    rest, place = b"", 0
    for chunk in chunks:
        data = rest + chunk
        if width:
            end = len(data) - len(data) % width
            yield np.frombuffer(data[:end], f"<u{width}").astype(np.int64)
        else:
            end = max(data.rfind(space) for space in (b" ", b"\n", b"\t")) + 1
            yield _numbers(data[:end], place)
        rest, place = data[end:], place + end
    if width and rest:
        raise InputError(
            f"{len(rest)} bytes are left over at the end, where a number takes {width}",
            "was the file cut short, or is it of another width?",
        )
    if rest:
        yield _numbers(rest, place)


def _numbers(data: bytes, place: int) -> "NDArray[Any]":
    import numpy as np

    from tinygrad_tf.errors import InputError

    words = data.split()
    for word in words:
        if not (word.isdigit() and len(word) < 10):
            shown = word[:20].decode("utf-8", "replace")
            raise InputError(
                f"{shown!r} (at byte {place + data.find(word)}) is not a token id",
                "give numbers with spaces or newlines between them",
            )
    return np.array(words, dtype="S10").astype(np.int64)
