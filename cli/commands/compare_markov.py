"""`tt compare-markov`: compare models, from counted words to a trained GPT."""

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import (
    answer,
    has_colour,
    has_glyphs,
    is_terminal,
    print_json,
    print_picture,
    rich_console,
    say,
)
from cli.options import (
    NATURAL,
    POSITIVE_INT,
    Duration,
    GroupedCommand,
    Number,
    RunPath,
    option,
)
from tinygrad_tf.train.config import DEFAULT_SEED

if TYPE_CHECKING:
    from cli.comparison.report import Part
    from cli.comparison.runner import Callbacks, Outcome
    from tinygrad_tf.train.events import Event

DATA, MODELS, OUTPUT = "Data", "Models", "Output"
WIDTH = 100  # of a picture, where the terminal is no narrower
LINE_EVERY = 5.0  # seconds between lines about the training

EXAMPLES = (
    "tt compare-markov                           the toy languages, then the built-in corpus",
    "tt compare-markov --gpt runs/stories        with the GPT that tt train-gpt made of it",
    "tt compare-markov book.txt --tokenizer word --budget 2m",
    "tt compare-markov book.txt --save book.svg",
)


class Budget(Duration):
    """A span of time, or 0 for none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds of a time such as `2m`, or 0."""
        return 0.0 if str(value) in ("0", "0s", "0.0") else super().convert(value, param, ctx)


# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["text"], metavar="[TEXT]", required=False, type=click.Path(path_type=Path)),
    option("--tokenizer", group=DATA, metavar="char|word|byte|bpe|FILE",
           help="What a token is.  [default: char]"),
    option("--val-fraction", group=DATA, type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the text, at its end, to hold out.  [default: 0.1]"),
    option("--chars", group=DATA, type=POSITIVE_INT,
           help="Size of the built-in corpus.  [default: 460,000]"),
    option("--gpt", group=MODELS, type=RunPath(), metavar="RUN",
           help="Compare with the GPT of this run; its tokenizer is used."),
    option("--budget", group=MODELS, type=Budget(), metavar="TIME",
           help="Train a GPT for so long; 0 leaves it out.  [default: 1m; built-in corpus 2m]"),
    option("--prompt", "-p", group=MODELS, default="", metavar="TEXT",
           help="What the examples go on from."),
    option("--seed", group=MODELS, type=NATURAL, default=DEFAULT_SEED, show_default=True,
           help="Seed of the GPT, and of which stories are held out."),
    option("--curve/--no-curve", group=OUTPUT, default=True,
           help="Learn from ever more text as well.  [default: yes]"),
    option("--save", group=OUTPUT, type=click.Path(path_type=Path),
           help="Save as .svg, .html or .txt."),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite the saved file."),
    option("--json", group=OUTPUT, is_flag=True, help="One object with every figure."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the result."),
]
# fmt: on


@click.command("compare-markov", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    text: Path | None,
    tokenizer: str | None,
    val_fraction: float | None,
    chars: int | None,
    gpt: Path | None,
    budget: float | None,
    prompt: str,
    seed: int,
    curve: bool,
    save: Path | None,
    force: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Compare Markov chains, n-grams, skips and a GPT on the same held-out part of TEXT.

    Without TEXT: the toy languages that show why attention is needed, with their matrices, votes
    and masks, and then every model on the built-in corpus, whose floor is known.
    """
    if json and quiet:
        raise click.UsageError("--json and --quiet cannot go together")
    if gpt is not None and (tokenizer is not None or budget is not None):
        raise click.UsageError("--gpt brings its tokenizer and needs no --budget: leave them out")
    if text is None and tokenizer is not None:
        raise click.UsageError("--tokenizer is for a TEXT: name a file")
    if text is not None and chars is not None:
        raise click.UsageError("--chars is for the built-in corpus: leave out TEXT")
    from cli.pictures.export import check_target

    if save is not None:
        check_target(save, force=force)
    from cli.comparison.results import comparison_part
    from cli.comparison.runner import Config, compare_file, compare_stories
    from cli.comparison.walkthrough import story
    from tinygrad_tf.corpus import DEFAULT_CHARS

    config = Config(
        tokenizer or "char",
        gpt,
        (60.0 if text else 120.0) if budget is None else budget,
        val_fraction,
        prompt,
        chars or DEFAULT_CHARS,
        seed,
        curve,
    )
    callbacks = _callbacks(quiet=quiet or json)
    if text is None:
        outcome = compare_stories(config, callbacks)
        parts = [*story(), comparison_part(outcome)]
    else:
        outcome = compare_file(text, config, callbacks)
        parts = [comparison_part(outcome)]
    _show(parts, outcome, config.seed, json=json)
    if save is not None:
        _save(parts, save, text, force=force)
        if not quiet:
            say(f"saved {save}")


def _show(parts: "list[Part]", outcome: "Outcome", seed: int, *, json: bool) -> None:
    """Print the report on stdout: an object, a picture, or lines of cells."""
    from cli.pictures.report import picture, plain

    if json:
        print_json(_as_json(parts, outcome, seed))
    elif is_terminal(sys.stdout):
        width = min(WIDTH, rich_console(sys.stdout).width)
        ascii = not has_glyphs(sys.stdout)
        print_picture(picture(parts, width=width, ascii=ascii, colour=has_colour(sys.stdout)))
    else:
        answer(plain(parts))


def _save(parts: "list[Part]", path: Path, text: Path | None, *, force: bool) -> None:
    from cli.pictures.export import save
    from cli.pictures.report import picture

    title = f"tt compare-markov {text}" if text else "tt compare-markov"
    save(picture(parts), path, title=title, width=180, force=force)


def _as_json(parts: "list[Part]", outcome: "Outcome", seed: int) -> dict[str, Any]:
    """Return every figure: the parts of the report, and the rows and the curve by name."""
    from cli.comparison.results import verdict

    split = outcome.split
    far = split.far
    return {
        "text": split.title,
        "seed": seed,
        "unit": split.unit,
        "vocab_size": split.train.vocab_size,
        "tokens_train": len(split.train),
        "tokens_held_out": split.targets,
        "chars_held_out": split.chars,
        "floor_bits_per_char": outcome.floor,
        "far": None
        if far is None
        else {"words": len(far.start), "beyond": far.beyond, "chance": far.chance},
        "verdict": verdict(outcome.results, outcome.floor),
        "notes": outcome.notes,
        "results": [asdict(result) for result in outcome.results],
        "curve": [{"tokens": a.tokens, "nats": a.nats, "met": a.met} for a in outcome.curve],
        "parts": [part.as_json() for part in parts],
    }


def _callbacks(*, quiet: bool) -> "Callbacks":
    """Make the callbacks that print progress on stderr, at most one line in `LINE_EVERY`."""
    from cli.comparison.runner import Callbacks

    next_line = [time.monotonic() + LINE_EVERY]

    def on_event(event: "Event") -> None:
        fields = event.as_json()
        if fields["event"] == "step" and time.monotonic() >= next_line[0]:
            next_line[0] = time.monotonic() + LINE_EVERY
            say(f"step {fields['step']:,}: loss {fields['loss']:.3f} ({fields['elapsed']:.0f} s)")

    return Callbacks() if quiet else Callbacks(say, on_event)
