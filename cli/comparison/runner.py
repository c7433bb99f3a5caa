"""A whole comparison: the text read and cut, every model made and tried, and who won."""

import tempfile
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
from tinygrad_tf.text import (
    CharTokenizer,
    StringSource,
    Tokenizer,
    TokenSet,
    build_tokens,
    open_tokens,
    read_text,
)
from tinygrad_tf.text.tokens import train_size
from tinygrad_tf.train import TrainOptions
from tinygrad_tf.train.events import Event
from tinygrad_tf.train.options import CORPUS_PRESET, TEXT_PRESET
from tinygrad_tf.train.prepare import new_tokenizer
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
    """How to compare: tokenizer "char", "word", "byte", "bpe" or a file; a run whose GPT takes
    part, or the seconds in which one is trained (0 for none); what each model goes on from;
    `chars` of the embedded corpus; whether to learn from ever more text."""

    tokenizer: str = "char"
    gpt: Path | None = None
    budget: float = 60.0
    val_fraction: float | None = None
    prompt: str = ""
    chars: int = corpus.DEFAULT_CHARS
    seed: int = 1337
    curve: bool = True


@dataclass(frozen=True)
class Callbacks:
    """What happens on the way: a sentence, and how far the training of the GPT is."""

    say: Callable[[str], None] = lambda line: None
    listen: Callable[[Event], None] = lambda event: None


@dataclass(frozen=True)
class Outcome:
    """All rows, the curve, and the text they are about; `floor` in bits per character."""

    split: Split
    results: tuple[Result, ...]
    curve: tuple[Amount, ...]
    notes: tuple[str, ...]
    floor: float | None = None
    far_chance: float | None = None


@dataclass(frozen=True)
class Run:
    """A trained GPT, its tokenizer, and the text it learned from as far as the run still has it."""

    path: Path
    model: GPT
    tokenizer: Tokenizer
    tokens: TokenSet | None
    is_of_corpus: bool

    @classmethod
    def load(cls, path: Path) -> "Run":
        """Read a run. Raises InputError where the directory is none."""
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


def compare_stories(config: Config, told: Callbacks | None = None) -> Outcome:
    """All models on held-out stories of the embedded corpus: the counting ones by words, the GPT
    (and some n-grams beside it) by characters, or by the tokens of its run."""
    told = told or Callbacks()
    run = None if config.gpt is None else Run.load(config.gpt)
    notes = []
    if run is not None and run.is_of_corpus and run.tokens is not None:
        parts = [_stories(run.tokenizer.decode(s.tokens)) for s in (run.tokens.train,
                                                                    run.tokens.val)]  # fmt: skip
        notes.append(f"the held-out stories are those of {run.path}")
    else:
        parts = list(deal_stories(config.chars, config.val_fraction or VAL_FRACTION, config.seed))
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
        split.read(config.prompt)  # a fault of it is found before anything is trained
    results = list(_told(compare(words, candidates(words), config.prompt), told))
    spelled = compare(letters, _spelled(letters), config.prompt)
    results += _told(spelled, told)
    results += _gpt(letters, run, config, preset(CORPUS_PRESET), told, notes)
    notes.append("a word more than "
                 f"{words.far.beyond if words.far else 0} words after the one that decides it "
                 "counts as right by characters where each of them is the best guess")  # fmt: skip
    curve = learning_curve(words) if config.curve else []
    chance = words.far.chance if words.far else None
    return Outcome(words, tuple(results), tuple(curve), (*words.notes, *notes),
                   floor.bits_per_char, chance)  # fmt: skip


def compare_file(path: Path, config: Config, told: Callbacks | None = None) -> Outcome:
    """All models on the held-out part of a text file.

    Raises InputError for a text of one word, an empty part, and a run or tokenizer that is none.
    """
    told = told or Callbacks()
    run = None if config.gpt is None else Run.load(config.gpt)
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
    results = list(_told(compare(split, candidates(split), config.prompt), told))
    results += _gpt(split, run, config, preset(TEXT_PRESET), told, notes)
    curve = learning_curve(split) if config.curve else []
    return Outcome(split, tuple(results), tuple(curve), (*split.notes, *notes))


def deal_stories(chars: int, val_fraction: float, seed: int) -> tuple[list[str], list[str]]:
    """The stories of the embedded corpus to learn from, and those held out: dealt as training does
    with the same seed."""
    text = corpus.generate(chars).text
    if len(_stories(text)) < 4:
        raise InputError(f"{chars} characters are too few stories", "use --chars 9000")
    tokenizer = CharTokenizer.from_text(text)
    with tempfile.TemporaryDirectory(prefix="tt-stories-", ignore_cleanup_errors=True) as folder:
        tokens = build_tokens(
            StringSource(text, "the embedded corpus"),
            tokenizer,
            folder,
            val_fraction=val_fraction,
            lines=True,
            seed=seed,
        )
        train, held_out = (_stories(tokenizer.decode(s.tokens)) for s in (tokens.train, tokens.val))
    return train, held_out


def _stories(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _split(path: Path, text: str, sha256: str, run: Run | None, config: Config) -> Split:
    """The text cut as the run cut it, if it learned from it; else by the fraction."""
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
        return split_lines(title, train[1:], val[1:], tokenizer, [note])
    whole = np.concatenate([train, val])
    split = split_tokens(title, whole, tokenizer, own.val_fraction, notes=[note])
    assert len(split.train) == len(train)
    return split


def _tokenizer(text: str, config: Config, fraction: float) -> Tokenizer:
    """The tokenizer asked for; one that is learned learns from the part to learn from alone."""
    if config.tokenizer == "char":
        return CharTokenizer.from_text(text)
    named = config.tokenizer in ("byte", "bpe")
    if not named and not Path(config.tokenizer).exists():
        raise InputError(
            f"there is no tokenizer {config.tokenizer!r}",
            "choose char, word, byte, bpe, or a tokenizer's file",
        )
    recipe = TrainOptions(texts=(Path(),), tokenizer=config.tokenizer).resolve()
    part = text[: train_size(len(text), fraction)]
    return new_tokenizer(recipe, StringSource(part or text))[0]


def _spelled(split: Split) -> Iterator[Candidate]:
    """A few n-grams by the same tokens as the GPT, to be compared with it token by token."""
    for candidate in candidates(split, _SPELLED_ORDERS):
        if not candidate.votes:
            yield candidate


def _gpt(
    split: Split, run: Run | None, config: Config, recipe: Preset, told: Callbacks, notes: list[str]
) -> list[Result]:
    """The row of the GPT: of the run, or trained now if there is a budget."""
    vocab_size, end = split.train.vocab_size, split.train.end
    if run is not None:
        name = f"GPT of {run.path.name}"
        model = TransformerLM(name, run.model, vocab_size, end)
        seconds = _trained_for(run.path)
    elif config.budget > 0:
        told.say(f"training a GPT by {split.unit}s for at most {config.budget:g} s")
        try:
            done = train_transformer(
                split.train,
                recipe,
                config.budget,
                config.seed,
                most_steps=recipe.training["steps"] if end is not None else None,
                listen=told.listen,
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
    return list(_told(iter([row]), told))


def _trained_for(path: Path) -> float:
    """The seconds that a run says it took; NaN where it does not say."""
    events = RunDirectory.open(path).read_metrics()
    return max((float(event.get("elapsed", 0.0)) for event in events), default=float("nan"))


def _told(rows: Iterator[Result], told: Callbacks) -> Iterator[Result]:
    for row in rows:
        told.say(f"{row.model} by {row.unit}s: {row.bits_per_char:.4f} bits per character "
                 f"({row.seconds:.1f} s)")  # fmt: skip
        yield row
