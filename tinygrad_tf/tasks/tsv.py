"""Texts side by side, as a run keeps them: a line each, a tab between two columns."""

from collections.abc import Iterable


def format_columns(rows: Iterable[tuple[str, str]]) -> bytes:
    """Return the bytes of a file; no text may hold a tab or a newline."""
    return "".join(f"{left}\t{right}\n" for left, right in rows).encode()


def parse_columns(content: bytes) -> list[tuple[str, str]]:
    """Read the columns of a file that `format_columns` wrote."""
    lines = content.decode().split("\n")[:-1]
    return [(left, right) for left, right in (line.split("\t") for line in lines)]
