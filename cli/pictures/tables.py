"""Tables: aligned for people, tab-separated for programs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable
from rich.text import Text

from cli.console import answer, is_terminal, print_picture, printable


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings; numbers (int, float) are aligned to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __rich__(self) -> RichTable:
        """Return the table for a terminal; cells are text and never markup."""
        table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for index, heading in enumerate(self.headings):
            numeric = any(isinstance(row[index], int | float) for row in self.rows)
            table.add_column(
                Text(heading), justify="right" if numeric else "left", no_wrap=not numeric
            )
        for row in self.rows:
            table.add_row(*(Text(_shown(cell)) for cell in row))
        return table

    def tsv(self) -> str:
        """Return tab-separated lines, headings first, numbers in full."""
        lines = [self.headings, *self.rows]
        return "\n".join("\t".join(printable(str(cell)) for cell in line) for line in lines)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on stdout: aligned in a terminal, tab-separated in a pipe."""
    table = Table(headings, rows)
    if is_terminal(sys.stdout):
        print_picture(table)
    else:
        answer(table.tsv())


def _shown(cell: object) -> str:
    """Format a cell for people: thousands separators, floats with four digits."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return printable(str(cell))
