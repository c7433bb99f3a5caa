"""Option types of `tt`: grouped in the help, examples first, numbers always finite."""

import math
import re
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from cli.option_names import in_options
from tinygrad_tf.errors import TinygradError


class GroupedOption(click.Option):
    """An option with the heading under which the help lists it."""

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help shows its examples first and its options by group."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params.append(
            GroupedOption(["--debug"], is_flag=True, expose_value=False, hidden=True)
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the library then names settings by their options."""
        try:
            return super().invoke(ctx)
        except TinygradError as error:
            error.what, error.next = in_options(error.what, ctx), in_options(error.next, ctx)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then one section a group, in the order of declaration."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                group = getattr(parameter, "group", "Options")  # click's own --help has none
                groups.setdefault(group, []).append(record)
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for group, rows in groups.items():
            with formatter.section(group):
                padded = [(name.ljust(min(width, 30)), line) for name, line in rows]
                formatter.write_dl(padded)


def option(*names: str, group: str = "Options", **settings: Any) -> GroupedOption:
    """Declare an option: the arguments of `click.option`, and its heading in the help."""
    return GroupedOption(names, group=group, **settings)


class Integer(click.IntRange):
    """A whole number within a range."""

    name = "integer"


class Number(click.FloatRange):
    """A real number within a range; NaN and infinities are refused."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a finite number."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return float(super().convert(number, param, ctx))


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A span of time such as 90, 90s, 2m, 1h or 1h30m, in seconds."""

    name = "duration"
    _PATTERN = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s?)?", re.ASCII)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a time into seconds, more than 0."""
        if isinstance(value, float):
            return value
        match = self._PATTERN.fullmatch(str(value).strip())
        try:
            hours, minutes, seconds = (float(part or 0) for part in match.groups())  # type: ignore[union-attr]
            total = 3600 * hours + 60 * minutes + seconds
        except (AttributeError, ValueError):
            total = math.nan
        if not 0 < total < math.inf:
            self.fail(f"{value!r} is not a time; write 90, 90s, 2m or 1h", param, ctx)
        return total


class RunPath(click.Path):
    """The directory of a run; completion lists the runs in this directory."""

    name = "run"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete with the runs in this directory and in `runs`, else with any directory."""
        runs = [
            path.parent for where in ("*", "runs/*") for path in Path().glob(f"{where}/config.json")
        ]
        names = [path.as_posix() for path in sorted(runs) if path.as_posix().startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="dir")]


POSITIVE_INT = Integer(min=1)
NATURAL = Integer(min=0)
POSITIVE = Number(min=0, min_open=True)
NON_NEGATIVE = Number(min=0)
FRACTION = Number(min=0, max=1, max_open=True)
