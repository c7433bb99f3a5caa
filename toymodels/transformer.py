"""A GPT as one of the language models: its costs of a text, and its training in limited time."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinygrad_tf import no_grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.presets import Preset
from tinygrad_tf.text import TokenFile
from tinygrad_tf.train.batches import Batch, evaluation_batches, training_batches
from tinygrad_tf.train.config import DEFAULT_SEED
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.parallel import Compute, blas_threads, default_threads
from tinygrad_tf.train.recipe import TRAIN_FIELDS, Recipe
from tinygrad_tf.train.run import Run
from tinygrad_tf.train.task import TokenTask, longest_document
from tinygrad_tf.types import Floats, Ids
from toymodels.model import LanguageModel
from toymodels.text import History, Text

_TOKENS_AT_A_TIME = 8192
_LOGITS_AT_A_TIME = 1 << 22
_EPOCHS = 20  # at most: a longer budget would only learn a short text by heart
_TRIALS = 7  # steps that are timed to see how many fit into a budget
_OPTIMIZER = 1.15  # what a step takes, over its gradients alone


@dataclass(frozen=True)
class Window:
    """Tokens `start` to `stop` (exclusive), of which those from `new` on are predicted."""

    start: int
    stop: int
    new: int


def windows(first: int, last: int, block_size: int) -> Iterator[Window]:
    """Yield windows of `block_size` over the places `first` to `last` (exclusive).

    Each is half over the one before: beyond the first window every token has at least
    block_size / 2 before it.
    """
    stop = min(first + block_size, last)
    yield Window(first, stop, first)
    while stop < last:
        new, stop = stop, min(stop + max(1, block_size // 2), last)
        yield Window(stop - block_size, stop, new)


class TransformerLM(LanguageModel):
    """A GPT whose first `vocab_size` tokens are those of the vocabulary.

    In a text made of sentences each is read after the end token, and alone. The very first token
    of another text has no context, and there all tokens are equally likely. A long text is read in
    `windows`.
    """

    def __init__(self, name: str, model: GPT, vocab_size: int, end: int | None = None) -> None:
        if model.config.vocab_size < vocab_size:
            raise InputError(
                f"the model has {model.config.vocab_size:,} tokens, the text {vocab_size:,}",
                "encode the text with the tokenizer that the model was trained with",
            )
        model.eval()
        self.name, self.model = name, model
        self.vocab_size, self.end = vocab_size, end
        self._seen: tuple[Ids, Floats, Ids] | None = None

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.size for parameter in self.model.parameters())

    @property
    def memory_bytes(self) -> int:
        """Bytes of the parameters."""
        return sum(parameter.data.nbytes for parameter in self.model.parameters())

    @property
    def reach(self) -> int:
        """The context length."""
        return self.model.config.block_size

    def probs(self, history: History, at: Ids) -> Floats:
        """Return the distributions (n, V) at the places (n,), each with a full context."""
        probs = np.full((len(at), self.vocab_size), 1 / self.vocab_size)
        before = self._before(history)
        first = history.starts[at] + (self.end is None)
        begin = np.maximum(first, at + 1 - self.reach)
        places = np.flatnonzero(at >= first)
        for some in np.array_split(places, -(-len(places) // self._rows(self.reach)) or 1):
            if len(some):
                logits = self._logits(before, begin[some], at[some] + 1)
                ends = at[some] - begin[some]
                logits = logits[np.arange(len(some)), ends].astype(np.float64)
                probs[some] = ops.softmax(logits).data
        return probs

    def nats(self, tokens: Ids) -> Floats:
        """Return -ln of the probability of each token (N,)."""
        return self._read(tokens)[0]

    def predict(self, tokens: Ids) -> Ids:
        """Return the best guess for each token (N,)."""
        return self._read(tokens)[1]

    def _read(self, tokens: Ids) -> tuple[Floats, Ids]:
        """Return both; they are kept until another text comes, as the other often follows."""
        if self._seen is None or not np.array_equal(self._seen[0], tokens):
            history = self.history(tokens)
            nats = np.full(len(history), np.log(self.vocab_size))
            guess = np.zeros(len(history), np.int64)
            for start, stop, new in self._batches(history):
                logits = self._logits(self._before(history), start, stop)
                for row, first in enumerate(start):
                    at = np.arange(new[row], stop[row])
                    own = logits[row, at - first].astype(np.float64)
                    log_probs = ops.log_softmax(own).data
                    nats[at] = -log_probs[np.arange(len(at)), history.tokens[at]]
                    guess[at] = own.argmax(axis=1)
            self._seen = np.array(tokens), nats, guess
        return self._seen[1], self._seen[2]

    def _batches(self, history: History) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Yield windows over all sentences, alike in length, as arrays of start, stop and new."""
        begins = np.unique(history.starts[history.everywhere])
        ends = np.append(begins[1:], len(history))
        skipped = int(self.end is None)
        spans = [
            (w.start, w.stop, w.new)
            for begin, end in zip(begins + skipped, ends, strict=True)
            if begin < end
            for w in windows(int(begin), int(end), self.reach)
        ]
        spans.sort(key=lambda w: w[1] - w[0])
        while spans:
            rows = self._rows(spans[-1][1] - spans[-1][0])
            start, stop, new = np.array(spans[-rows:]).T
            del spans[-rows:]
            yield start, stop, new

    def _rows(self, length: int) -> int:
        numbers = length * self.model.config.vocab_size
        return max(1, min(_TOKENS_AT_A_TIME // length, _LOGITS_AT_A_TIME // numbers))

    def _before(self, history: History) -> Ids:
        """Return the token before each place (N + 1,), the input of the GPT for that place."""
        pad = 0 if self.end is None else self.end
        return np.concatenate([[pad], history.tokens]).astype(np.int64)

    def _logits(self, before: Ids, start: Ids, stop: Ids) -> Floats:
        """Return the logits (B, T, V) of the places from start (B,) to stop (B,), padded right."""
        columns = np.arange((stop - start).max())
        places = np.minimum(start[:, None] + columns, len(before) - 1)
        with no_grad():
            logits: Floats = self.model(before[places]).data[:, :, : self.vocab_size]
        return logits


@dataclass(frozen=True)
class Training:
    """The result of a training: the model, the steps done and planned, and the seconds."""

    model: TransformerLM
    steps: int
    planned: int
    seconds: float


def train_transformer(
    text: Text,
    recipe: Preset,
    budget: float,
    seed: int = DEFAULT_SEED,
    *,
    most_steps: int | None = None,
    listen: Callable[[Event], None] = lambda event: None,
) -> Training:
    """Train a GPT of a recipe for at most about `budget` seconds.

    A few steps are timed first: so many are then planned as fit, but not more than `most_steps`,
    or 20 epochs, so that the learning rate has come down when the time is over. In a text of
    sentences each of them is read on its own, and the context is as long as the longest.
    Raises InputError for a text shorter than the context.
    """
    begun = time.monotonic()
    split = _token_file(text)
    shape = _shape(recipe, text, split)
    training = recipe.training
    seconds = _seconds_a_step(shape, split, training["batch_size"], seed)
    per_step = training["batch_size"] * split.targets // _documents(split, shape.block_size)
    enough = max(100, _EPOCHS * split.targets // max(1, per_step))
    left = budget - (time.monotonic() - begun)
    steps = max(1, min(most_steps or enough, int(left / seconds)))
    chosen = {name: training[name] for name in TRAIN_FIELDS if name in training} | {
        "steps": steps, "time_limit": max(left, 1e-3), "eval_every": steps + 1,
        "checkpoint_every": steps + 1,
    }  # fmt: skip
    task = _ComparedTask(
        Recipe(seed, default_threads(), training["batch_size"], training=chosen), shape, split
    )
    run = Run(task)
    for event in run.run():
        listen(event)
    name = f"GPT {shape.n_layer}x{shape.n_embd}"
    made = TransformerLM(name, task.model, text.vocab_size, text.end)
    return Training(made, run.trainer.progress.step, steps, time.monotonic() - begun)


class _ComparedTask(TokenTask):
    """A GPT and the training part of a text; nothing is held out, since all models are compared
    on the same part later.
    """

    def __init__(self, recipe: Recipe, config: GPTConfig, split: TokenFile) -> None:
        self.recipe, self.config, self._split = recipe, config, split

    @cached_property
    def model(self) -> GPT:
        """The GPT."""
        return GPT(self.config, self.recipe.seed)

    @property
    def train(self) -> TokenFile:
        """The training part."""
        return self._split

    @property
    def val(self) -> TokenFile:
        """The training part."""
        return self._split

    def validation(self) -> Iterator[Batch]:
        """Yield one batch."""
        batches = evaluation_batches(self._split, self.config.block_size, self.recipe.batch_size)
        yield next(batches)

    def training_sample(self) -> Iterator[Batch]:
        """Yield one batch."""
        return self.validation()


def _token_file(text: Text) -> TokenFile:
    """Make a token file from a text; if it consists of sentences, each is one document."""
    if text.end is None:
        return TokenFile("training", text.tokens, None, len(text))
    tokens = np.concatenate([[text.end], text.tokens])
    starts = np.flatnonzero(tokens == text.end)
    return TokenFile("training", tokens[: starts[-1] + 1], starts, len(text))


def _shape(recipe: Preset, text: Text, split: TokenFile) -> GPTConfig:
    fields = dict(recipe.model)
    if split.starts is not None and "block_size" not in fields:
        fields["block_size"] = longest_document(split)
    shape = GPTConfig(vocab_size=text.vocab_size, **fields)
    if split.starts is None and split.targets < shape.block_size:
        raise InputError(
            f"the training part has {len(split.tokens):,} tokens, and a GPT with a context of "
            f"{shape.block_size} needs {shape.block_size + 1}",
            "give a longer text, or use `budget=0` to leave the GPT out",
        )
    return shape


def _documents(split: TokenFile, block_size: int) -> int:
    if split.starts is None:
        return max(1, split.targets // block_size)
    return max(1, len(split.starts) - 1)


def _seconds_a_step(shape: GPTConfig, split: TokenFile, batch_size: int, seed: int) -> float:
    """Measure the seconds of a step on this machine: the least of a few, since the first warms up
    and others may be delayed by other programs. The time limit ends a training that is slower."""
    threads = min(default_threads(), batch_size)
    compute, times = Compute(threads), []
    model, batches = GPT(shape, seed), training_batches(split, shape.block_size, batch_size, seed)
    with blas_threads(1) if threads > 1 else nullcontext():
        for _ in range(_TRIALS):
            begun = time.monotonic()
            compute.gradients(model, batches.next_batch())
            times.append(time.monotonic() - begun)
    return min(times) * _OPTIMIZER
