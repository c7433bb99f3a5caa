"""`tt train-gpt`: train a GPT, follow it, and let it write a sample."""

from pathlib import Path
from typing import Any

import click

from cli.console import say, write_text
from cli.options import GroupedCommand
from cli.train_options import TRAIN_OPTIONS
from cli.training import quoted, train

SAMPLE_TOKENS = 300

EXAMPLES = (
    "tt train-gpt                                the built-in corpus, under two minutes",
    "tt train-gpt book.txt --time-limit 5m       your own text, for five minutes",
    "tt train-gpt names.txt --lines              one document a line",
    "tt train-gpt book.txt --preset nano-cpu --dry-run",
    "tt train-gpt --resume runs/book             go on where a run stopped",
)


@click.command("train-gpt", cls=GroupedCommand, examples=EXAMPLES, params=TRAIN_OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train a GPT on TEXT (files in UTF-8), or on the built-in corpus if none is given."""
    from tinygrad_tf.tasks.language_model import LanguageModelTask

    json, quiet = options["json"], options["quiet"]
    trained = train(ctx, LanguageModelTask, options)
    if trained is not None and not json:
        _write_sample(trained[0], quiet=quiet)


def _write_sample(run: Path, *, quiet: bool) -> None:
    """Let the new model write on stdout, and say how to get more."""
    from tinygrad_tf.generate import TextGenerator

    if not quiet:
        say("a sample:")
    for piece in TextGenerator.load(run).stream("", max_new_tokens=SAMPLE_TOKENS, seed=0):
        write_text(piece)
    write_text("\n")
    if not quiet:
        say(f'next: tt generate {quoted(run)} --prompt "..."')
