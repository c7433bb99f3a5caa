"""Tuning a soft prompt: everything of a run but the model, which stays as it is bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy.typing as npt

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.soft_prompt import PromptedGPT, SoftPrompt, weights_sha256
from tinygrad_tf.tasks.prompt_text import PromptText, embedded_letters, own_text
from tinygrad_tf.train.batches import evaluation_batches, training_batches
from tinygrad_tf.train.events import CheckpointEvent, DoneEvent, Event, PlanEvent
from tinygrad_tf.train.parallel import Compute, default_threads
from tinygrad_tf.train.prepare import Workspace
from tinygrad_tf.train.trainer import TrainConfig, Trainer

SAMPLE_TARGETS = 8192


@dataclass(frozen=True)
class PromptTuningOptions:
    """How to tune a prompt; raises InputError through what it is given to.

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
    seed: int = 1337
    threads: int | None = None
    weights: str = "best"
    force: bool = False

    def target(self) -> Path:
        """Where the prompt goes: beside the run unless `out` says otherwise."""
        if self.out is not None:
            return self.out
        title = Path(self.texts[0]).stem if self.texts else "letters"
        run = self.run.absolute()
        return self.run.parent / f"{run.name}-{title}.prompt.safetensors"


@dataclass(frozen=True)
class PromptTunedEvent(Event):
    """What the prompt is worth on the held-out text, in nats per token and bits per character.

    floor: what the true source pays there, known for the embedded letters. frozen_sha256 is that
    of the weights before and after, which are compared.
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


class PromptTuning:
    """One tuning: make it, look at `plan()`, then iterate over `run()`, which writes the file.

    Raises InputError for a run that is not whole, a text that it has no characters for, and an
    `out` that exists.
    """

    def __init__(self, options: PromptTuningOptions) -> None:
        self.options, self.path = options, options.target()
        self._require_free()
        writer = TextGenerator.load(options.run, weights=options.weights)
        base = writer.model
        assert isinstance(base, GPT)
        self.base_sha256 = weights_sha256(base)
        self.lines, self.tokenizer = writer.lines, writer.tokenizer
        self.model = PromptedGPT.start(base, options.length, options.seed)
        self.config = TrainConfig(
            steps=options.steps,
            learning_rate=options.learning_rate,
            min_lr=0.0,
            warmup=min(20, options.steps // 10),
            beta2=0.99,
            weight_decay=0.0,
            eval_every=options.eval_every,
            time_limit=options.time_limit,
        )
        self._workspace = Workspace()
        self.text = self._read_text()
        train, val, batch_size = self.text.train, self.text.val, options.batch_size
        self._compute = Compute(min(options.threads or default_threads(), batch_size))
        block_size = base.config.block_size
        evaluate = partial(evaluation_batches, block_size=block_size, batch_size=64)
        every = max(1, train.targets // SAMPLE_TARGETS)
        self._best = _BestPrompt()
        self.trainer = Trainer(
            self.model,
            training_batches(train, block_size, batch_size, options.seed),
            self.config,
            validation=partial(evaluate, val),
            training_sample=partial(evaluate, train, every=every),
            store=self._best,
            name=str(self.path),
            compute=self._compute,
        )
        self.loss_before = self._compute.mean_loss(base, evaluate(val))
        # Of all the characters that are targets: all but the first token's.
        first = self.tokenizer.count_chars(val.tokens[:1])
        self.trainer.chars_per_token = (val.chars - first) / val.targets
        if self.text.floor is not None:
            self.trainer.floor_bits_per_char = self._bits(self.text.floor)

    def _require_free(self) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a directory", "give a file as --out")
        if self.path.exists() and not self.options.force:
            raise InputError(
                f"{self.path} exists already", "choose another --out, or replace it with --force"
            )
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"the directory {self.path.parent} does not exist", "make it first")

    def _read_text(self) -> PromptText:
        options = self.options
        settings = self.tokenizer, options.val_fraction, options.seed
        if options.texts:
            return own_text(options.texts, *settings, lines=self.lines, workspace=self._workspace)
        if not self.lines:
            raise InputError(
                f"{options.run} did not learn a document a line, as the embedded letters are",
                "give a TEXT to tune the prompt on",
            )
        return embedded_letters(*settings)

    def _bits(self, nats_per_token: float) -> float:
        assert self.trainer.chars_per_token is not None
        return nats_per_token / math.log(2.0) / self.trainer.chars_per_token

    def plan(self) -> PlanEvent:
        """What will be learned, on what, and the losses to compare with."""
        base, text, train = self.model.base, self.text, self.text.train
        learned, frozen = self.model.parameter_count(), base.parameter_count()
        references = {"without a prompt": self.loss_before, "floor": text.floor}
        if text.floor is not None and text.topic is not None:
            references["floor of the whole corpus"] = text.floor + text.topic
        per_step = self.options.batch_size * base.config.block_size
        if self.lines and train.starts is not None:
            per_step = round(self.options.batch_size * train.targets / (len(train.starts) - 1))
        total = per_step * self.config.steps
        return PlanEvent(
            run=str(self.path),
            preset="",
            params=frozen,
            tokens_train=train.targets,
            tokens_val=text.val.targets,
            vocab_size=base.config.vocab_size,
            epochs=total / train.targets,
            flops=total * base.config.flops_per_token(),
            memory_bytes=base.config.memory_bytes(self.options.batch_size),
            references=references,
            notes=[
                f"all of them are frozen (sha256 {self.base_sha256[:12]}); "
                f"{learned:,} are learned: {self.model.length} vectors of "
                f"{base.config.n_embd} before every text"
            ],
            config={
                "length": self.model.length,
                "steps": self.config.steps,
                "time_limit": self.config.time_limit,
                "learning_rate": self.config.learning_rate,
                "batch_size": self.options.batch_size,
                "seed": self.options.seed,
                "threads": self._compute.threads,
            },
        )

    def run(self) -> Iterator[Event]:
        """Tune, yielding what happens; at the end the best prompt by held-out loss is written.

        Interrupted by `stop`, it writes the best so far. Raises FailedError where the frozen
        weights are not what they were, or the file cannot be written.
        """
        reason = ""
        for event in self.trainer.run():
            if isinstance(event, DoneEvent):
                reason = event.reason
            if not isinstance(event, CheckpointEvent):  # those are kept in memory
                yield event
        after = weights_sha256(self.model.base)
        if after != self.base_sha256:
            raise FailedError(f"the frozen weights changed: {self.base_sha256} became {after}")
        best = self._best_prompt()
        assert best.loss_after is not None
        yield PromptTunedEvent(
            out=str(self.path),
            steps=self.trainer.progress.step,
            reason=reason,
            loss_before=self.loss_before,
            loss_after=best.loss_after,
            reduction=1.0 - best.loss_after / self.loss_before,
            bits_before=self._bits(self.loss_before),
            bits_after=self._bits(best.loss_after),
            bits_floor=self.trainer.floor_bits_per_char,
            prompt_params=self.model.parameter_count(),
            frozen_params=self.model.base.parameter_count(),
            frozen_sha256=after,
            frozen_unchanged=after == self.base_sha256,
            prompt_sha256=best.save(self.path),
        )

    def _best_prompt(self) -> SoftPrompt:
        """The best vectors by held-out loss, those of the last step among them."""
        progress = self.trainer.progress
        vectors, loss, step = self._best.vectors, progress.best_val_loss, progress.best_step
        if progress.evaluated_at != progress.step:  # it was interrupted
            now = self._compute.mean_loss(self.model, self.trainer.validation())
            if now < loss:
                vectors, loss, step = self.model.prompt.data, now, progress.step
        assert vectors is not None
        return SoftPrompt(vectors, self.base_sha256, self.text.task, step, self.loss_before, loss)

    def stop(self) -> None:
        """Ask to finish the step, write the best prompt and end; safe from a signal handler."""
        self.trainer.stop()


class _BestPrompt:
    """Keeps the best vectors in memory: the file is written once, whole, at the end."""

    def __init__(self) -> None:
        self.vectors: npt.NDArray[Any] | None = None

    def save(self, trainer: Trainer, best: bool) -> str:
        """Keep the vectors where they are the best so far."""
        if best:
            self.vectors = trainer.model.file_tensors()["prompt"].copy()
        return trainer.name

    def log(self, event: Event) -> None:
        """Nothing is logged: what happened is told once, to whoever iterates."""
