"""Tasks that are trained on separate examples: pairs, labelled texts, texts with hidden tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from tinygrad_tf.tasks.examples import ExampleBatches, ExampleSet, in_batches
from tinygrad_tf.train.batches import Batches, Examples
from tinygrad_tf.train.events import PlanEvent
from tinygrad_tf.train.recipe import Recipe
from tinygrad_tf.train.stored_run import Files, StoredRun
from tinygrad_tf.train.task import Task


class ExampleTask(Task):
    """A task with a set of examples to train on and one to validate on.

    A kind of task sets `training_set` and `validation_set`, makes its model, and reads itself
    from the files of a run in `from_files`.
    """

    EVALUATION_ROWS: ClassVar[int] = 128
    # The training loss that is reported is that of about so many examples, from all over the set.
    SAMPLE_EXAMPLES: ClassVar[int] = 1024

    training_set: ExampleSet
    validation_set: ExampleSet

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> Self:
        """Make the task again of a recipe and of the files that its run has kept."""
        raise NotImplementedError(f"{cls.__name__} keeps no run")

    @classmethod
    def from_run(cls, run: StoredRun) -> Self:
        """Make the task again of what its run has kept."""
        task = cls.from_files(run.recipe, run.files)
        task.files = run.files
        return task

    def batches(self) -> Batches:
        """Return the training batches, from their beginning."""
        return ExampleBatches(self.training_set, self.recipe.batch_size, self.recipe.seed)

    def validation(self) -> Iterable[Examples]:
        """Yield the batches of the validation set, each time the same ones."""
        return in_batches(self.validation_set, self.EVALUATION_ROWS)

    def training_sample(self) -> Iterable[Examples]:
        """Yield some of the training set, from all over it."""
        every = -(-len(self.training_set.lengths) // self.SAMPLE_EXAMPLES)
        return in_batches(self.training_set, self.EVALUATION_ROWS, every)

    def plan(self, run: str) -> PlanEvent:
        """Describe what will be trained, with the number of examples."""
        recipe, config = self.recipe, self.recipe.config
        examples = len(self.training_set.lengths)
        settings: dict[str, Any] = recipe.model | recipe.training | recipe.options
        return PlanEvent(
            run=run,
            params=sum(p.size for p in self.model.named_parameters().values()),
            epochs=recipe.batch_size * config.grad_accum * config.steps / examples,
            references=self.references(),
            notes=list(self.notes),
            config=settings | recipe.shared(),
            facts={
                "task": self.name,
                "unit": self.unit,
                "examples_train": examples,
                "examples_val": len(self.validation_set.lengths),
                "targets_train": int(self.training_set.targets.sum()),
                "targets_val": int(self.validation_set.targets.sum()),
            },
        )
