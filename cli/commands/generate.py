"""`tt generate`: generate text with a trained model."""

import random
import sys
from pathlib import Path
from typing import Any

import click

from cli.console import print_json, write_text
from cli.decoding_options import OUTPUT, SAMPLING, TOP_OPTIONS
from cli.options import NATURAL, NON_NEGATIVE, POSITIVE_INT, GroupedCommand, RunPath, option
from tinygrad_tf.errors import InputError

TEXT = "Text"

EXAMPLES = (
    'tt generate runs/book --prompt "Once upon"',
    "tt generate runs/book --temperature 0       always the likeliest token",
    "tt generate runs/names --samples 20 --stop '\\n'",
    "cat start.txt | tt generate runs/book --prompt -",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    option("--prompt", "-p", group=TEXT, default="", metavar="TEXT",
           help="Text to continue; - reads it from stdin."),
    option("--max-new-tokens", "-n", group=TEXT, type=NATURAL, default=500, show_default=True,
           help="Most tokens to write."),
    option("--soft-prompt", group=TEXT, type=click.Path(path_type=Path), metavar="FILE",
           help="Soft prompt (vectors before the text) of tt tune-prompt."),
    option("--stop", group=TEXT, multiple=True, metavar="TEXT",
           help="Stop before this text (\\n is a newline); may be repeated."),
    option("--samples", group=TEXT, type=POSITIVE_INT, default=1, show_default=True,
           help="How many texts to write."),
    option("--unknown", group=TEXT, type=click.Choice(["error", "skip"]), default="error",
           show_default=True, help="What to do with characters the model never saw."),
    option("--temperature", "-t", group=SAMPLING, type=NON_NEGATIVE, default=1.0,
           show_default=True,
           help="Below 1: likelier tokens, above 1: more varied; 0: always the likeliest."),
    *TOP_OPTIONS,
    option("--weights", group=OUTPUT, type=click.Choice(["best", "last"]), default="best",
           show_default=True, help="The best checkpoint by validation, or the last."),
    option("--json", group=OUTPUT, is_flag=True, help="One object with every sample."),
]
# fmt: on


@click.command("generate", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    run: Path,
    prompt: str,
    samples: int,
    seed: int | None,
    weights: str,
    soft_prompt: Path | None,
    json: bool,
    stop: tuple[str, ...],
    **options: Any,
) -> None:
    """Generate text with the model of RUN, printed as it is generated."""
    from tinygrad_tf.generate import TextGenerator

    prompt = _read_stdin() if prompt == "-" else prompt
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    options["stop"] = tuple(text.replace("\\n", "\n") for text in stop)
    tuned = {} if soft_prompt is None else {"soft_prompt": soft_prompt}
    generator = TextGenerator.load(run, weights=weights, **tuned)

    # An empty line separates texts that may contain newlines.
    gap = "\n" if "\n" in options["stop"] else "\n\n"
    samples_written = []
    for number in range(samples):
        pieces = generator.stream(prompt, seed=seed + number, **options)
        if json:
            samples_written.append({"seed": seed + number, "text": "".join(pieces)})
            continue
        write_text(prompt)
        for piece in pieces:
            write_text(piece)
        write_text("\n" if number + 1 == samples else gap)
    if json:
        prompts: dict[str, Any] = {name: str(path) for name, path in tuned.items()}
        print_json(
            {"run": str(run), "prompt": prompt, **prompts, **options, "samples": samples_written}
        )


def _read_stdin() -> str:
    """Read all of stdin as UTF-8 text."""
    if sys.stdin is None:
        raise InputError("stdin is closed", 'give the text itself: --prompt "Once upon"')
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise InputError(
            f"the prompt on stdin is not UTF-8: byte 0x{data[fault.start]:02x} "
            f"at offset {fault.start}",
            "convert it with iconv -f latin1 -t utf-8",
        ) from None
