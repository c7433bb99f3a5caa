"""A run of a task from beginning to end: its directory, its trainer, its report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import tinygrad_tf
from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.tasks.events import ReportEvent, TaskDoneEvent, TaskPlanEvent
from tinygrad_tf.tasks.examples import ExampleBatches, in_batches
from tinygrad_tf.tasks.task import OpenedRun, Task, TaskOptions, sha256_of_files
from tinygrad_tf.train.events import DoneEvent, Event, WarningEvent
from tinygrad_tf.train.experiment import free_path, require_free, taken
from tinygrad_tf.train.integrity import intact_block, seal
from tinygrad_tf.train.parallel import Compute
from tinygrad_tf.train.store import RunStore, restore
from tinygrad_tf.train.trainer import TrainConfig, Trainer

EVALUATION_ROWS = 128
# The training loss that is reported is that of about so many examples, from all over the set.
SAMPLE_EXAMPLES = 1024


class TaskRun:
    """One run; make it with `create` or `resume`, look at `plan()`, then iterate over `run()`."""

    def __init__(
        self, task: Task, path: Path, *, force: bool = False, directory: RunDirectory | None = None
    ) -> None:
        self.task, self.path, self.force = task, path, force
        self.config = TrainConfig(**task.recipe.training)
        self._directory = directory
        self._trainer: Trainer | None = None
        self._stopping = False
        self._news: list[str] = []

    @classmethod
    def create(cls, task: Task, options: TaskOptions, *, dry_run: bool = False) -> TaskRun:
        """A new run; nothing is written yet. Raises InputError where its directory is taken."""
        path = options.out or free_path(Path("runs") / task.recipe.title)
        if options.out is not None and not options.force and not dry_run:
            require_free(path)
        return cls(task, path, force=options.force)

    @classmethod
    def resume(
        cls,
        kind: type[Task],
        run_dir: str | Path,
        *,
        steps: int | None = None,
        time_limit: float | None = None,
    ) -> TaskRun:
        """Go on with a run where its last checkpoint stands, exactly as if it had not stopped.

        steps and time_limit replace those of the run. Raises InputError where the run is not
        whole, or there is nothing left to do.
        """
        news: list[str] = []
        opened = OpenedRun.open(run_dir, kind.name, data=True, on_warning=news.append)
        recipe, directory = opened.recipe, opened.directory
        planned: int = steps or recipe.training["steps"]
        changed = {"steps": planned, "time_limit": time_limit}
        recipe = replace(recipe, training=recipe.training | changed)
        done = directory.checkpoint_steps().get("latest", 0)
        if done >= planned:
            raise InputError(
                f"{directory.path} has been trained for all of its {planned:,} steps",
                f"give more: --steps {2 * planned}",
            )
        run = cls(kind.from_files(recipe, opened.files), directory.path, directory=directory)
        run._news = news
        return run

    def plan(self) -> TaskPlanEvent:
        """What will be trained, on what, and what the loss is to be compared with."""
        task, recipe = self.task, self.task.recipe
        examples = len(task.training.lengths)
        seen = recipe.batch_size * self.config.grad_accum * self.config.steps
        return TaskPlanEvent(
            run=str(self.path),
            task=task.name,
            unit=task.unit,
            params=sum(p.size for p in task.model.named_parameters().values()),
            examples_train=examples,
            examples_val=len(task.validation.lengths),
            targets_train=int(task.training.targets.sum()),
            targets_val=int(task.validation.targets.sum()),
            epochs=seen / examples,
            references=task.references(),
            notes=list(task.notes),
            config=recipe.model
            | recipe.training
            | recipe.options
            | {n: getattr(recipe, n) for n in ("batch_size", "seed", "threads")},
        )

    def run(self) -> Iterator[Event]:
        """Train, yielding what happens; at the end, unless interrupted, comes the report."""
        directory = self._directory
        is_new = directory is None
        if directory is None:
            directory = RunDirectory.create(
                self.path, force=self.force, on_warning=self._news.append
            )
        directory.command = f"tt train-{self.task.name}"
        with directory.lock():
            if is_new:
                if directory.checkpoint_steps():
                    raise taken(self.path)  # by another process, a moment ago
                self._furnish(directory)
            else:
                self._keep_plan(directory)
            self._trainer = trainer = self._make_trainer(directory)
            if self._stopping:
                trainer.stop()
            for event in trainer.run():
                news, self._news[:] = self._news[:], []
                yield from (WarningEvent(trainer.progress.step, note) for note in news)
                if isinstance(event, DoneEvent):
                    event = TaskDoneEvent(**asdict(event), unit=self.task.unit)
                yield event
            if trainer.progress.step >= self.config.steps or not self._stopping:
                yield self._report(directory, trainer)

    def stop(self) -> None:
        """Ask to finish the step, save and end; safe to call from a signal handler."""
        self._stopping = True
        if self._trainer is not None:
            self._trainer.stop()

    def _report(self, directory: RunDirectory, trainer: Trainer) -> ReportEvent:
        """The figures of the best weights, which stay in the model."""
        if "best" in directory.checkpoint_steps():
            self.task.model.load_tensors(directory.load_model("best"))
        self.task.model.eval()
        event = ReportEvent(trainer.progress.step, self.task.evaluate())
        directory.append_metrics(event.as_json())
        return event

    def _furnish(self, directory: RunDirectory) -> None:
        """Write into a new run what it needs to be resumed from its very beginning."""
        digests = {}
        for name, content in self.task.files.items():
            path = directory.path / name
            with atomic.writing(path):
                path.parent.mkdir(exist_ok=True)
            digests[name] = atomic.write_atomically(path, content)
        self._write_config(directory, digests)

    def _keep_plan(self, directory: RunDirectory) -> None:
        """Write down the number of steps if it was changed on resuming."""
        block = intact_block(directory, self.task.name)
        if block["experiment"]["training"]["steps"] != self.config.steps:
            self._write_config(directory, block["files_sha256"])

    def _write_config(self, directory: RunDirectory, digests: dict[str, Any]) -> None:
        block = {
            "schema_version": 1,
            "version": tinygrad_tf.__version__,
            "task": self.task.name,
            "model": self.task.recipe.model,
            "experiment": self.task.recipe.as_dict(),
            "files_sha256": digests,
        }
        config: dict[str, Any] = {"model_type": "tinygrad_tf", "architectures": [], "tt": block}
        block["sha256"] = seal(config)
        directory.write_config(config)

    def _make_trainer(self, directory: RunDirectory) -> Trainer:
        task, recipe = self.task, self.task.recipe
        digests = [sha256_of_files(task.files, data=data) for data in (True, False)]
        store = RunStore(directory, *digests)
        every = -(-len(task.training.lengths) // SAMPLE_EXAMPLES)
        trainer = Trainer(
            task.model,
            ExampleBatches(task.training, recipe.batch_size, recipe.seed),
            self.config,
            validation=partial(in_batches, task.validation, EVALUATION_ROWS),
            training_sample=partial(in_batches, task.training, EVALUATION_ROWS, every),
            store=store,
            name=str(self.path),
            compute=Compute(min(recipe.threads, recipe.batch_size)),
        )
        if directory.checkpoint_steps():
            # Read only now that the run is locked: another process may just have gone on with it.
            checkpoint = directory.load_checkpoint()
            store.require_same_origin(checkpoint.state)
            restore(trainer, checkpoint)
            directory.truncate_metrics(trainer.progress.step)
        else:
            directory.truncate_metrics(-1)
            directory.append_metrics(self.plan().as_json())
        return trainer
