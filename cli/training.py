"""Training before the eyes of the user: all that the commands for it share."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from click.core import ParameterSource

from cli.console import answer, print_json, say
from cli.interrupts import graceful_interrupt
from cli.option_names import event_in_options, label
from cli.progress import plan_lines
from cli.views import choose_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tinygrad_tf.train.events import Event, PlanEvent
    from tinygrad_tf.train.task import Task

INTERRUPTED = 130
WITH_RESUME = {"resume", "steps", "time_limit", "dry_run", "json", "quiet", "debug"}


class Runnable(Protocol):
    """A run, or whatever trains like one."""

    def plan(self) -> "PlanEvent":
        """Describe what will be trained."""

    def run(self) -> "Iterator[Event]":
        """Train and yield what happens."""

    def stop(self) -> None:
        """Request an orderly end."""


def train(
    ctx: click.Context, kind: "type[Task]", options: dict[str, Any]
) -> tuple[Path, dict[str, Any]] | None:
    """Train a task as the options of its command say; return the run and its report's figures.

    The figures are empty for a task without a report. None after a dry run. Leaves with 130 where
    it was interrupted.
    """
    from tinygrad_tf.train.run import Run

    json, quiet, dry_run, resume, out, force = (
        options.pop(name) for name in ("json", "quiet", "dry_run", "resume", "out", "force")
    )
    refuse_json_and_quiet(ctx, json=json, quiet=quiet)
    if resume is not None:
        _refuse_fixed_options(ctx)
        limits = {name: options[name] for name in ("steps", "time_limit")}
        run = Run.resume(kind, resume, **limits)
    else:
        task = kind.create(**options)
        run = Run.create(task, out, force=force, dry_run=dry_run)
    events = follow(run, json=json, quiet=quiet, dry_run=dry_run)
    if events is None:
        return None
    assert run.path is not None
    done = events["done"]
    if done["reason"] == "interrupted":
        say(
            f"saved at step {done['steps']:,}; "
            f"resume with: {ctx.command_path} --resume {quoted(run.path)}"
        )
        raise click.exceptions.Exit(INTERRUPTED)
    return run.path, events.get("report", {}).get("figures", {})


def follow(
    run: Runnable, *, json: bool, quiet: bool, dry_run: bool
) -> dict[str, dict[str, Any]] | None:
    """Train before the eyes of the user; return the last event of each kind.

    None after a dry run, which shows the plan alone.
    """
    plan = event_in_options(run.plan().as_json())
    if dry_run:
        print_json(plan) if json else answer("\n".join(plan_lines(plan)))
        return None
    events = {"plan": plan}
    with choose_view(json=json, quiet=quiet) as view:
        view.show(plan)
        with graceful_interrupt(run.stop, view.stopping):
            for occurrence in run.run():
                event = event_in_options(occurrence.as_json())
                events[event["event"]] = event
                view.show(event)
    return events


def refuse_json_and_quiet(ctx: click.Context, *, json: bool, quiet: bool) -> None:
    """Raise UsageError where both are given."""
    if json and quiet:
        raise click.UsageError("--json and --quiet cannot go together", ctx)


def _refuse_fixed_options(ctx: click.Context) -> None:
    """A resumed run keeps its settings; raise UsageError for any that is given."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        is_set = ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if is_set and name not in WITH_RESUME:
            raise click.UsageError(
                f"{label(parameter)} cannot be changed by --resume: "
                "the run keeps its data and settings",
                ctx,
            )


def quoted(run: Path) -> str:
    """Return the directory as a shell takes it."""
    return shlex.quote(run.as_posix())
