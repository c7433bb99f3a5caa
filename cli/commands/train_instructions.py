"""`tt train-instructions`: a small GPT learns to do what it is told."""

from typing import Any

import click

from cli.console import answer, say
from cli.options import POSITIVE_INT, GroupedCommand, RunPath, option
from cli.task_lines import percent
from cli.task_options import DATA, MODEL, task_options
from cli.training import quoted, train

EXAMPLES = (
    "tt train-instructions                                copy, reverse, upper, ... and pairs",
    "tt train-instructions --unnamed --out runs/base      a base that only reads examples",
    "tt train-instructions --init-from runs/base          ... and tune it; told before and after",
    "tt train-instructions --resume runs/instructions     go on where a run stopped",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    option("--unnamed", group=DATA, is_flag=True,
           help="Examples in threes that never say what is asked."),
    option("--init-from", group=DATA, type=RunPath(), metavar="RUN",
           help="A run of this command whose weights to start from."),
    option("--n-layer", group=MODEL, type=POSITIVE_INT, help="Number of blocks."),
    option("--n-head", group=MODEL, type=POSITIVE_INT, help="Attention heads in a block."),
    option("--n-embd", group=MODEL, type=POSITIVE_INT,
           help="Width; a multiple of the number of heads."),
    *task_options(["dropout"]),
]
# fmt: on
NAMES = {
    "seen": "trained on, other content",
    "unseen_kinds": "other kind of content",
    "unseen_pairs": "pair never trained on",
}
WAYS = {
    "zero_shot": "zero-shot",
    "few_shot": "few-shot",
    "few_shot_unnamed": "few-shot, unnamed",
}


@click.command("train-instructions", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train a GPT on several instructions, alone and in pairs, with the loss on answers only.

    Asked at the end: what it was trained on, with other content; instructions with a kind of
    content that they never had; and pairs that never came together. Each zero-shot, few-shot
    (after two answered examples), and few-shot by examples that do not say what is asked; before
    the training and after it.
    """
    from tinygrad_tf.tasks.instruction_tuning import InstructionTask

    json, quiet = options["json"], options["quiet"]
    trained = train(ctx, InstructionTask, options)
    if trained is None or json:
        return
    run, figures = trained
    for line in report_lines(figures):
        answer(line)
    if not quiet and figures["unnamed"]:
        say(f"next: tt train-instructions --init-from {quoted(run)}")
    elif not quiet:
        say(f'next: tt ask {quoted(run)} "reverse then upper: tone"')


def report_lines(figures: dict[str, Any]) -> list[str]:
    """Exact match by group and way of asking, before and after, as a table with tabs."""
    columns = [(moment, way) for way in WAYS for moment in ("before", "after")]
    head = ["exact match", *(f"{WAYS[way]}, {moment}" for moment, way in columns)]
    rows = [
        [name, *(percent(figures[moment][group][way]) for moment, way in columns)]
        for group, name in NAMES.items()
    ]
    return ["\t".join(row) for row in (head, *rows)]
