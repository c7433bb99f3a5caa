"""Tuning a soft prompt: a run in which the model itself stays as it is, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.soft_prompt import PromptedGPT, SoftPrompt, weights_sha256
from tinygrad_tf.tasks.prompt_text import PromptText, embedded_letters, own_text
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.text.tokens import TokenFile
from tinygrad_tf.train.config import DEFAULT_SEED
from tinygrad_tf.train.events import DoneEvent, Event, PlanEvent
from tinygrad_tf.train.parallel import Compute, default_threads
from tinygrad_tf.train.recipe import Recipe
from tinygrad_tf.train.run import Run
from tinygrad_tf.train.task import TokenTask
from tinygrad_tf.train.trainer import TextMeasure, Trainer
from tinygrad_tf.types import Array


@dataclass(frozen=True)
class PromptTuningOptions:
    """The settings of a prompt's tuning.

    run: the model, frozen. texts: UTF-8 files in the manner to be learned, a document a line
    where the run learned so; none for the embedded letters. length: vectors of the prompt.
    The learning rate is high, as it is in Lester et al. 2021: there is nothing to be spoilt.
    """

    run: Path
    texts: tuple[Path, ...] = ()
    out: Path | None = None
    length: int = 8
    steps: int = 400
    learning_rate: float = 0.1
    batch_size: int = 16
    val_fraction: float = 0.2
    eval_every: int = 50
    time_limit: float | None = None
    seed: int = DEFAULT_SEED
    threads: int | None = None
    weights: str = "best"
    force: bool = False

    def target(self) -> Path:
        """Return the file of the prompt: `out`, or a file beside the run."""
        if self.out is not None:
            return self.out
        title = Path(self.texts[0]).stem if self.texts else "letters"
        run = self.run.absolute()
        return self.run.parent / f"{run.name}-{title}.prompt.safetensors"


@dataclass(frozen=True)
class PromptTunedEvent(Event):
    """The losses without and with the prompt on the held-out text, in nats per token and bits
    per character.

    bits_floor: the entropy of the true source, known for the embedded letters. frozen_sha256: of
    the weights before and after, which are compared.
    """

    event: ClassVar[str] = "prompt-tuned"
    out: str
    steps: int
    reason: str
    loss_before: float
    loss_after: float
    reduction: float
    bits_before: float
    bits_after: float
    bits_floor: float | None
    prompt_params: int
    frozen_params: int
    frozen_sha256: str
    frozen_unchanged: bool
    prompt_sha256: str


class PromptTask(TokenTask):
    """A frozen GPT with a soft prompt before every text, and the text that the prompt fits."""

    name: ClassVar[str] = "prompt"
    SAMPLE_TARGETS: ClassVar[int] = 8192

    def __init__(
        self, recipe: Recipe, model: PromptedGPT, tokenizer: Tokenizer, text: PromptText
    ) -> None:
        self.recipe, self.tokenizer, self.text = recipe, tokenizer, text
        self.config = model.base.config
        self._model = model
        # The loss without the prompt, which the base alone decides.
        compute = Compute(min(recipe.threads, recipe.batch_size))
        self.loss_before = compute.mean_loss(model.base, self.validation())

    @property
    def model(self) -> PromptedGPT:
        """The frozen GPT and its prompt."""
        return self._model

    @property
    def train(self) -> TokenFile:
        """The training split."""
        return self.text.train

    @property
    def val(self) -> TokenFile:
        """The validation split."""
        return self.text.val

    @property
    def evaluation_rows(self) -> int:
        """The number of rows in a batch of an evaluation."""
        return 64

    def measure(self) -> TextMeasure:
        """Return the mean characters per target, and the floor of the embedded letters."""
        # All characters are targets but those of the first token.
        first = self.tokenizer.count_chars(self.val.tokens[:1])
        measure = TextMeasure((self.val.chars - first) / self.val.targets)
        if self.text.floor is None:
            return measure
        return replace(measure, floor_bits_per_char=measure.bits_per_char(self.text.floor))

    def references(self) -> dict[str, float | None]:
        """Return losses to compare with, in nats per token."""
        text = self.text
        references = {"without a prompt": self.loss_before, "floor": text.floor}
        if text.floor is not None and text.topic is not None:
            references["floor of the whole corpus"] = text.floor + text.topic
        return references

    def plan(self, run: str) -> PlanEvent:
        """Describe what will be trained, and what is frozen."""
        model, config = self.model, self.recipe.training
        note = (
            f"all of them are frozen (sha256 {weights_sha256(model.base)[:12]}); "
            f"{model.parameter_count():,} are learned: {model.length} vectors of "
            f"{self.config.n_embd} before every text"
        )
        settings = {name: config[name] for name in ("steps", "time_limit", "learning_rate")}
        threads = min(self.recipe.threads, self.recipe.batch_size)
        return replace(
            super().plan(run),
            notes=[note],
            config={"length": model.length}
            | settings
            | self.recipe.shared()
            | {"threads": threads},
        )


class PromptTuning:
    """The tuning of a prompt: make it, look at `plan()`, then iterate over `run()`.

    `run()` writes the file. Raises InputError for a run that is not whole, a text that it has no
    characters for, and an `out` that exists.
    """

    def __init__(self, options: PromptTuningOptions) -> None:
        self.options, self.path = options, options.target()
        self._require_free()
        generator = TextGenerator.load(options.run, weights=options.weights)
        base = generator.model
        assert isinstance(base, GPT)
        self.base_sha256 = weights_sha256(base)
        recipe = Recipe(
            options.seed,
            default_threads() if options.threads is None else options.threads,
            options.batch_size,
            training={
                "steps": options.steps,
                "learning_rate": options.learning_rate,
                "min_lr": 0.0,
                "warmup": min(20, options.steps // 10),
                "beta2": 0.99,
                "weight_decay": 0.0,
                "eval_every": options.eval_every,
                "time_limit": options.time_limit,
            },
        )
        model = PromptedGPT.start(base, options.length, options.seed)
        text = self._read_text(generator)
        self.task = PromptTask(recipe, model, generator.tokenizer, text)
        self._best = _BestPrompt()
        self._run = Run(self.task, name=str(self.path), store=self._best)

    def _require_free(self) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a directory", "give a file as `out`")
        if self.path.exists() and not self.options.force:
            raise InputError(
                f"{self.path} exists already",
                "choose another `out`, or replace it with `force=True`",
            )
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"the directory {self.path.parent} does not exist", "make it first")

    def _read_text(self, generator: TextGenerator) -> PromptText:
        options = self.options
        settings = generator.tokenizer, options.val_fraction, options.seed
        if options.texts:
            return own_text(options.texts, *settings, lines=generator.lines)
        if not generator.lines:
            raise InputError(
                f"{options.run} did not learn a document a line, as the embedded letters are",
                "give a text to tune the prompt on",
            )
        return embedded_letters(*settings)

    def plan(self) -> PlanEvent:
        """Describe what will be learned, on what, and the losses to compare with."""
        return self._run.plan()

    def run(self) -> Iterator[Event]:
        """Tune and yield what happens; at the end the best prompt by held-out loss is written.

        Interrupted by `stop`, it writes the best so far. Raises FailedError where the frozen
        weights have changed, or the file cannot be written.
        """
        reason = ""
        for event in self._run.run():
            if isinstance(event, DoneEvent):
                reason = event.reason
            yield event
        task, model, measure = self.task, self.task.model, self.task.measure()
        after = weights_sha256(model.base)
        if after != self.base_sha256:
            raise FailedError(f"the frozen weights changed: {self.base_sha256} became {after}")
        best = self._best_prompt()
        assert best.loss_after is not None
        bits_before, bits_after = map(measure.bits_per_char, (task.loss_before, best.loss_after))
        assert bits_before is not None and bits_after is not None
        yield PromptTunedEvent(
            out=str(self.path),
            steps=self._run.trainer.progress.step,
            reason=reason,
            loss_before=task.loss_before,
            loss_after=best.loss_after,
            reduction=1.0 - best.loss_after / task.loss_before,
            bits_before=bits_before,
            bits_after=bits_after,
            bits_floor=measure.floor_bits_per_char,
            prompt_params=model.parameter_count(),
            frozen_params=model.base.parameter_count(),
            frozen_sha256=after,
            frozen_unchanged=after == self.base_sha256,
            prompt_sha256=best.save(self.path),
        )

    def _best_prompt(self) -> SoftPrompt:
        """Return the best vectors by held-out loss, those of the last step among them."""
        trainer, task = self._run.trainer, self.task
        progress = trainer.progress
        vectors, loss, step = self._best.vectors, progress.best_val_loss, progress.best_step
        if progress.evaluated_at != progress.step:  # it was interrupted
            now = trainer.compute.mean_loss(task.model, task.validation())
            if now < loss:
                vectors, loss, step = task.model.prompt.data, now, progress.step
        assert vectors is not None
        return SoftPrompt(vectors, self.base_sha256, task.text.task, step, task.loss_before, loss)

    def stop(self) -> None:
        """Request an orderly end that writes the best prompt; safe in a signal handler."""
        self._run.stop()


class _BestPrompt:
    """Keeps the best vectors in memory: the file is written once, whole, at the end."""

    def __init__(self) -> None:
        self.vectors: Array | None = None

    def save(self, trainer: Trainer, best: bool) -> None:
        """Keep the vectors where they are the best so far."""
        if best:
            self.vectors = trainer.model.file_tensors()["prompt"].copy()

    def log(self, event: Event) -> None:
        """Log nothing: the events are yielded."""
