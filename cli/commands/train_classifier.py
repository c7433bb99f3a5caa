"""`tt train-classifier`: learn to label texts, or to rate them."""

from pathlib import Path
from typing import Any

import click

from cli.console import answer, printable, say
from cli.options import POSITIVE_INT, GroupedCommand, Number, option
from cli.task_lines import percent
from cli.task_options import DATA, task_options
from cli.training import quoted, train

EXAMPLES = (
    "tt train-classifier                       built-in opinions, told apart by word order alone",
    "tt train-classifier reviews.tsv           a file: label, tab, text",
    "tt train-classifier stars.tsv --regression        a file: number, tab, text",
)

MODEL_OPTIONS = (
    "d_model",
    "n_heads",
    "n_layers",
    "d_ff",
    "max_length",
    "pooling",
    "dropout",
    "norm",
    "activation",
    "positions",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["data"], metavar="[DATA.tsv]", required=False,
                   type=click.Path(path_type=Path)),
    option("--regression", group=DATA, is_flag=True, help="The labels are numbers."),
    option("--tokenizer", group=DATA, type=click.Choice(["word", "bpe"]), default="word",
           show_default=True, help="What a token is."),
    option("--vocab-size", group=DATA, type=POSITIVE_INT,
           help="Tokens that bpe learns.  [default: 512]"),
    option("--val-fraction", group=DATA, default=0.1, show_default=True,
           type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the texts to hold out."),
    *task_options(MODEL_OPTIONS),
]
# fmt: on


@click.command("train-classifier", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train an encoder on DATA.tsv (label, tab, text), or on built-in opinions."""
    from tinygrad_tf.tasks.classification import ClassificationTask

    json, quiet = options["json"], options["quiet"]
    trained = train(ctx, ClassificationTask, options)
    if trained is None or json:
        return
    run, figures = trained
    for line in report_lines(figures):
        answer(printable(line, keep="\t"))
    if not quiet:
        say(f'next: tt classify {quoted(run)} "..."')


def report_lines(figures: dict[str, Any]) -> list[str]:
    """The figures; of classes the confusion table, a row for each true label, and mistakes."""
    lines = [f"held out\t{figures['examples']}"]
    if "rmse" in figures:
        for name in ("rmse", "mae", "r2", "bag_of_words_rmse"):
            if figures[name] is not None:
                lines.append(f"{name.replace('_', ' ')}\t{figures[name]:.4g}")
        return lines
    lines.append(f"accuracy\t{percent(figures['accuracy'])}")
    if figures["bag_of_words"] is not None:
        lines.append(f"bag of words\t{percent(figures['bag_of_words'])}")
    lines.append("\t".join(["true \\ answered", *figures["labels"]]))
    for label, row in zip(figures["labels"], figures["confusion"], strict=True):
        lines.append("\t".join([label, *map(str, row)]))
    for one in figures["mistakes"]:
        lines.append(f"wrong\t{one['answer']}, not {one['label']}\t{one['text']}")
    return lines
