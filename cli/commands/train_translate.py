"""`tt train-translate`: learn to translate from pairs of sentences."""

from pathlib import Path
from typing import Any

import click

from cli.console import answer, say
from cli.options import POSITIVE_INT, GroupedCommand, Number, option
from cli.task_lines import percent
from cli.task_options import DATA, task_options
from cli.training import quoted, train

EXAMPLES = (
    "tt train-translate                              English to Spanish, built in, two minutes",
    "tt train-translate pairs.tsv --d-model 128      a file: source, tab, target",
    "tt train-translate --tokenizer bpe --vocab-size 400",
    "tt train-translate --resume runs/translate      go on where a run stopped",
)

MODEL_OPTIONS = (
    "d_model",
    "n_heads",
    "n_encoder_layers",
    "n_decoder_layers",
    "d_ff",
    "max_length",
    "dropout",
    "label_smoothing",
    "norm",
    "activation",
    "positions",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["pairs"], metavar="[PAIRS.tsv", required=False,
                   type=click.Path(path_type=Path)),
    click.Argument(["targets"], metavar="| SOURCES TARGETS]", required=False,
                   type=click.Path(path_type=Path)),
    option("--tokenizer", group=DATA, type=click.Choice(["word", "bpe"]), default="word",
           show_default=True, help="What a token is, on both sides."),
    option("--vocab-size", group=DATA, type=POSITIVE_INT,
           help="Tokens that bpe learns of each side.  [default: 512]"),
    option("--val-fraction", group=DATA, default=0.1, show_default=True,
           type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the pairs to hold out."),
    *task_options(MODEL_OPTIONS),
]
# fmt: on


@click.command("train-translate", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train an encoder-decoder to translate: on PAIRS.tsv (source, tab, target), on two files of
    which the n-th lines belong together, or on built-in phrases.
    """
    from tinygrad_tf.tasks.translation import TranslationTask

    json, quiet = options["json"], options["quiet"]
    trained = train(ctx, TranslationTask, options)
    if trained is None or json:
        return
    run, figures = trained
    for line in report_lines(figures):
        answer(line)
    if not quiet:
        first = figures["samples"][0]["source"].replace('"', '\\"')
        say(f'next: tt translate {quoted(run)} "{first}" --attention')


def report_lines(figures: dict[str, Any]) -> list[str]:
    """The scores, and what was translated wrongly or, if nothing was, rightly."""
    lines = [
        f"held out\t{figures['examples']}",
        f"exact match\t{percent(figures['exact_match'])}",
        f"token accuracy\t{percent(figures['token_accuracy'])}",
        f"BLEU\t{figures['bleu']:.1f}",
        f"chrF\t{figures['chrf']:.1f}",
    ]
    for sign, shown in (("right", figures["samples"]), ("wrong", figures["mistakes"])):
        for one in shown:
            if (one["answer"] == one["reference"]) == (sign == "right"):
                lines.append(f"{sign}\t{one['source']}\t{one['answer']}")
    return lines
