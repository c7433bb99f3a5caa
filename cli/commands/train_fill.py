"""`tt train-fill`: learn to fill in hidden words, as BERT does."""

from pathlib import Path
from typing import Any

import click

from cli.console import answer, say
from cli.options import POSITIVE_INT, GroupedCommand, Number, option
from cli.task_lines import percent
from cli.task_options import DATA, task_options
from cli.training import quoted, train

EXAMPLES = (
    "tt train-fill                          built-in sentences",
    "tt train-fill lines.txt --tokenizer bpe     a text on each line",
)

MODEL_OPTIONS = (
    "d_model",
    "n_heads",
    "n_layers",
    "d_ff",
    "max_length",
    "dropout",
    "norm",
    "activation",
    "positions",
)
SHARE = Number(min=0, max=1, min_open=True, max_open=True)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["texts"], metavar="[TEXTS.txt]", required=False,
                   type=click.Path(path_type=Path)),
    option("--mask-rate", group=DATA, type=SHARE, default=0.15, show_default=True,
           help="Share of the tokens to hide."),
    option("--tokenizer", group=DATA, type=click.Choice(["word", "bpe"]), default="word",
           show_default=True, help="What a token is."),
    option("--vocab-size", group=DATA, type=POSITIVE_INT,
           help="Tokens that bpe learns.  [default: 512]"),
    option("--val-fraction", group=DATA, type=SHARE, default=0.1, show_default=True,
           help="Share of the texts to hold out."),
    *task_options(MODEL_OPTIONS),
]
# fmt: on


@click.command("train-fill", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train an encoder to find hidden words in TEXTS.txt, or in built-in sentences."""
    from tinygrad_tf.tasks.masked_lm import MaskedLMTask

    json, quiet = options["json"], options["quiet"]
    trained = train(ctx, MaskedLMTask, options)
    if trained is None or json:
        return
    run, figures = trained
    answer(f"held out\t{figures['examples']}")
    answer(f"hidden tokens\t{figures['hidden']}")
    answer(f"found\t{percent(figures['accuracy'])}")
    answer(f"among five\t{percent(figures['among_five'])}")
    answer(f"perplexity\t{figures['perplexity']:.3f}")
    if not quiet:
        say(f'next: tt fill {quoted(run)} "... _ ..."')
