"""Heatmaps: a matrix as coloured half blocks, or as numbers where there are few."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from cli.pictures.colours import DIVERGING, SEQUENTIAL, Colour, css, ink, mix

Matrix = Sequence[Sequence[float]]

FEW = 8  # up to so many rows and columns numbers are shown
LABEL_WIDTH = 8
HATCH: tuple[Colour, Colour] = ((70, 70, 70), (105, 105, 105))
NOT_FINITE: Colour = (255, 0, 255)
SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"


def heatmap(
    values: Matrix,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    mask: Sequence[Sequence[bool]] | None = None,
    diverging: bool = False,
    low: float | None = None,
    high: float | None = None,
    numbers: bool | None = None,
    colour: bool = True,
    ascii: bool = False,
) -> Text:
    """Draw a matrix (R, C) with labels for its rows and columns and a legend.

    `mask` is true where a cell is hidden: it is hatched, never drawn as a zero. A diverging map is
    centred on zero, a sequential one spans `low` to `high` (by default the extremes of the visible
    cells). Without colour, shades show sizes, after a sign if the map is diverging. Half blocks
    show two rows a line, after the labels of both, the upper one first.
    """
    grid = _Grid.of(values, mask, diverging, low, high)
    down = [visible(label, ascii)[:LABEL_WIDTH] for label in rows] or [""] * len(grid.values)
    across = [visible(label, ascii) for label in columns]
    few = len(grid.values) <= FEW and len(grid.values[0]) <= FEW
    if few if numbers is None else numbers:
        picture = _numbers(grid, down, across, colour, ascii)
    elif colour and not ascii:
        picture = _half_blocks(grid, down, across)
    else:
        picture = _shades(grid, down, across, ascii)
    return picture.append_text(_legend(grid, colour and not ascii, ascii))


def visible(token: str, ascii: bool = False) -> str:
    """Return a token as a label: newline as ⏎, space as ·, other controls as escapes."""
    newline, space = ("\\n", "_") if ascii else ("⏎", "·")
    shown = (newline if c == "\n" else space if c == " " else _plain(c, ascii) for c in token)
    return "".join(shown)


def _plain(character: str, ascii: bool) -> str:
    fine = character.isprintable() and (not ascii or character.isascii())
    return character if fine else character.encode("unicode_escape").decode()


@dataclass(frozen=True)
class _Grid:
    """The matrix, None where it is masked, and the range of its colours."""

    values: list[list[float | None]]
    low: float
    high: float
    diverging: bool

    @classmethod
    def of(
        cls,
        values: Matrix,
        mask: Sequence[Sequence[bool]] | None,
        diverging: bool,
        low: float | None,
        high: float | None,
    ) -> "_Grid":
        cells: list[list[float | None]] = [[float(v) for v in row] for row in values]
        if not cells or not cells[0] or any(len(row) != len(cells[0]) for row in cells):
            raise ValueError("a heatmap needs a matrix with at least one row and one column")
        for r, row in enumerate(mask if mask is not None else ()):
            for c, hidden in enumerate(row):
                if hidden:
                    cells[r][c] = None
        visible_cells = [v for row in cells for v in row if v is not None and math.isfinite(v)] or [
            0.0
        ]
        if diverging:
            reach = max(abs(v) for v in (*visible_cells, low or 0.0, high or 0.0))
            return cls(cells, -reach, reach, True)
        return cls(
            cells,
            min(visible_cells) if low is None else low,
            max(visible_cells) if high is None else high,
            False,
        )

    def share(self, value: float) -> float:
        """Return the position of `value` between low (0) and high (1)."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def paint(self, row: int, column: int) -> Colour:
        """Return the colour of a cell; masked cells alternate between two greys."""
        value = self.values[row][column]
        if value is None:
            return HATCH[(row + column) % 2]
        if not math.isfinite(value):
            return NOT_FINITE
        return mix(DIVERGING if self.diverging else SEQUENTIAL, self.share(value))


def _numbers(
    grid: _Grid, rows: Sequence[str], columns: Sequence[str], colour: bool, ascii: bool
) -> Text:
    """Draw every value with two decimals on its colour."""
    numbers = [v for row in grid.values for v in row if v is not None]
    largest = max((abs(v) for v in numbers if math.isfinite(v)), default=0.0)
    form = ".2f" if 0.01 <= largest < 1000 or largest == 0 else ".1e"
    labels = [min(len(label), LABEL_WIDTH) for label in columns]
    width = max([5, *labels, *(len(format(v, form)) for v in numbers)]) + 1
    left = max(map(len, rows))
    text = Text(no_wrap=True)
    if columns:
        heads = "".join(f"{label[: width - 1]:>{width}}" for label in columns)
        text.append(f"{'':{left}}{heads}\n", "bold")
    for r, row in enumerate(grid.values):
        text.append(f"{rows[r]:>{left}}", "bold")
        for c, value in enumerate(row):
            if value is None:
                text.append(" " + ("/" if ascii else "╱") * (width - 1), "grey50")
                continue
            paint = grid.paint(r, c)
            text.append(
                f"{value:>{width}{form}}", f"{ink(paint)} on {css(paint)}" if colour else ""
            )
        text.append("\n")
    return text


def _half_blocks(grid: _Grid, rows: Sequence[str], columns: Sequence[str]) -> Text:
    """Draw two rows a line: the upper one as the foreground of ▀, the lower as its background."""
    left = max(map(len, rows))
    margin = 2 * left + 2 if left else 0
    text = _column_heads(columns, margin, 1)
    for upper in range(0, len(grid.values), 2):
        lower = upper + 1
        if left:
            second = rows[lower] if lower < len(rows) else ""
            text.append(f"{rows[upper]:>{left}} {second:>{left}} ", "bold")
        for column in range(len(grid.values[0])):
            style = css(grid.paint(upper, column))
            if lower < len(grid.values):
                style += f" on {css(grid.paint(lower, column))}"
            text.append("▀", style)
        text.append("\n")
    return text


def _shades(grid: _Grid, rows: Sequence[str], columns: Sequence[str], ascii: bool) -> Text:
    """Draw two characters a cell, for output without colour."""
    left = max(map(len, rows))
    text = _column_heads(columns, left + 1, 2)
    for label, row in zip(rows, grid.values, strict=True):
        text.append(f"{label:>{left}} {''.join(_shade(grid, value, ascii) for value in row)}\n")
    return text


def _shade(grid: _Grid, value: float | None, ascii: bool) -> str:
    shades = ASCII_SHADES if ascii else SHADES
    if value is None:
        return "//" if ascii else "╱╱"
    if not math.isfinite(value):
        return "??"
    if not grid.diverging:
        return shades[round(grid.share(value) * (len(shades) - 1))] * 2
    size = abs(value) / grid.high if grid.high else 0.0
    return ("-" if value < 0 else "+") + shades[round(size * (len(shades) - 1))]


def _column_heads(columns: Sequence[str], margin: int, width: int) -> Text:
    """Draw the column labels downwards."""
    text = Text(no_wrap=True)
    for depth in range(min(LABEL_WIDTH, max(map(len, columns), default=0))):
        letters = "".join(f"{label[depth : depth + 1]:<{width}}" for label in columns)
        text.append(f"{'':{margin}}{letters}\n", "bold")
    return text


def _legend(grid: _Grid, colour: bool, ascii: bool) -> Text:
    """Draw the colours from the lowest to the highest value, and the sign for masked cells."""
    text = Text(f"{grid.low:.3g} ", no_wrap=True)
    values = [grid.low + (grid.high - grid.low) * i / 15 for i in range(16)]
    if colour:
        for value in values:
            text.append(
                "█", css(mix(DIVERGING if grid.diverging else SEQUENTIAL, grid.share(value)))
            )
    else:
        text.append("".join(_shade(grid, value, ascii) for value in values[::3]))
    text.append(f" {grid.high:.3g}")
    if any(value is None for row in grid.values for value in row):
        text.append(f"   {'//' if ascii else '╱╱'} masked", "grey50")
    return text
