"""`tt inspect`: show the settings, parameters and losses of a run."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.console import (
    answer,
    has_glyphs,
    is_terminal,
    print_json,
    print_picture,
    rich_console,
    say,
)
from cli.options import GroupedCommand, RunPath, option

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from cli.pictures.tables import Table
    from cli.run_summary import RunSummary

WIDTH = 80  # of the curve, where the terminal is no narrower

EXAMPLES = (
    "tt inspect runs/book",
    "tt inspect runs/book --curve --save book.svg",
    "tt inspect runs/book --json | python -m json.tool",
)

OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    option("--json", is_flag=True, help="One object with everything."),
    option("--save", type=click.Path(path_type=Path), help="Save as .svg, .html or .txt."),
    option("--force", is_flag=True, help="Overwrite the saved file."),
    option("--curve", is_flag=True, help="The loss curve alone."),
    option("--log-x", is_flag=True, help="Logarithmic step axis."),
]


@click.command("inspect", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    run: Path, json: bool, save: Path | None, force: bool, curve: bool, log_x: bool
) -> None:
    """Show the settings, parameters, losses and loss curve of RUN."""
    from cli.pictures.export import check_target
    from cli.pictures.export import save as save_picture
    from cli.run_summary import RunSummary

    def picture(width: int = WIDTH, *, ascii: bool = False) -> "Group":
        tables = [] if curve else _tables(summary)
        return _picture(tables, losses(width, ascii=ascii))

    def losses(width: int = WIDTH, *, ascii: bool = False) -> "Text":
        from cli.pictures.training import losses

        return losses(summary.progress, width=width, log_x=log_x, ascii=ascii)

    if save is not None:
        check_target(save, force=force)
    summary = RunSummary.read(run)
    if json:
        print_json(summary.as_json())
    elif is_terminal(sys.stdout):
        width = min(WIDTH, rich_console(sys.stdout).width)
        print_picture(picture(width, ascii=not has_glyphs(sys.stdout)))
    elif curve:
        lines = losses(ascii=not has_glyphs(sys.stdout)).plain.splitlines()
        answer("\n".join(line.rstrip() for line in lines))
    else:
        answer("\n\n".join(table.tsv() for table in _tables(summary)))
    if save is not None:
        save_picture(picture(), save, title=f"tt inspect {run}", force=force)
        say(f"saved {save}")
    if not json and summary.is_gpt:
        say(f'next: tt generate {shlex.quote(run.as_posix())} --prompt "..."')


def _tables(summary: "RunSummary") -> list["Table"]:
    """Tables of the settings, the state and the parameters."""
    from cli.pictures.tables import Table

    parameters = [
        (p.layer, p.name, " x ".join(map(str, p.shape)), p.count) for p in summary.parameters
    ]
    return [
        Table(("setting", "value"), list(summary.settings())),
        Table(("state", "value"), list(summary.facts())),
        Table(("layer", "parameter", "shape", "count"), parameters),
    ]


def _picture(tables: list["Table"], curve: "Text") -> "Group":
    """Put the loss curve under the tables."""
    from rich.console import Group
    from rich.text import Text

    parts = [part for table in tables for part in (table, Text(""))]
    return Group(*parts, curve)
