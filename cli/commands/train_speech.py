"""`tt train-speech`: learn to write down what is said, from sounds and their words."""

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.console import answer, say
from cli.format import count
from cli.options import POSITIVE_INT, GroupedCommand, Number, option
from cli.task_lines import percent
from cli.task_options import DATA, task_options
from cli.training import quoted, train

EXAMPLES = (
    "tt train-speech                        spoken commands, a built-in voice; a minute or two",
    "tt train-speech recordings             a directory: a.wav with a.txt, b.wav with b.txt ...",
    "tt train-speech recordings/index.tsv   or lines of file, tab, what is said in it",
    "tt train-speech --resume runs/speech   go on where a run stopped",
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
    click.Argument(["recordings"], metavar="[DIR]", required=False,
                   type=click.Path(path_type=Path)),
    option("--utterances", group=DATA, type=POSITIVE_INT, default=5000, show_default=True,
           help="Commands that the built-in voice says."),
    option("--speakers", group=DATA, type=POSITIVE_INT, default=500, show_default=True,
           help="Voices that it says them with."),
    option("--val-fraction", group=DATA, default=0.1, show_default=True,
           type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the recordings to hold out."),
    *task_options(MODEL_OPTIONS),
]
# fmt: on

OF_THE_VOICE, OF_RECORDINGS = ("utterances", "speakers"), ("val_fraction",)


@click.command("train-speech", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train an encoder-decoder on DIR (WAVs and what is said in them), or on a built-in voice.

    A position of --max-length is a word, or 40 ms of sound.
    """
    from tinygrad_tf.tasks.speech import SpeechTask

    json, quiet, resume = options["json"], options["quiet"], options["resume"]
    recorded = options["recordings"] is not None
    _check(ctx, options)
    if not (recorded or resume or json or quiet):
        say(f"the voice says {count(options['utterances'])} commands; this takes a moment")
    trained = train(ctx, SpeechTask, options)
    if trained is None or json:
        return
    run, figures = trained
    for line in report_lines(figures):
        answer(line)
    if not quiet:
        name = shlex.quote(figures["samples"][0]["name"]) if recorded else "x.wav"
        first = "" if recorded or resume else f'tt say "find my files" --out {name}; '
        say(f"next: {first}tt transcribe {quoted(run)} {name} --attention")


def _check(ctx: click.Context, given: dict[str, Any]) -> None:
    """Raise UsageError for options of the voice with recordings, and the other way round."""
    alone = given["recordings"] is None
    for name in OF_RECORDINGS if alone else OF_THE_VOICE:
        if given["resume"] is None and ctx.get_parameter_source(name) != ParameterSource.DEFAULT:
            label = name.replace("_", "-")
            whom = "recordings: give DIR" if alone else "the built-in voice: leave DIR out"
            raise click.UsageError(f"--{label} is for {whom}", ctx)


def report_lines(figures: dict[str, Any]) -> list[str]:
    """Return the share of right transcripts, then the wrong ones or, without any, right ones."""
    lines = [
        f"held out\t{figures['examples']}",
        f"word for word\t{percent(figures['exact_match'])}",
    ]
    if 0 < figures["examples_new"] < figures["examples"]:
        of = f"of {figures['examples_new']} new sentences"
        lines.append(f"word for word {of}\t{percent(figures['exact_match_new'])}")
    lines.append(f"word error rate\t{percent(figures['word_error_rate'])}")
    for sign, shown in (("right", figures["samples"]), ("wrong", figures["mistakes"])):
        for one in shown:
            if (one["answer"] == one["reference"]) == (sign == "right"):
                told = f"{one['reference']}\t{one['answer']}" if sign == "wrong" else one["answer"]
                lines.append(f"{sign}\t{told}")
    return lines
