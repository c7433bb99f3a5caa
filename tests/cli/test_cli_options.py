"""Types of options: numbers, times, and what completion offers."""

import math

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.format import clock, short
from cli.options import FRACTION, NON_NEGATIVE, Duration, RunPath


@given(st.floats())
def test_a_number_is_finite_and_in_range(value):
    if math.isfinite(value) and value >= 0:
        assert NON_NEGATIVE.convert(repr(value), None, None) == value
    else:
        with pytest.raises(click.BadParameter):
            NON_NEGATIVE.convert(repr(value), None, None)


def test_a_fraction_stays_below_one():
    assert FRACTION.convert("0", None, None) == 0.0
    with pytest.raises(click.BadParameter):
        FRACTION.convert("1", None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("2m", 120),
        ("1h", 3600),
        ("1h30m", 5400),
        ("0.5m", 30),
        (".5", 0.5),
    ],
)
def test_times(text, seconds):
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "m", "1d", "nan", "inf", "1.2.3s", "5m2h", "１s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(click.BadParameter, match="is not a time"):
        Duration().convert(text, None, None)


def test_completion_offers_the_runs_that_are_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run in ("runs/book", "runs/names", "other"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.json").touch()
    (tmp_path / "runs/broken").mkdir()
    command = click.Command("inspect", params=[click.Argument(["run"], type=RunPath())])
    with click.Context(command) as ctx:

        def offered(start: str) -> list[str]:
            return [item.value for item in RunPath().shell_complete(ctx, command.params[0], start)]

        assert offered("") == ["other", "runs/book", "runs/names"]
        assert offered("runs/b") == ["runs/book"]
        assert offered("/else") == ["/else"], "any directory, completed by the shell"


def test_numbers_as_people_read_them():
    assert [short(n) for n in (0, 999, 1000, 12_345, 804_096, 999_600, 7.94e12)] == [
        "0", "999", "1 k", "12.3 k", "804 k", "1 M", "7.94 T",
    ]  # fmt: skip
    assert [clock(s) for s in (0, 7.4, 750, 3723, math.inf)] == [
        "0:00", "0:07", "12:30", "1:02:03", "?",
    ]  # fmt: skip
