"""Runs of a language model, made from one dictionary of options."""

from pathlib import Path
from typing import Any

from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.train.run import Run


def create(options: dict[str, Any], *, dry_run: bool = False) -> Run:
    """A new run; `out` and `force` are the run's, all else the task's."""
    own = {name: value for name, value in options.items() if name not in ("out", "force")}
    force = options.get("force", False)
    task = LanguageModelTask.create(**own)
    return Run.create(task, options.get("out"), force=force, dry_run=dry_run)


def resume(run_dir: Path, **limits: Any) -> Run:
    """The run of a directory, from its last checkpoint on."""
    return Run.resume(LanguageModelTask, run_dir, **limits)
