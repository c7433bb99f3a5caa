"""Curves, sparklines, heatmaps and tables: known data at known cells."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from cli.pictures.canvas import Canvas
from cli.pictures.colours import DIVERGING, SEQUENTIAL, css, mix
from cli.pictures.curve import Reference, Series, curve, nice_ticks
from cli.pictures.heatmap import HATCH, heatmap, visible
from cli.pictures.tables import Table

FINITE = st.floats(-1e6, 1e6)


def style_at(text: Text, index: int) -> str:
    """The style of the last span that covers a character."""
    return str([span.style for span in text.spans if span.start <= index < span.end][-1])


def test_a_braille_cell_holds_two_by_four_dots():
    for x, y, character in [
        (0, 0, "⠁"), (1, 0, "⠈"), (0, 1, "⠂"), (1, 1, "⠐"),
        (0, 2, "⠄"), (1, 2, "⠠"), (0, 3, "⡀"), (1, 3, "⢀"),
    ]:  # fmt: skip
        canvas = Canvas(2, 2)
        canvas.dot(2 + x, 4 + y)
        assert canvas.row(0).plain == "  " and canvas.row(1).plain == " " + character
    canvas.dot(99, 0)
    canvas.dot(0, -1)
    canvas.line((2, 4), (3, 7), "red", "*")
    assert canvas.row(0).plain == "  "


def area(picture: Text) -> list[str]:
    """The rows of dots of a curve, without labels."""
    return [line.partition("│")[2] for line in picture.plain.splitlines() if "│" in line]


def test_a_falling_line_goes_from_the_top_left_to_the_bottom_right():
    rows = area(curve([Series("loss", [(0, 4.0), (100, 0.0)])], width=40, height=8))
    assert len(rows) == 8
    first = [min(i for i, c in enumerate(row) if c != " ") for row in rows]
    assert first[0] == 0 and first == sorted(first)
    assert rows[-1].rstrip()[-1] != " " and len(rows[-1].rstrip()) == len(rows[0])
    assert ord(rows[0][0]) - 0x2800 & 0x01, "the first point is the top left dot"
    assert ord(rows[-1].rstrip()[-1]) - 0x2800 & 0x80, "the last one is the bottom right dot"


def test_axes_carry_round_numbers_and_the_last_values():
    text = curve([Series("loss", [(0, 4.0), (100, 1.0)])], width=60, height=12).plain
    labels = [line.partition("│")[0].strip() for line in text.splitlines() if "│" in line]
    assert labels[0] == "4" and labels[-1] == "1" and {"2", "3"} <= set(labels)
    assert "● loss 1.000" in text.splitlines()[0]
    assert text.splitlines()[-1].split() == ["0", "50", "100"]
    assert text.splitlines()[-2].endswith("┬ step")


def test_reference_lines_stand_at_their_height_with_their_names():
    lines = [Reference("uniform", 4.0), Reference("floor", 1.0), Reference("none", math.nan)]
    rows = area(curve([Series("loss", [(0, 3.0), (9, 2.0)])], lines, width=50, height=7))
    assert rows[0].endswith("╌ uniform 4") and rows[-1].endswith("╌ floor 1")
    assert not any("none" in row for row in rows)
    assert "╌" not in rows[1], "no line where there is no reference"


def test_points_that_are_not_finite_are_left_out():
    line = Series("loss", [(0, 2.0), (1, math.nan), (2, math.inf), (3, 1.0)])
    rows = area(curve([line], width=40, height=5))
    assert ord(rows[0][0]) - 0x2800 & 0x01 and ord(rows[-1][-1]) - 0x2800 & 0x80
    assert curve([Series("loss", [(0, math.nan)])]).plain == "no points yet"
    one = "".join(area(curve([Series("loss", [(5, 1.0)])])))
    assert sum((ord(c) - 0x2800).bit_count() for c in one if c != " ") == 1


def test_a_logarithmic_axis_gives_each_decade_the_same_room():
    picture = curve([Series("l", [(1, 1.0), (10, 2.0), (100, 1.0)])], width=47, log_x=True)
    rows = area(picture)
    peak = [i for i, c in enumerate(rows[0]) if c != " "]
    assert abs(sum(peak) / len(peak) - (len(rows[-1]) - 1) / 2) <= 1
    assert {"1", "10", "100"} <= set(picture.plain.splitlines()[-1].split())


def test_the_curve_has_an_ascii_form_of_the_same_size():
    line, guides = Series("loss", [(0, 4.0), (9, 1.0)], mark="o"), [Reference("floor", 1.0)]
    plain = curve([line], guides, width=60, ascii=True).plain
    assert plain.isascii() and "o" in plain
    assert len(plain.splitlines()) == len(curve([line], guides, width=60).plain.splitlines())


@given(st.lists(st.tuples(st.integers(0, 10**6), FINITE), min_size=1, max_size=50), st.booleans())
def test_no_curve_is_wider_than_asked(points, log_x):
    picture = curve([Series("loss", sorted(points))], width=70, log_x=log_x)
    rows = picture.plain.splitlines()[1:]
    assert all(len(row) <= 70 for row in rows)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 10))
def test_ticks_are_within_the_range_and_evenly_spaced(low, span, count):
    ticks = nice_ticks(low, low + span, count)
    slack = span * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)
    assert len(ticks) <= count + 1


def test_few_cells_are_numbers():
    text = heatmap([[0.25, 0.75], [1.0, 0.0]], rows=["a", " "], columns=["x", "\n"])
    head, first, second, legend = text.plain.splitlines()
    assert head.split() == ["x", "⏎"]
    assert first.split() == ["a", "0.25", "0.75"] and second.split() == ["·", "1.00", "0.00"]
    assert legend.startswith("0 ") and legend.endswith(" 1")
    assert css(mix(SEQUENTIAL, 1.0)) in style_at(text, text.plain.index("1.00"))


def test_many_cells_are_half_blocks_two_rows_a_line():
    values = [[float(r == c) for c in range(9)] for r in range(9)]
    text = heatmap(values, rows=list("abcdefghi"), columns=list("ABCDEFGHI"))
    lines = text.plain.splitlines()
    assert lines[0] == "    ABCDEFGHI" and lines[1] == "a b " + "▀" * 9 and len(lines) == 7
    low, high = css(mix(SEQUENTIAL, 0)), css(mix(SEQUENTIAL, 1))
    start = text.plain.index("a b ") + 4
    assert style_at(text, start) == f"{high} on {low}", "row a is one in column A, row b is not"
    assert style_at(text, start + 1) == f"{low} on {high}"
    assert style_at(text, text.plain.index("i   ") + 4) == low, "the last row has no partner"


def test_masked_cells_are_hatched_and_not_zero():
    values = [[0.5] * 9 for _ in range(10)]
    mask = [[column > row for column in range(9)] for row in range(10)]
    text = heatmap(values, mask=mask)
    greys = [css(grey) for grey in HATCH]
    assert style_at(text, 8) == f"{greys[0]} on {greys[1]}"
    assert style_at(text, 7) == f"{greys[1]} on {greys[0]}", "neighbours differ: a hatch"
    assert text.plain.endswith("masked")
    small = heatmap([[1.0, 9.0]], mask=[[False, True]])
    assert "╱╱" in small.plain and "9.00" not in small.plain
    assert small.plain.splitlines()[-1].startswith("1 "), "what is masked has no part in the range"


def test_a_diverging_map_is_centred_on_zero():
    text = heatmap([[-1.0, 0.0, 3.0]], diverging=True)
    assert css(mix(DIVERGING, 0.5)) in style_at(text, text.plain.index("0.00"))
    assert text.plain.splitlines()[-1].startswith("-3 ") and text.plain.endswith(" 3")


def test_without_colour_shades_and_signs_tell_the_sizes():
    values = [[float(c) - 4 for c in range(9)]] * 2
    plain = heatmap(values, diverging=True, colour=False).plain
    assert plain.splitlines()[0].strip().startswith("-█") and "+█" in plain
    ascii_only = heatmap(values, mask=[[c == 0 for c in range(9)]] * 2, ascii=True).plain
    assert ascii_only.isascii() and "//" in ascii_only


def test_odd_matrices():
    with pytest.raises(ValueError, match="at least one row"):
        heatmap([])
    with pytest.raises(ValueError, match="at least one row"):
        heatmap([[1.0], [1.0, 2.0]])
    assert "nan" in heatmap([[math.nan, 1.0]]).plain
    assert "1.0e+06" in heatmap([[1e6]]).plain
    heatmap([[1.0]], mask=[[True]])


def test_tokens_become_visible():
    assert visible("a b\n") == "a·b⏎" and visible("\x1b") == "\\x1b"
    assert visible("é \n", ascii=True) == "\\xe9_\\n"


TABLE = Table(("name", "count"), [("[red]wte[/]", 8320), ("x" * 90, 16_384), ("tab\t", 1.5)])


def test_tables_are_aligned_for_people():
    console = Console(width=120, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(TABLE)
    lines = capture.get().splitlines()
    assert "[red]wte[/]" in lines[1], "text is never markup"
    assert lines[1].rstrip().endswith(" 8,320") and lines[2].rstrip().endswith("16,384")
    assert len(lines[1].rstrip()) == len(lines[2].rstrip())


def test_tables_are_tab_separated_for_programs():
    rows = [line.split("\t") for line in TABLE.tsv().splitlines()]
    assert rows[0] == ["name", "count"] and rows[1] == ["[red]wte[/]", "8320"]
    assert rows[2] == ["x" * 90, "16384"] and rows[3] == ["tab\\t", "1.5"]
