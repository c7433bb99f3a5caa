"""`tt grad`: the graph of an expression, its gradients, and a numeric check of each."""

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import answer, has_glyphs, print_json, say
from cli.options import POSITIVE_INT, GroupedCommand, option

if TYPE_CHECKING:
    from tinygrad_tf.drawing import Drawing
    from tinygrad_tf.expression import NumericSlope
    from tinygrad_tf.scalar import Value

EXAMPLES = (
    'tt grad "tanh(w*x + b)" w=2 x=-1 b=0.5',
    'tt grad "(a*b + c)**2" a=2 b=-3 c=10 --save graph.svg',
    'tt grad "relu(x)" x=0                       a kink: the slope is undefined',
)

OPTIONS: list[click.Parameter] = [
    click.Argument(["expression"]),
    click.Argument(["values"], nargs=-1, metavar="[NAME=NUMBER]..."),
    option("--json", is_flag=True, help="One object with every node and gradient."),
    option("--save", type=click.Path(path_type=Path), help="Save as .svg, .html, .dot or .txt."),
    option("--force", is_flag=True, help="Overwrite the saved file."),
    option(
        "--max-nodes",
        type=POSITIVE_INT,
        default=200,
        show_default=True,
        help="Limit of nodes to draw and check.",
    ),
]

# "-x**2" must be an expression, and the -h in "-x*h" no request for help.
SETTINGS = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


@click.command(
    "grad", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS, context_settings=SETTINGS
)
@click.pass_context
def command(
    ctx: click.Context,
    expression: str,
    values: tuple[str, ...],
    json: bool,
    save: Path | None,
    force: bool,
    max_nodes: int,
) -> None:
    """Show how EXPRESSION is computed, and how fast the result changes with each part.

    For every node: its value, the gradient of the result with respect to it, and the local
    derivative of the node above. Beside each name is its slope, measured with nearby numbers.

    Allowed are + - * / ** ( ) and exp, log, sin, cos, tanh, sigmoid, relu, max.
    """
    if expression == "-h" and not values:  # without a value for h it is no expression
        click.echo(ctx.get_help())
        return
    from tinygrad_tf.drawing import check_target, draw
    from tinygrad_tf.errors import InputError
    from tinygrad_tf.expression import assignments, numeric_slope, parse

    _refuse_misspelt_options(ctx, (expression, *values))
    if save is not None:
        check_target(save, force=force)
    parsed, numbers = parse(expression), assignments(values)
    result, leaves = parsed.evaluate(numbers)
    if not leaves:
        raise InputError(
            f"{expression} is {result.data:.6g} and has no names to differentiate by",
            "use a name and give its value, such as x=2",
        )
    result.backward()
    drawing = draw(result, leaves, max_nodes=max_nodes)
    drawn = {node: number for number, node in enumerate(drawing.source)}
    # Only drawn names are checked: each check computes the whole expression several times.
    checks = {
        name: numeric_slope(parsed, numbers, name) for name, leaf in leaves.items() if leaf in drawn
    }
    numeric = {
        drawn[leaves[name]]: ("numeric", _verdict(slope, leaves[name].grad))
        for name, slope in checks.items()
    }
    drawing = drawing.with_facts(numeric)
    if json:
        everything = draw(result, leaves, max_nodes=sys.maxsize)
        print_json(_as_json(expression, everything, leaves, checks))
    else:
        answer(drawing.text(ascii=not has_glyphs(sys.stdout)))
    if save is not None:
        drawing.save(save, force=force)
        say(f"saved {save}")


def _refuse_misspelt_options(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Raise NoSuchOption for an argument that looks like a misspelt option."""
    names = [name for parameter in ctx.command.params for name in parameter.opts]
    options = [name for name in names if name.startswith("--")]
    for i, word in enumerate(words):
        near = difflib.get_close_matches(word.partition("=")[0], options, 1, 0.7)
        if word.startswith("--") and (i or near):
            raise click.NoSuchOption(word, possibilities=near, ctx=ctx)


def _verdict(slope: "NumericSlope", gradient: float) -> str:
    """Describe the measured slope beside a gradient."""
    if slope.value is None:
        return "no value nearby"
    if slope.kink is not None:
        left, right = slope.kink
        return f"kink: {left:.6g} left, {right:.6g} right"
    return f"{slope.value:.6g} {'agrees' if slope.agrees(gradient) else 'differs'}"


def _as_json(
    text: str, drawing: "Drawing", leaves: "dict[str, Value]", checks: "dict[str, NumericSlope]"
) -> dict[str, Any]:
    """Return the whole graph as one JSON object; nodes are numbered from the result."""
    from tinygrad_tf.drawing import operation

    numbers = {node: number for number, node in enumerate(drawing.source)}
    names = {leaf: name for name, leaf in leaves.items()}
    return {
        "expression": text,
        "value": drawing.source[0].data,
        "gradients": {name: leaf.grad for name, leaf in leaves.items()},
        "numeric": {
            name: {
                "value": slope.value,
                "error": slope.error,
                "kink": slope.kink,
                "agrees": slope.agrees(leaves[name].grad),
            }
            for name, slope in checks.items()
        },
        "nodes": [
            {
                "id": number,
                "name": names.get(node),
                "op": operation(node) or None,
                "value": node.data,
                "gradient": node.grad,
                "inputs": [{"id": numbers[parent], "local": local} for parent, local in node.edges],
            }
            for node, number in numbers.items()
        ],
    }
