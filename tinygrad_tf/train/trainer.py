"""The training loop: batches in, events out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import FailedError
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.train.batches import Batches, Examples
from tinygrad_tf.train.config import TrainConfig
from tinygrad_tf.train.events import (
    CheckpointEvent,
    DoneEvent,
    EvalEvent,
    Event,
    StepEvent,
    WarningEvent,
)
from tinygrad_tf.train.memory import keep_freed_memory
from tinygrad_tf.train.optim import AdamW
from tinygrad_tf.train.parallel import QUIETLY, Compute, Gradients, Learner, blas_threads
from tinygrad_tf.train.schedule import scheduled_rate

BatchSource = Callable[[], Iterable[Examples]]

# The validation loss has to rise this often in a row before it is called over-fitting.
RISES_BEFORE_WARNING = 3


class Store(Protocol):
    """A place for a trainer's state, such as `RunStore`."""

    def save(self, trainer: Trainer, best: bool) -> str | None:
        """Keep everything needed to go on; returns the place on the disk, if there is one."""

    def log(self, event: Event) -> None:
        """Append to the run's metrics."""


@dataclass(frozen=True)
class TextMeasure:
    """The mean characters and bytes per target of the validation text, and its lowest loss."""

    chars_per_token: float | None = None
    bytes_per_token: float | None = None
    floor_bits_per_char: float | None = None

    def bits_per_char(self, nats_per_token: float) -> float | None:
        """Convert a loss to bits per character; None where characters were not counted."""
        return _bits(nats_per_token, self.chars_per_token)

    def bits_per_byte(self, nats_per_token: float) -> float | None:
        """Convert a loss to bits per byte; None where bytes were not counted."""
        return _bits(nats_per_token, self.bytes_per_token)


@dataclass
class Progress:
    """The state of a trainer that a resumed one goes on with."""

    step: int = 0
    tokens: int = 0
    elapsed: float = 0.0
    val_loss: float = math.inf
    best_val_loss: float = math.inf
    best_step: int = 0
    rises: int = 0
    stale: int = 0
    warned: bool = False
    evaluated_at: int = -1
    last_train_loss: float = math.inf


class Trainer:
    """Trains a model on batches and yields events: `for event in Trainer(...).run(): ...`.

    validation and training_sample make the batches whose loss is reported at every evaluation,
    each time the same ones. store keeps checkpoints, or None. compute computes the loss and the
    gradients of a batch, and may split it among threads. unit: the unit of the losses; measure
    converts them to bits per character. Evaluating and saving never change what is learned.
    """

    def __init__(
        self,
        model: Learner,
        batches: Batches,
        config: TrainConfig | None = None,
        *,
        validation: BatchSource,
        training_sample: BatchSource | None = None,
        store: Store | None = None,
        name: str = "",
        compute: Compute | None = None,
        unit: str = "nats per token",
        measure: TextMeasure | None = None,
    ) -> None:
        self.model, self.batches, self.store, self.name = model, batches, store, name
        self.config = config or TrainConfig()
        self.validation = validation
        self.training_sample = training_sample or validation
        self.compute = compute or Compute()
        self.progress = Progress()
        self.unit, self.measure = unit, measure or TextMeasure()
        c = self.config
        self.optimizer = AdamW(
            model.named_parameters(),
            c.learning_rate,
            (c.beta1, c.beta2),
            weight_decay=c.weight_decay,
        )
        self._started = 0.0
        self._stopping = False
        self.saved_at = -1

    def stop(self) -> None:
        """Request an orderly end: finish the step, save, evaluate nothing more; safe in a signal
        handler.
        """
        self._stopping = True

    def run(self) -> Iterator[Event]:
        """Train to the end, from the current step on."""
        keep_freed_memory()
        # Threads that share a batch need BLAS to stay within each of them.
        with blas_threads(1) if self.compute.threads > 1 else nullcontext():
            yield from self._run()

    def _run(self) -> Iterator[Event]:
        self.model.train()
        begun = time.monotonic()
        self._started = begun - self.progress.elapsed
        p, c = self.progress, self.config
        if p.evaluated_at != p.step and p.step % c.eval_every == 0:
            yield from self._evaluate()
        if p.step == 0:
            yield from self._save(best=False)
        while not (reason := self._reason_to_end(begun)):
            yield self._step()
            # Evaluated first: then a checkpoint includes all events up to it.
            if self._is_due(c.eval_every):
                yield from self._evaluate()
            if self._is_due(c.checkpoint_every):
                yield from self._save(best=False)
        if p.evaluated_at != p.step and reason != "interrupted":
            yield from self._evaluate()
        yield from self._save(best=False)
        yield self._logged(
            DoneEvent(
                self.name,
                p.step,
                reason,
                p.val_loss,
                self.measure.bits_per_char(p.val_loss),
                self.measure.bits_per_byte(p.val_loss),
                self.measure.floor_bits_per_char,
                p.best_val_loss,
                p.best_step,
                p.elapsed,
                self.unit,
            )
        )

    def _is_due(self, every: int) -> bool:
        step = self.progress.step
        return not self._stopping and (step % every == 0 or step == self.config.steps)

    def _reason_to_end(self, begun: float) -> str:
        p, c = self.progress, self.config
        if p.step >= c.steps:
            return "steps"
        if self._stopping:
            return "interrupted"
        if c.early_stop is not None and p.stale >= c.early_stop:
            return "early-stop"
        if c.time_limit is not None and time.monotonic() - begun >= c.time_limit:
            return "time-limit"
        return ""

    def _logged(self, event: Event) -> Event:
        if self.store is not None:
            self.store.log(event)
        return event

    @QUIETLY
    def _step(self) -> Event:
        p, c = self.progress, self.config
        begun = time.monotonic()
        peak, low = c.learning_rate, c.min_lr
        self.optimizer.lr = scheduled_rate(c.schedule, p.step, c.steps, peak, low, c.warmup)
        loss, gradients, targets = self._accumulate()
        norm = self.optimizer.step(gradients, max_norm=c.grad_clip or None)
        if not math.isfinite(norm):
            self._fail(_culprit(gradients), "gradient", p.step + 1)
        p.step += 1
        p.tokens += targets
        now = time.monotonic()
        p.elapsed = now - self._started
        return self._logged(
            StepEvent(
                p.step,
                loss,
                self.optimizer.lr,
                norm,
                p.tokens,
                targets / max(now - begun, 1e-9),
                p.elapsed,
            )
        )

    def _accumulate(self) -> tuple[float, Gradients, int]:
        """Loss and gradient of one step's batches together, each target counting alike."""
        batches = [self.batches.next_batch() for _ in range(self.config.grad_accum)]
        total = sum(batch.count for batch in batches)
        loss, gradients = 0.0, Gradients()
        for batch in batches:
            part, shares = self.compute.gradients(self.model, batch)
            if not math.isfinite(part):
                culprit = _first_non_finite(self.model, batch)
                self._fail(culprit, f"loss ({part})", self.progress.step + 1)
            share = batch.count / total
            loss += part * share
            if share == 1.0:
                return loss, shares, total
            for name, g in shares.items():
                g *= share
                gradients[name] = gradients[name] + g if name in gradients else g
        return loss, gradients, total

    def _fail(self, culprit: str, what: str, step: int) -> NoReturn:
        lr = self.optimizer.lr
        rate = self.config.learning_rate / 3
        remedy = f"train with a lower rate, such as `learning_rate={rate:.1g}`"
        if not self.config.grad_clip:
            remedy += ", or `grad_clip=1`"
        kept = f"the checkpoint of step {self.saved_at} is kept" if self.saved_at >= 0 else ""
        raise FailedError(
            f"the {what} is not finite at step {step} (learning rate {lr:.3g}): "
            f"first seen in {culprit}",
            "; ".join(filter(None, (kept, remedy))),
        )

    def _evaluate(self) -> Iterator[Event]:
        p = self.progress
        train_loss = self._finite_mean(self.training_sample)
        val_loss = self._finite_mean(self.validation)
        p.rises = p.rises + 1 if val_loss > p.val_loss and train_loss < p.last_train_loss else 0
        p.val_loss, p.last_train_loss, p.evaluated_at = val_loss, train_loss, p.step
        improved = val_loss < p.best_val_loss
        p.stale = 0 if improved else p.stale + 1
        if improved:
            p.best_val_loss, p.best_step = val_loss, p.step
        p.elapsed = time.monotonic() - self._started
        yield self._logged(
            EvalEvent(p.step, train_loss, val_loss, p.best_val_loss, p.best_step, p.elapsed)
        )
        if p.rises >= RISES_BEFORE_WARNING and not p.warned:
            p.warned = True
            yield self._logged(WarningEvent(p.step, self._overfitting(train_loss, val_loss)))
        if improved:
            yield from self._save(best=True)

    def _finite_mean(self, batches: BatchSource) -> float:
        mean_loss = self.compute.mean_loss
        loss = mean_loss(self.model, batches())
        if not math.isfinite(loss):
            step = self.progress.step
            wrong = (b for b in batches() if not math.isfinite(mean_loss(self.model, [b])))
            self._fail(_first_non_finite(self.model, next(wrong)), f"evaluated loss ({loss})", step)
        return loss

    def _overfitting(self, train_loss: float, val_loss: float) -> str:
        p, kept = self.progress, ""
        if self.store is not None:
            kept = f"the best weights, of step {p.best_step} ({p.best_val_loss:.3f}), are kept; "
        return (
            f"over-fitting: the validation loss rose {p.rises} times in a row to {val_loss:.3f} "
            f"while the training loss fell to {train_loss:.3f}; {kept}"
            f"more text, a smaller model or `dropout=0.2` would help"
        )

    def _save(self, best: bool) -> Iterator[Event]:
        if self.store is None or (self.saved_at == self.progress.step and not best):
            return
        self.saved_at = self.progress.step
        path = self.store.save(self, best)
        if path is not None:
            yield CheckpointEvent(self.saved_at, path)


def _bits(nats_per_token: float, per_token: float | None) -> float | None:
    """A loss in bits per character or byte, or None where these were not counted."""
    if per_token is None or not math.isfinite(nats_per_token):
        return None
    return nats_per_token / math.log(2.0) / per_token


def _culprit(gradients: Gradients) -> str:
    """Name the parameter whose gradient is not finite; of several the last, computed first."""
    wrong = [name for name, g in gradients.items() if not np.isfinite(g).all()]
    return f"the gradient of {wrong[-1]}" if wrong else "the sum of the gradients' squares"


@no_grad()
def _first_non_finite(model: Learner, batch: Examples) -> str:
    """The first named value of the forward pass that is not finite."""
    for name, p in model.named_parameters().items():
        if not np.isfinite(p.data).all():
            return f"the parameter {name}"
    with np.errstate(all="ignore"), record() as values:
        model.loss(*batch.arguments)
    return next((name for name, v in values.items() if _is_broken(name, v.data)), "the logits")


def _is_broken(name: str, values: npt.NDArray[Any]) -> bool:
    fine = np.isfinite(values)
    if name.endswith("hook_attn_scores"):
        fine |= np.isneginf(values)  # so the mask hides what lies ahead
    return not fine.all()
