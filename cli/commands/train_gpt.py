"""`tt train-gpt`: train a GPT, follow it, and let it write a sample."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cli.console import answer, print_json, say, write_text
from cli.interrupts import graceful_interrupt
from cli.options import GroupedCommand
from cli.progress import plan_lines
from cli.train_options import TRAIN_OPTIONS
from cli.views import choose_view

if TYPE_CHECKING:
    from tinygrad_tf.train.experiment import Experiment

INTERRUPTED = 130
SAMPLE_TOKENS = 300
WITH_RESUME = {"resume", "steps", "time_limit", "dry_run", "json", "quiet", "debug"}

EXAMPLES = (
    "tt train-gpt                                the built-in corpus, under two minutes",
    "tt train-gpt book.txt --time-limit 5m       your own text, for five minutes",
    "tt train-gpt names.txt --lines              one document a line",
    "tt train-gpt book.txt --preset nano-cpu --dry-run",
    "tt train-gpt --resume runs/book             go on where a run stopped",
)


@click.command("train-gpt", cls=GroupedCommand, examples=EXAMPLES, params=TRAIN_OPTIONS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    resume: Path | None,
    dry_run: bool,
    json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train a GPT on TEXT (files in UTF-8), or on the built-in corpus if none is given."""
    if json and quiet:
        raise click.UsageError("--json and --quiet cannot go together", ctx)
    experiment = _experiment(ctx, resume, options, dry_run=dry_run)
    plan = experiment.plan().as_json()
    if dry_run:
        print_json(plan) if json else answer("\n".join(plan_lines(plan)))
        return
    done = _train(experiment, plan, json=json, quiet=quiet)
    run = Path(done["run"])
    if done["reason"] == "interrupted":
        say(f"saved at step {done['steps']:,}; resume with: tt train-gpt --resume {_quoted(run)}")
        raise click.exceptions.Exit(INTERRUPTED)
    if not json:
        _write_sample(run, quiet=quiet)


def _experiment(
    ctx: click.Context, resume: Path | None, options: dict[str, Any], *, dry_run: bool
) -> "Experiment":
    """The experiment that the options describe, new or resumed."""
    if resume is not None:
        _refuse_fixed_options(ctx)
    from tinygrad_tf.train.experiment import Experiment
    from tinygrad_tf.train.options import TrainOptions

    if resume is not None:
        return Experiment.resume(resume, steps=options["steps"], time_limit=options["time_limit"])
    return Experiment.create(TrainOptions(**options), dry_run=dry_run)


def _refuse_fixed_options(ctx: click.Context) -> None:
    """A resumed run keeps its settings; raise UsageError for any that is given."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        given = ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if given and name not in WITH_RESUME:
            label = "TEXT" if name == "texts" else parameter.opts[0]
            raise click.UsageError(
                f"{label} cannot be changed by --resume: the run keeps its text and settings", ctx
            )


def _train(
    experiment: "Experiment", plan: dict[str, Any], *, json: bool, quiet: bool
) -> dict[str, Any]:
    """Run the experiment before the eyes of the user and return its last event."""
    event = plan
    with choose_view(json=json, quiet=quiet) as view:
        view.show(plan)
        with graceful_interrupt(experiment.stop, view.stopping):
            for occurrence in experiment.run():
                event = occurrence.as_json()
                view.show(event)
    return event


def _write_sample(run: Path, *, quiet: bool) -> None:
    """Let the new model write on stdout, and say how to get more."""
    from tinygrad_tf.generate import TextGenerator

    if not quiet:
        say("a sample:")
    for piece in TextGenerator.load(run).stream("", max_new_tokens=SAMPLE_TOKENS, seed=0):
        write_text(piece)
    write_text("\n")
    if not quiet:
        say(f'next: tt generate {_quoted(run)} --prompt "..."')


def _quoted(run: Path) -> str:
    """The directory as a shell takes it."""
    return shlex.quote(run.as_posix())
