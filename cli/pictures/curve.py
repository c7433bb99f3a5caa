"""Curves over steps with reference lines, and sparklines."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from cli.pictures.canvas import Canvas

GUIDE_STYLE = "grey50"


@dataclass(frozen=True)
class Series:
    """A named line through (x, y) points; `mark` is its dot in plain ASCII."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str = "cyan"
    mark: str = "*"


@dataclass(frozen=True)
class Reference:
    """A horizontal line at `value`, labelled at the right edge."""

    name: str
    value: float


def curve(
    series: Sequence[Series],
    references: Sequence[Reference] = (),
    *,
    width: int = 80,
    height: int = 14,
    x_end: float | None = None,
    log_x: bool = False,
    x_label: str = "step",
    ascii: bool = False,
) -> Text:
    """Draw `series` above a numbered axis, `height` rows of dots high and `width` columns wide.

    Points that are not finite are left out. `x_end` extends the axis to a later step.
    """
    shown = [(line, _drawable(line.points, log_x)) for line in series]
    shown = [(line, points) for line, points in shown if points]
    references = [line for line in references if math.isfinite(line.value)]
    if not shown:
        return Text("no points yet", GUIDE_STYLE)

    xs = [x for _, points in shown for x, _ in points] + ([x_end] if x_end else [])
    ys = [y for _, points in shown for _, y in points] + [line.value for line in references]
    bottom, top = _widen(min(ys), max(ys))
    ticks = nice_ticks(bottom, top, max(2, height // 3))
    labels = [_number(tick, ticks) for tick in ticks]
    left = max(map(len, labels)) + 1
    guides = _guides(references, lambda value: _place(value, top, bottom, height))
    right = max(map(len, [x_label, *guides.values()])) + 1

    canvas = Canvas(max(8, width - left - right - 1), height, ascii=ascii)
    across = _scale(min(xs), max(xs), canvas.width, log_x)
    for line, points in shown:
        dots = [(across(x), _place(y, top, bottom, canvas.height)) for x, y in points]
        dots = _one_per_column(dots)
        for start, end in zip(dots, dots[1:] or dots, strict=False):
            canvas.line(start, end, line.style, line.mark)

    numbered = dict(zip((_place(tick, top, bottom, height) for tick in ticks), labels, strict=True))
    bar, dash = ("|", "-") if ascii else ("│", "╌")
    picture = _legend(shown, left, width, ascii)
    for row in range(height):
        picture.append(f"{numbered.get(row, ''):>{left}}{bar}", GUIDE_STYLE)
        picture.append_text(canvas.row(row, dash if row in guides else " ", GUIDE_STYLE))
        picture.append(f" {guides[row]}" if row in guides else "", GUIDE_STYLE)
        picture.append("\n")
    picture.append_text(_x_axis(min(xs), max(xs), canvas.columns, left, log_x, x_label, ascii))
    return picture


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` numbers from low to high, 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _drawable(points: Iterable[tuple[float, float]], log_x: bool) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(y) and (x > 0 or not log_x)]


def _widen(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty."""
    if high > low:
        return low, high
    margin = abs(low) * 0.1 or 1.0
    return low - margin, high + margin


def _place(value: float, top: float, bottom: float, rows: int) -> int:
    """The row, counted from the top, of `value` among `rows` rows."""
    return round((top - value) / (top - bottom) * (rows - 1))


def _scale(low: float, high: float, width: int, log: bool) -> Callable[[float], int]:
    """The map from x to a dot column."""
    view = math.log10 if log else float
    start, span = view(low), view(high) - view(low) or 1.0
    return lambda x: round((view(x) - start) / span * (width - 1))


def _one_per_column(dots: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The mean height of the dots of each column: many noisy points stay one line."""
    columns: dict[int, list[int]] = {}
    for x, y in dots:
        columns.setdefault(x, []).append(y)
    return [(x, round(sum(ys) / len(ys))) for x, ys in sorted(columns.items())]


def _guides(references: Sequence[Reference], row: Callable[[float], int]) -> dict[int, str]:
    """Label by row; references that fall on one row share its label."""
    guides: dict[int, str] = {}
    for line in sorted(references, key=lambda line: -line.value):
        label = f"{line.name} {line.value:.3g}"
        guides[row(line.value)] = ", ".join(filter(None, [guides.get(row(line.value)), label]))
    return guides


def _legend(shown: Sequence[tuple[Series, object]], left: int, width: int, ascii: bool) -> Text:
    """The names of the series in their colours, and their last values, in lines of `width`."""
    margin = " " * (left + 1)
    text, used = Text(margin, no_wrap=True), len(margin)
    for line, _ in shown:
        name, value = f"{line.mark if ascii else '●'} {line.name}", f" {line.points[-1][1]:.3f}"
        if len(margin) < used > width - len(name + value):
            text.append(f"\n{margin}")
            used = len(margin)
        text.append(name, line.style).append(f"{value}   ")
        used += len(name + value) + 3
    return text.append("\n")


def _x_axis(
    low: float, high: float, columns: int, left: int, log: bool, label: str, ascii: bool
) -> Text:
    """The line under the picture, and numbers under it where they have room."""
    ticks = _decades(low, high) if log else nice_ticks(*_widen(low, high), max(2, columns // 16))
    ticks = [tick for tick in ticks if tick == round(tick)] or ticks  # steps are whole
    place = _scale(low, high, columns, log)
    corner, flat, tick_mark = ("+", "-", "+") if ascii else ("└", "─", "┬")
    line, numbers, free = [flat] * columns, "", 0
    for tick in ticks:
        column, number = place(tick), _number(tick, ticks)
        start = max(0, min(column - len(number) // 2, columns - len(number)))
        if not 0 <= column < columns or start < free:
            continue
        line[column] = tick_mark
        numbers = numbers.ljust(start) + number
        free = len(numbers) + 2
    margin = " " * left
    axis = f"{margin}{corner}{''.join(line)} {label}\n{margin} {numbers}"
    return Text(axis, GUIDE_STYLE, no_wrap=True)


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten within the range; only the powers if it is wide."""
    factors = (1,) if high / low > 1000 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**p for p in powers for m in factors if low <= m * 10.0**p <= high]


def _number(value: float, among: Sequence[float]) -> str:
    """Format `value` with enough decimals to differ from its neighbours."""
    gap = min((b - a for a, b in pairwise(among)), default=abs(value) or 1.0)
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    return f"{value + 0.0:,.{decimals}f}" if decimals <= 4 else f"{value:.3g}"
