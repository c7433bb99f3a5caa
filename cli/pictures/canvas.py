"""A grid of characters to draw on: braille with 2 x 4 dots a cell, or plain ASCII."""

from itertools import groupby

from rich.text import Text

# The bit of each dot of a braille cell, [row][column] (Unicode, block U+2800).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class Canvas:
    """Dots at (x, y), x to the right and y downwards, each with a style and an ASCII mark.

    A cell has one style: that of the last dot put into it.
    """

    def __init__(self, columns: int, rows: int, *, ascii: bool = False) -> None:
        self.columns, self.rows, self.ascii = columns, rows, ascii
        self.width = columns if ascii else 2 * columns
        self.height = rows if ascii else 4 * rows
        self._cells: dict[tuple[int, int], tuple[int, str, str]] = {}

    def dot(self, x: int, y: int, style: str = "", mark: str = "*") -> None:
        """Draw one dot; a dot outside the canvas is ignored."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        if self.ascii:
            self._cells[y, x] = (0, style, mark)
            return
        cell = (y // 4, x // 2)
        bits = self._cells.get(cell, (0, "", ""))[0]
        self._cells[cell] = (bits | _DOTS[y % 4][x % 2], style, mark)

    def line(self, start: tuple[int, int], end: tuple[int, int], style: str, mark: str) -> None:
        """Draw a straight line between two dots."""
        (x0, y0), (x1, y1) = start, end
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            self.dot(
                round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps), style, mark
            )

    def row(self, row: int, background: str = " ", background_style: str = "") -> Text:
        """Return one row of cells as text; empty cells show `background`."""
        empty = (0, background_style, background)
        cells = (self._cells.get((row, column), empty) for column in range(self.columns))
        text = Text(no_wrap=True)
        for style, run in groupby(cells, key=lambda cell: cell[1]):
            text.append(
                "".join(chr(0x2800 + bits) if bits else mark for bits, _, mark in run), style
            )
        return text
