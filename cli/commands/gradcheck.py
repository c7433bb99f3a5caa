"""`tt gradcheck`: check the gradients of the engine, or of your function."""

import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import answer, one_line, print_json, printable
from cli.option_names import in_options
from cli.options import NATURAL, GroupedCommand, option

if TYPE_CHECKING:
    from tinygrad_tf.checking import GradcheckError, Report
    from tinygrad_tf.checking.cases import RecordReport

EXAMPLES = (
    "tt gradcheck                                      the whole table, order 1 and 2",
    "tt gradcheck mymodule:softsign",
    "tt gradcheck mymodule:layer --shape 2,3 --shape 3 one shape per parameter",
    "tt gradcheck mymodule:f --backward f_backward     NumPy, differentiated by hand",
)


class Shape(click.ParamType):  # type: ignore[type-arg]
    """The shape of an array, such as 2,3; () is a single number."""

    name = "shape"
    _PATTERN = re.compile(r"\d{1,18}(\s*,\s*\d{1,18})*\s*,?|\(\s*\)", re.ASCII)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse the lengths of a shape."""
        if isinstance(value, tuple):
            return value
        text = str(value).strip()
        inner = text[1:-1].strip() if text[:1] + text[-1:] == "()" else text
        if not self._PATTERN.fullmatch(inner or text):
            self.fail(f"{value!r} is not a shape; write 2,3 or () for a number", param, ctx)
        return tuple(int(part) for part in re.findall(r"\d+", inner))


YOURS = "Your function"
OPTIONS: list[click.Parameter] = [
    click.Argument(["target"], required=False, metavar="[MODULE:FUNCTION]"),
    option("--json", is_flag=True, help="One object with every figure."),
    option(
        "--shape",
        "shapes",
        type=Shape(),
        multiple=True,
        group=YOURS,
        help="Shape of an input; once per parameter.  [default: 2,3]",
    ),
    option(
        "--range",
        "bounds",
        type=click.FLOAT,
        nargs=2,
        default=(-2.0, 2.0),
        metavar="LOW HIGH",
        group=YOURS,
        help="Range of its numbers.  [default: -2 2]",
    ),
    option(
        "--backward", metavar="NAME", group=YOURS, help="Its hand-written backward(g, *inputs)."
    ),
    option(
        "--order",
        type=click.Choice(["1", "2"]),
        group=YOURS,
        help="2 also checks the gradient's gradient.  [default: 2; with --backward 1]",
    ),
    option(
        "--method",
        type=click.Choice(["central", "complex", "directional"]),
        default="central",
        show_default=True,
        group=YOURS,
        help="How slopes are measured.",
    ),
    option(
        "--on-kink",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        group=YOURS,
        help="What to do at a point without a slope.",
    ),
    option(
        "--seed",
        type=NATURAL,
        default=0,
        show_default=True,
        group=YOURS,
        help="Seed of its numbers.",
    ),
]


@click.command("gradcheck", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, target: str | None, json: bool, **options: Any) -> None:
    """Check gradients against numeric differences, and against mathematical laws.

    Without arguments, it checks every operation of the engine, first and second order, and prints
    the worst relative error of each. With MODULE:FUNCTION, found from the current directory, it
    checks your function of Tensors (or your Op): each parameter without a default gets a small
    array.

    Where a gradient is wrong it says how, and the exit code is 1.
    """
    if target is not None:
        _check_yours(target, json, **options)
        return
    for name in options:
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            flag = {"shapes": "shape", "bounds": "range"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{flag} is for a function of yours: MODULE:FUNCTION", ctx)
    _check_table(json)


def _check_table(json: bool) -> None:
    from tinygrad_tf.checking.cases import check_table
    from tinygrad_tf.errors import FailedError

    rows = list(check_table())
    wrong = [row for row in rows if not row.proven]
    if json:
        print_json({"ok": not wrong, "ops": [_row_json(row) for row in rows]})
    else:
        _print_rows(rows)
        for row in wrong:
            for failure in row.failures or (f"{row.op} has no case",):
                answer("\n" + printable(in_options(str(failure)), keep="\n"))
    if wrong:
        raise FailedError(
            f"{len(wrong)} of {len(rows)} operations "
            f"{'is' if len(wrong) == 1 else 'are'} not proven: "
            f"{', '.join(row.op for row in wrong)}"
        )


def _print_rows(rows: "list[RecordReport]") -> None:
    from cli.pictures.tables import print_table

    print_table(
        ("op", "cases", "entries", "order 1", "order 2", "verdict"),
        [
            (
                row.op,
                row.cases,
                row.report.entries,
                row.report.worst,
                row.report.worst_second or 0.0,
                "ok" if row.proven else "WRONG" if row.cases else "NO CASE",
            )
            for row in rows
        ],
    )


def _row_json(row: "RecordReport") -> dict[str, Any]:
    return {
        "op": row.op,
        "ok": row.proven,
        "cases": row.cases,
        **_report_json(row.report),
        "failures": [_error_json(failure) for failure in row.failures],
    }


def _report_json(report: "Report") -> dict[str, Any]:
    return {
        "entries": report.entries,
        "worst_error": {"order_1": report.worst, "order_2": report.worst_second},
        "ill_conditioned": report.ill_conditioned,
        "kinks": report.kinks,
    }


def _error_json(error: "GradcheckError") -> dict[str, Any]:
    return {
        "kind": error.kind,
        "function": error.function,
        "what": error.what,
        "argument": error.argument,
        "entries": [
            {"index": e.index, "analytic": e.analytic, "numeric": e.numeric} for e in error.entries
        ],
        "pattern": error.pattern or None,
        "reproduce": error.reproduce,
    }


def _check_yours(
    target: str,
    json: bool,
    *,
    shapes: tuple[tuple[int, ...], ...],
    bounds: tuple[float, float],
    backward: str | None,
    order: str | None,
    method: str,
    on_kink: str,
    seed: int,
) -> None:
    from tinygrad_tf.checking import GradcheckError, gradcheck
    from tinygrad_tf.checking.user_function import MOST, draw_inputs, importing_from, load
    from tinygrad_tf.errors import FailedError, InputError, TinygradError

    stdout = sys.stdout
    # Output of the user's code must not mix with the answer.
    with importing_from(Path.cwd()), redirect_stdout(sys.stderr):
        f = load(target)
        if backward is not None and ":" not in backward:
            backward = f"{target.partition(':')[0]}:{backward}"
        by_hand = None if backward is None else load(backward)
        inputs = draw_inputs(f, shapes, *bounds, seed, most=MOST[method])
        try:
            report = gradcheck(
                f,
                *inputs,
                backward=by_hand,
                order=int(order or (1 if by_hand else 2)),
                method=method,
                on_kink=on_kink,
                seed=seed,
            )
        except GradcheckError as failure:
            with redirect_stdout(stdout):
                if json:
                    print_json({"ok": False, **_error_json(failure)})
                else:
                    answer(printable(in_options(str(failure)), keep="\n"))
            finding = failure.pattern or failure.what.partition(": ")[2]
            raise FailedError(f"gradcheck of {target} failed: {one_line(finding)}") from failure
        except TinygradError:
            raise
        except SystemExit as leaving:
            raise FailedError(
                f"{target} raised SystemExit({leaving.code!r})",
                "let it return its result instead of leaving",
            ) from leaving
        except Exception as fault:  # whatever the user's function raises
            given_shapes = ", ".join(str(x.shape) for x in inputs)
            raise InputError(
                f"{target} raised {type(fault).__name__}: {one_line(str(fault))} "
                f"(its inputs had shapes {given_shapes})",
                "give --shape once per parameter, --range for its domain, "
                "--backward where it is plain NumPy",
            ) from fault
    if json:
        print_json({"ok": report.decided, "function": report.function, **_report_json(report)})
    else:
        answer(printable(str(report), keep="\n"))
    if not report.decided:
        raise FailedError(
            f"gradcheck of {target} decided nothing: no step size gives a clear slope here",
            "give another --range, or --method complex",
        )
