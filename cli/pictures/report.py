"""A report of the toy models, drawn for a terminal or a file, or written for a program."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from cli.console import printable
from cli.pictures.bars import bars
from cli.pictures.colours import DIVERGING, SEQUENTIAL, css, ink, mix
from cli.pictures.curve import Reference, Series, curve
from cli.pictures.heatmap import heatmap, visible
from cli.pictures.tables import Table

if TYPE_CHECKING:
    from cli.comparison.report import Curves, Exhibit, Matrix, Part, Quotes

STYLES = ("cyan", "bright_yellow", "green", "magenta", "bright_red", "bright_blue", "white")
MARKS = "123456789"
FEW_NUMBERS = 14  # columns up to which a matrix shows its numbers


def picture(
    parts: "Iterable[Part]", *, width: int = 100, ascii: bool = False, colour: bool = True
) -> Group:
    """Draw all parts one under the other."""
    drawn: list[RenderableType] = []
    for part in parts:
        drawn.append(Text(part.heading, "bold underline"))
        drawn += [Text(printable(remark)) for remark in part.remarks]
        for exhibit in part.exhibits:
            drawn += [Text(""), Text(printable(exhibit.title), "bold")]
            drawn.append(_drawn(exhibit, width, ascii, colour))
        drawn.append(Text(""))
    return Group(*drawn)


def plain(parts: "Iterable[Part]") -> str:
    """Write all parts for a pipe: remarks, and exhibits as lines of cells with tabs between."""
    return "\n\n".join("\n".join(_plain(part)) for part in parts)


def _plain(part: "Part") -> Iterator[str]:
    yield f"# {part.heading}"
    yield from (printable(remark) for remark in part.remarks)
    for exhibit in part.exhibits:
        yield ""
        yield f"## {printable(exhibit.title)}"
        yield _table(exhibit).tsv()


def _drawn(exhibit: "Exhibit", width: int, ascii: bool, colour: bool) -> RenderableType:
    from cli.comparison.report import Bars, Curves, Matrix, Quotes

    match exhibit:
        case Quotes():
            return _quotes(exhibit)
        case Matrix():
            return _matrix(exhibit, width, ascii, colour)
        case Bars():
            return bars(exhibit.labels, exhibit.values, ascii=ascii)
        case Curves():
            return _curve(exhibit, width, ascii)
    return _table(exhibit)


def _matrix(matrix: "Matrix", width: int, ascii: bool, colour: bool) -> Text:
    """Draw each number on a coloured cell, or a heatmap if there are many columns."""
    values = matrix.values.tolist()
    rows = [_label(label, ascii) for label in matrix.rows]
    columns = [_label(label, ascii) for label in matrix.columns]
    if len(columns) > FEW_NUMBERS:
        return heatmap(values, rows=rows, columns=columns, colour=colour, ascii=ascii)
    left, cell = max(map(len, rows)) + 1, max(5, *map(len, columns)) + 1
    upright = left + cell * len(columns) <= width
    cell = cell if upright else 6
    picture = Text(no_wrap=True)
    for head in _heads(columns, cell, upright):
        picture.append(f"{'':{left}}{head}\n", "bold")
    largest = max(abs(v) for row in values for v in row) or 1.0
    negative = any(v < 0 for row in values for v in row)
    for label, row in zip(rows, values, strict=True):
        picture.append(f"{label:>{left - 1}} ", "bold")
        for value in row:
            share = (value / largest + 1) / 2 if negative else value / largest
            paint = mix(DIVERGING if negative else SEQUENTIAL, share)
            style = f"{ink(paint)} on {css(paint)}" if colour else ""
            picture.append(f"{value + 0.0:>{cell}.2f}", style)
        picture.append("\n")
    picture.rstrip()
    return picture


def _label(label: str, ascii: bool) -> str:
    """Return words as they are; a single token with its spaces shown."""
    return printable(label) if len(label.split()) > 1 else visible(label, ascii)


def _heads(columns: Sequence[str], cell: int, upright: bool) -> Iterator[str]:
    """Yield the labels in a line, or letter by letter downwards."""
    if upright:
        yield "".join(f"{label:>{cell}}" for label in columns)
        return
    depth = max(map(len, columns))
    for line in range(depth):
        letters = (label.rjust(depth)[line] for label in columns)
        yield "".join(f"{letter:>{cell}}" for letter in letters)


def _quotes(quotes: "Quotes") -> Text:
    """Draw one text under the other, each after its name."""
    picture = Text()
    for line, (name, text) in enumerate(quotes.texts):
        picture.append("\n" * (line > 0) + f"{name}: ", "bold").append(printable(text))
    return picture


def _curve(curves: "Curves", width: int, ascii: bool) -> Text:
    series = [
        Series(name, points, STYLES[i % len(STYLES)], MARKS[i % len(MARKS)])
        for i, (name, points) in enumerate(curves.curves.items())
    ]
    levels = [Reference(name, value) for name, value in curves.levels.items()]
    return curve(
        series, levels, width=width, height=16, log_x=True, x_label=curves.x_label, ascii=ascii
    )


def _table(exhibit: "Exhibit") -> Table:
    """Make a table of any exhibit."""
    from cli.comparison.report import Bars, Curves, Matrix, Quotes

    match exhibit:
        case Quotes():
            return Table(("model", "text"), exhibit.texts)
        case Matrix():
            rows = zip(exhibit.rows, exhibit.values.tolist(), strict=True)
            return Table(("", *exhibit.columns), [(label, *row) for label, row in rows])
        case Bars():
            return Table(("", "value"), list(zip(exhibit.labels, exhibit.values, strict=True)))
        case Curves():
            points: list[tuple[object, ...]] = [
                (name, x, y) for name, line in exhibit.curves.items() for x, y in line
            ]
            points += [(name, "all", y) for name, y in exhibit.levels.items()]
            return Table(("line", exhibit.x_label, "value"), points)
    return Table(
        exhibit.headings, [["" if cell is None else cell for cell in row] for row in exhibit.rows]
    )
