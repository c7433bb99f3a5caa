"""A training run from beginning to end: its directory, its trainer, its report."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train.events import DoneEvent, Event, PlanEvent, ReportEvent, WarningEvent
from tinygrad_tf.train.integrity import config_sha256, intact_block
from tinygrad_tf.train.parallel import Compute
from tinygrad_tf.train.store import RunStore
from tinygrad_tf.train.task import Task
from tinygrad_tf.train.trainer import Store, Trainer

MOST_MEMORY = 1 << 50


class Run:
    """A run of a task: make it, look at `plan()`, then iterate over `run()`.

    `Run(task)` trains without a directory; `Run.create` and `Run.resume` keep checkpoints in one.
    name: what the events call the run; store: where a run without a directory keeps its state.
    """

    def __init__(self, task: Task, *, name: str = "", store: Store | None = None) -> None:
        self.task, self.name = task, name
        self.path: Path | None = None
        self._store = store
        self._directory: RunDirectory | None = None
        self._force = False
        self._data: Path | None = None
        self._discard: Callable[[], object] = lambda: None
        self._trainer: Trainer | None = None
        self._stopping = False
        self._warnings: list[str] = []  # of the run's directory, not yielded yet

    @classmethod
    def create(
        cls,
        task: Task,
        out: str | Path | None = None,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> Run:
        """Make a new run in the directory `out`, by default the first free one of runs/TITLE.

        A run that is there is replaced only with `force`, and only when this one begins. Until
        then, at most token files are written, which are removed again if it never begins; with
        `dry_run` they are written elsewhere. Raises InputError for a directory that is taken, a
        text that cannot be used, and too little memory; the latter is a note with `dry_run`.
        """
        path = Path(out) if out is not None else free_path(Path("runs") / task.title)
        if out is not None and not force and not dry_run:
            require_free(path)
        run = cls(task, name=str(path))
        run.path, run._force = path, force
        try:
            if task.token_files:
                run._build_data(None if dry_run else path)
            fault = _memory_fault(task.memory_bytes(), force=force)
            if fault is not None and not dry_run:
                raise fault
        except BaseException:
            run._discard()
            raise
        if fault is not None:
            task.notes = [*task.notes, fault.what]
        return run

    @classmethod
    def resume(
        cls,
        kind: type[Task],
        run_dir: str | Path,
        *,
        steps: int | None = None,
        time_limit: float | None = None,
    ) -> Run:
        """Go on with a run of a kind of task from its last checkpoint, exactly as if it had not
        stopped.

        steps and time_limit replace those of the run. Raises InputError where the run is not
        whole, its data have changed, or there is nothing left to do.
        """
        warnings: list[str] = []
        stored = kind.open_run(run_dir, data=True, on_warning=warnings.append)
        directory = stored.directory
        planned: int = steps or stored.recipe.training["steps"]
        done = directory.checkpoint_steps().get("latest", 0)
        if done >= planned:
            raise InputError(
                f"{directory.path} has been trained for all of its {done:,} steps",
                f"give more: `steps={2 * done}`",
            )
        changed = {"steps": planned, "time_limit": time_limit}
        recipe = replace(stored.recipe, training=stored.recipe.training | changed)
        run = cls(kind.from_run(replace(stored, recipe=recipe)), name=str(directory.path))
        run.path, run._directory, run._warnings = directory.path, directory, warnings
        return run

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        step = 0 if self._trainer is None else self._trainer.progress.step
        return f"Run({self.task!r}, {place}, step {step:,})"

    def plan(self) -> PlanEvent:
        """Describe what will be trained, on what, and the losses to compare with."""
        return self.task.plan(self.name)

    def run(self) -> Iterator[Event]:
        """Train and yield what happens, at the end a report if the task has figures.

        A new run's directory is made now. Interrupted by `stop`, there is no report.
        """
        if self.path is None:
            self._trainer = self._make_trainer(self._store)
            yield from self._train(self._trainer, None)
            return
        # The model is made before anything is replaced: it may be too large for this machine.
        _ = self.task.model
        is_new = self._directory is None
        directory = self._directory or self._make_directory()
        with directory.lock():
            if not is_new:
                self._update_plan(directory)
            elif directory.checkpoint_steps():
                raise taken(directory.path)  # by another process, a moment ago
            else:
                self._write_files(directory)
            store = RunStore(directory, self.task.text_sha256, self.task.tokenizer_sha256)
            self._trainer = trainer = self._make_trainer(store)
            # The checkpoint is read under the lock: another process may just have moved it on.
            if directory.checkpoint_steps():
                store.restore(trainer)
            else:
                directory.truncate_metrics(-1)
                store.log(self.plan())
            yield from self._train(trainer, directory)

    def stop(self) -> None:
        """Request an orderly end: finish the step, save and end; safe in a signal handler."""
        self._stopping = True
        if self._trainer is not None:
            self._trainer.stop()

    @property
    def trainer(self) -> Trainer:
        """The trainer of this run; InputError before it runs."""
        if self._trainer is None:
            raise InputError("the run has not begun", "iterate over `run()` first")
        return self._trainer

    def _make_trainer(self, store: Store | None) -> Trainer:
        task, recipe = self.task, self.task.recipe
        return Trainer(
            task.model,
            task.batches(),
            recipe.config,
            validation=task.validation,
            training_sample=task.training_sample,
            store=store,
            name=self.name,
            compute=Compute(min(recipe.threads, recipe.batch_size)),
            unit=task.unit,
            measure=task.measure(),
        )

    def _train(self, trainer: Trainer, directory: RunDirectory | None) -> Iterator[Event]:
        if self._stopping:
            trainer.stop()
        for event in trainer.run():
            warnings, self._warnings[:] = self._warnings[:], []
            yield from (WarningEvent(trainer.progress.step, warning) for warning in warnings)
            yield event
            if isinstance(event, DoneEvent) and event.reason != "interrupted":
                yield from self._report(trainer, directory)

    def _report(self, trainer: Trainer, directory: RunDirectory | None) -> Iterator[Event]:
        """Yield the figures of the best weights, which stay in the model."""
        if directory is not None and "best" in directory.checkpoint_steps():
            self.task.model.load_tensors(directory.load_model("best"))
        self.task.model.eval()
        figures = self.task.evaluate()
        if figures is not None:
            event = ReportEvent(trainer.progress.step, figures)
            if trainer.store is not None:
                trainer.store.log(event)
            yield event

    # The directory of a run

    def _build_data(self, path: Path | None) -> None:
        """Build token files under a temporary name in the run's directory, or in the system's."""
        if path is None:
            created, folder = [], Path(tempfile.mkdtemp(prefix="tt-tokens-"))
        else:
            created = [p for p in (path, *path.parents) if not p.exists()]
            folder = atomic.temporary_beside(path / "data")
            with atomic.writing(path):
                folder.mkdir(parents=True)
        # Also called when this run is no longer needed, and at exit; harmless once it has begun.
        self._discard = weakref.finalize(self, _remove_unused, folder, created)
        self._data = folder
        self.task.build_data(folder)

    def _make_directory(self) -> RunDirectory:
        assert self.path is not None
        self.task.open_data(None)  # some systems do not rename a folder whose files are open
        try:
            directory = RunDirectory.create(
                self.path, force=self._force, data=self._data, on_warning=self._warnings.append
            )
        except BaseException:
            self._discard()
            raise
        self.task.open_data(directory.path / "data")
        return directory

    def _write_files(self, directory: RunDirectory) -> None:
        """Write into a new run all that it needs to be resumed from its very beginning."""
        digests: dict[str, str | None] = {}
        for name, content in self.task.files.items():
            path = directory.path / name
            with atomic.writing(path):
                path.parent.mkdir(exist_ok=True)
            digests[name] = atomic.write_atomically(path, content)
        if self.task.token_files:
            for path in sorted((directory.path / "data").iterdir()):
                digests[f"data/{path.name}"] = atomic.sha256_of(path)
        self._write_config(directory, digests)

    def _update_plan(self, directory: RunDirectory) -> None:
        """Write down the number of steps if it was changed on resuming."""
        kind = self.task
        block = intact_block(directory, kind.name, token_files=kind.token_files)
        if block["experiment"]["training"]["steps"] != kind.recipe.config.steps:
            self._write_config(directory, block["files_sha256"])

    def _write_config(self, directory: RunDirectory, digests: dict[str, Any]) -> None:
        config = self.task.config_json(digests)
        config["tt"]["sha256"] = config_sha256(config)
        directory.write_config(config)


def _remove_unused(folder: Path, created: list[Path]) -> None:
    """Remove the data of a run that never began, and the directories made for it, if empty."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in created:
        try:
            path.rmdir()
        except OSError:
            return


def require_free(path: Path) -> None:
    """Raise InputError, saying what is there, unless a new run may be made at `path`."""
    if path.is_file():
        raise InputError(f"{path} is a file", "choose a directory as `out`")
    if not path.is_dir() or all(map(atomic.is_temporary, path.iterdir())):
        return
    if not any((path / name).exists() for name in ("config.json", "latest.json")):
        raise InputError(
            f"{path} holds files that are no run of this program", "choose another `out`"
        )
    raise taken(path)


def taken(path: Path) -> InputError:
    """The error for a directory that holds a run already."""
    return InputError(
        f"{path} exists already",
        f"choose another `out`, replace it with `force=True`, or go on with `resume={path}`",
    )


def free_path(path: Path) -> Path:
    """Return the path, or the first of path-2, path-3, ... that does not exist."""
    candidates = [path, *(path.with_name(f"{path.name}-{n}") for n in range(2, 1000))]
    return next((p for p in candidates if not p.exists()), candidates[-1])


def _memory_fault(need: int | None, *, force: bool) -> InputError | None:
    """Return the error for more memory than there is, None where it is enough or unknown."""
    free = _free_memory()
    if need is None:
        return None
    if need > MOST_MEMORY:
        return InputError(
            f"training needs about {need / 2**40:,.0f} TiB of memory",
            "use a smaller `batch_size` or model",
        )
    if free is not None and need > free and not force:
        return InputError(
            f"training needs about {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free",
            "use a smaller `batch_size` or model, or `force=True` to try",
        )
    return None


def _free_memory() -> int | None:
    """Return the bytes of memory that are available, where the system reports them."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
