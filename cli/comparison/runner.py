"""The run of a comparison: read and split the text, make and measure every model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models import GPT
from tinygrad_tf.models.presets import Preset, preset
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.tasks.language_model import CORPUS_PRESET, TEXT_PRESET
from tinygrad_tf.tasks.task_tokenizer import make_tokenizer
from tinygrad_tf.text import (
    CharTokenizer,
    StringSource,
    Tokenizer,
    TokenSet,
    open_tokens,
    read_text,
)
from tinygrad_tf.text.held_out import train_size
from tinygrad_tf.train.config import DEFAULT_SEED
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.parallel import default_threads
from toymodels.comparison import (
    Amount,
    Candidate,
    Result,
    candidates,
    compare,
    learning_curve,
    measure,
)
from toymodels.held_out import (
    Split,
    hold_out_stories,
    spell_stories,
    split_lines,
    split_stories,
    split_tokens,
    split_words,
)
from toymodels.transformer import TransformerLM, train_transformer

VAL_FRACTION = 0.1
WORD = "word"
_SPELLED_ORDERS = (6,)  # n-grams by characters, beside those by words


@dataclass(frozen=True)
class Config:
    """Settings of a comparison.

    tokenizer: "char", "word", "byte", "bpe" or a file. gpt: a run whose GPT is compared; or else
    budget: the seconds in which one is trained, 0 for none. prompt: the beginning of the examples.
    chars: the size of the embedded corpus. curve: whether to compute the learning curve.
    """

    tokenizer: str = "char"
    gpt: Path | None = None
    budget: float = 60.0
    val_fraction: float | None = None
    prompt: str = ""
    chars: int = corpus.DEFAULT_CHARS
    seed: int = DEFAULT_SEED
    curve: bool = True


@dataclass(frozen=True)
class Callbacks:
    """Functions to call during a comparison: with a sentence, and with each training event."""

    log: Callable[[str], None] = lambda line: None
    on_event: Callable[[Event], None] = lambda event: None


@dataclass(frozen=True)
class Outcome:
    """All rows, the curve, and the text they are about; `floor` in bits per character."""

    split: Split
    results: tuple[Result, ...]
    curve: tuple[Amount, ...]
    notes: tuple[str, ...]
    floor: float | None = None


@dataclass(frozen=True)
class GPTRun:
    """A trained GPT, its tokenizer, and the tokens of its text, if the run still has them."""

    path: Path
    model: GPT
    tokenizer: Tokenizer
    tokens: TokenSet | None
    is_of_corpus: bool

    @classmethod
    def load(cls, path: Path) -> "GPTRun":
        """Load a run. Raises InputError where the directory is not a run of a plain GPT."""
        generator = TextGenerator.load(path)
        block = RunDirectory.open(path).read_config().get("tt")
        experiment = block.get("experiment") if isinstance(block, dict) else None
        try:
            tokens = open_tokens(path / "data", generator.tokenizer)
        except InputError:
            tokens = None
        is_of_corpus = isinstance(experiment, dict) and not experiment.get("texts", True)
        if not isinstance(generator.model, GPT):
            raise InputError(f"{path} is no plain GPT", "give a run of tt train-gpt")
        return cls(path, generator.model, generator.tokenizer, tokens, is_of_corpus)


def compare_stories(config: Config, callbacks: Callbacks | None = None) -> Outcome:
    """Compare all models on held-out stories of the embedded corpus.

    The counting models learn words, the GPT (and some n-grams beside it) characters, or the tokens
    of its run.
    """
    callbacks = callbacks or Callbacks()
    run = None if config.gpt is None else GPTRun.load(config.gpt)
    notes = []
    if run is not None and run.is_of_corpus and run.tokens is not None:
        parts = [_stories(run.tokenizer.decode(s.tokens)) for s in (run.tokens.train,
                                                                    run.tokens.val)]  # fmt: skip
        notes.append(f"the held-out stories are those of {run.path}")
    else:
        parts = list(
            hold_out_stories(config.chars, config.val_fraction or VAL_FRACTION, config.seed)
        )
        if run is not None:
            notes.append(f"the run {run.path} had another text, or its tokens are gone")
    floor = corpus.floor(parts[1])
    words = split_stories(parts[0], parts[1], floor.nats)
    tokenizer = run.tokenizer if run else CharTokenizer.from_text([*parts[0], *parts[1], "\n"])
    try:
        letters = spell_stories(parts[0], parts[1], tokenizer, floor.nats)
    except InputError as fault:
        raise InputError(
            f"the tokenizer of {config.gpt} cannot write the built-in corpus: {fault.what}",
            f"compare on a text of its own: tt compare-markov TEXT --gpt {config.gpt}",
        ) from fault
    for split in (words, letters):
        split.read(config.prompt)  # raises for a bad prompt before anything is trained
    results = list(_logged(compare(words, candidates(words), config.prompt), callbacks))
    spelled = compare(letters, _spelled(letters), config.prompt)
    results += _logged(spelled, callbacks)
    results += _gpt(letters, run, config, preset(CORPUS_PRESET), callbacks, notes)
    notes.append("a word more than "
                 f"{words.far.beyond if words.far else 0} words after the one that decides it "
                 "counts as right by characters where each of them is the best guess")  # fmt: skip
    curve = learning_curve(words) if config.curve else []
    return Outcome(words, tuple(results), tuple(curve), (*words.notes, *notes), floor.bits_per_char)


def compare_file(path: Path, config: Config, callbacks: Callbacks | None = None) -> Outcome:
    """Compare all models on the held-out part of a text file.

    Raises InputError for a text of one word, an empty part, and an invalid run or tokenizer.
    """
    callbacks = callbacks or Callbacks()
    run = None if config.gpt is None else GPTRun.load(config.gpt)
    text, report = read_text(path)
    if len(text.split()) < 2:
        raise InputError(
            f"{path} holds {len(text.split())} word{'s' * (not text.split())}, and what follows "
            "what takes at least 2",
            "give a longer text",
        )
    notes = report.notes()
    split = _split(path, text, report.sha256, run, config)
    split.read(config.prompt)
    results = list(_logged(compare(split, candidates(split), config.prompt), callbacks))
    results += _gpt(split, run, config, preset(TEXT_PRESET), callbacks, notes)
    curve = learning_curve(split) if config.curve else []
    return Outcome(split, tuple(results), tuple(curve), (*split.notes, *notes))


def _stories(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _split(path: Path, text: str, sha256: str, run: GPTRun | None, config: Config) -> Split:
    """Split the text as the run split it, if it learned from it; else by the fraction."""
    fraction = config.val_fraction or VAL_FRACTION
    title = path.name
    if run is None and config.tokenizer == WORD:
        return split_words(title, text, fraction)
    if run is None:
        tokenizer = _tokenizer(text, config, fraction)
        return split_tokens(title, tokenizer.encode(text), tokenizer, fraction)
    tokenizer, own = run.tokenizer, run.tokens
    if own is None or own.text_sha256 != sha256:
        lost = len(text) - tokenizer.count_chars(ids := tokenizer.encode(text, unknown="skip"))
        notes = [f"the run {run.path} had another text, or its tokens are gone: whether it "
                 "has seen the held-out part is not known"]  # fmt: skip
        if lost:
            notes.append(f"{lost:,} characters that its tokenizer does not know are left out")
        return split_tokens(title, ids, tokenizer, fraction, notes=notes)
    note = f"the held-out part is that of {run.path}"
    train, val = (np.asarray(s.tokens, np.int64) for s in (own.train, own.val))
    if own.lines:
        return split_lines(title, tokenizer, train[1:], val[1:], [note])
    whole = np.concatenate([train, val])
    split = split_tokens(title, whole, tokenizer, own.val_fraction, notes=[note])
    assert len(split.train) == len(train)
    return split


def _tokenizer(text: str, config: Config, fraction: float) -> Tokenizer:
    """Make the chosen tokenizer; one that is learned learns from the training part alone."""
    if config.tokenizer == "char":
        return CharTokenizer.from_text(text)
    named = config.tokenizer in ("byte", "bpe")
    if not named and not Path(config.tokenizer).exists():
        raise InputError(
            f"there is no tokenizer {config.tokenizer!r}",
            "choose char, word, byte, bpe, or a tokenizer's file",
        )
    part = text[: train_size(len(text), fraction)]
    source = StringSource(part or text)
    return make_tokenizer(config.tokenizer, source, workers=default_threads())[0]


def _spelled(split: Split) -> Iterator[Candidate]:
    """Yield a few n-grams by the same tokens as the GPT, to compare with it token by token."""
    for candidate in candidates(split, _SPELLED_ORDERS):
        if not candidate.votes:
            yield candidate


def _gpt(
    split: Split,
    run: GPTRun | None,
    config: Config,
    recipe: Preset,
    callbacks: Callbacks,
    notes: list[str],
) -> list[Result]:
    """Measure the GPT: that of the run, or one trained now if there is a budget."""
    vocab_size, end = split.train.vocab_size, split.train.end
    if run is not None:
        name = f"GPT of {run.path.name}"
        model = TransformerLM(name, run.model, vocab_size, end)
        seconds = _trained_for(run.path)
    elif config.budget > 0:
        callbacks.log(f"training a GPT by {split.unit}s for at most {config.budget:g} s")
        try:
            done = train_transformer(
                split.train,
                recipe,
                config.budget,
                config.seed,
                most_steps=recipe.training["steps"] if end is not None else None,
                listen=callbacks.on_event,
            )
        except InputError as fault:
            notes.append(f"there is no GPT: {fault.what}")
            return []
        model, seconds = done.model, done.seconds
        notes.append(f"the GPT was trained for {done.steps:,} of {done.planned:,} steps that were "
                     f"planned for {config.budget:.0f} s (preset {recipe.name})")  # fmt: skip
    else:
        return []
    if end is None:
        notes.append(f"the GPT reads windows of {model.reach} tokens, each half over the one "
                     f"before: every token has at least {model.reach // 2} before it")  # fmt: skip
    row = measure(model, split, seconds, config.prompt)
    return list(_logged(iter([row]), callbacks))


def _trained_for(path: Path) -> float:
    """Return the seconds that a run records; NaN where it records none."""
    events = RunDirectory.open(path).read_metrics()
    return max((float(event.get("elapsed", 0.0)) for event in events), default=float("nan"))


def _logged(rows: Iterator[Result], callbacks: Callbacks) -> Iterator[Result]:
    for row in rows:
        callbacks.log(f"{row.model} by {row.unit}s: {row.bits_per_char:.4f} bits per character "
                 f"({row.seconds:.1f} s)")  # fmt: skip
        yield row
