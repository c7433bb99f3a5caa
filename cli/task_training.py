"""Training on examples before the eyes of the user: what the commands for it share."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cli.console import answer, print_json, say
from cli.interrupts import graceful_interrupt
from cli.task_lines import task_plan_lines
from cli.task_options import MODEL_NAMES, TRAINING_NAMES
from cli.views import choose_view

if TYPE_CHECKING:
    from tinygrad_tf.tasks.task import Task, TaskOptions

INTERRUPTED = 130
WITH_RESUME = {"resume", "steps", "time_limit", "dry_run", "json", "quiet", "debug"}

Prepare = Callable[["TaskOptions", dict[str, Any]], "Task"]


def train_task(
    ctx: click.Context, kind: "type[Task]", prepare: Prepare, given: dict[str, Any]
) -> tuple[Path, dict[str, Any]] | None:
    """Train as the options say; returns the run and the figures of its report.

    `prepare` makes the task of a new run from what all tasks share and from the other options.
    None after a dry run. Leaves with 130 where it was interrupted.
    """
    from tinygrad_tf.tasks.run import TaskRun
    from tinygrad_tf.tasks.task import TaskOptions

    resume, dry_run = given.pop("resume"), given.pop("dry_run")
    json, quiet = given.pop("json"), given.pop("quiet")
    if json and quiet:
        raise click.UsageError("--json and --quiet cannot go together", ctx)
    if resume is not None:
        _refuse_fixed_options(ctx)
        limits = {name: given[name] for name in ("steps", "time_limit")}
        run = TaskRun.resume(kind, resume, **limits)
    else:
        model = {name: given.pop(name) for name in MODEL_NAMES if name in given}
        training = {name: given.pop(name) for name in TRAINING_NAMES}
        shared = {n: given.pop(n) for n in ("out", "force", "seed", "threads", "batch_size")}
        options = TaskOptions(model=model, training=training, **shared)
        run = TaskRun.create(prepare(options, given), options, dry_run=dry_run)
    plan = run.plan().as_json()
    if dry_run:
        print_json(plan) if json else answer("\n".join(task_plan_lines(plan)))
        return None
    return run.path, _watch(run, plan, json=json, quiet=quiet)


def _watch(run: Any, plan: dict[str, Any], *, json: bool, quiet: bool) -> dict[str, Any]:
    """Run it before the eyes of the user; the figures of its report."""
    done, report = plan, None
    with choose_view(json=json, quiet=quiet) as view:
        view.show(plan)
        with graceful_interrupt(run.stop, view.stopping):
            for occurrence in run.run():
                event = occurrence.as_json()
                view.show(event)
                if event["event"] == "done":
                    done = event
                elif event["event"] == "report":
                    report = event
    if report is None:
        say(
            f"saved at step {done['steps']:,}; "
            f"resume with: tt train-{plan['task']} --resume {quoted(run.path)}"
        )
        raise click.exceptions.Exit(INTERRUPTED)
    figures: dict[str, Any] = report["figures"]
    return figures


def _refuse_fixed_options(ctx: click.Context) -> None:
    """A resumed run keeps its settings; raise UsageError for any that is given."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        given = ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if given and name not in WITH_RESUME:
            label = name.upper() if isinstance(parameter, click.Argument) else parameter.opts[0]
            raise click.UsageError(
                f"{label} cannot be changed by --resume: the run keeps its examples and settings",
                ctx,
            )


def quoted(run: Path) -> str:
    """The directory as a shell takes it."""
    return shlex.quote(run.as_posix())
