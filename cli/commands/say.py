"""`tt say`: synthesise speech with the built-in voice, as a WAV."""

import random
import sys
from pathlib import Path

import click

from cli.bytes_io import write_bytes
from cli.console import is_terminal, say
from cli.options import NATURAL, GroupedCommand, Number, option
from tinygrad_tf.errors import InputError

OUTPUT = "Output"

EXAMPLES = (
    'tt say "find my files" --out find.wav',
    'tt say "show me my photos please" --seed 7 --snr 10 --out noisy.wav',
    'tt say "stop the engine" | tt transcribe runs/speech -',
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["text"]),
    option("--seed", type=NATURAL, help="Seed of the voice and its speech.  [default: a new one]"),
    option("--snr", type=Number(min=-20, max=100), default=30.0, show_default=True, metavar="DB",
           help="Signal-to-noise ratio in decibels."),
    option("--out", group=OUTPUT, type=click.Path(path_type=Path), metavar="WAV",
           help="File to write.  [default: stdout, unless it is a terminal]"),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite the file."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Print nothing about the voice."),
]
# fmt: on


@click.command("say", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    text: str,
    seed: int | None,
    snr: float,
    out: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Say TEXT with a random voice, as a WAV of 16 bits at 16,000 Hz; it has some 30 words."""
    if out is None and is_terminal(sys.stdout):
        raise click.UsageError("a WAV cannot be shown in a terminal: give --out, or pipe it", ctx)
    if out is not None and out.exists() and not force:
        raise InputError(f"{out} exists already", "name another file or add --force")
    import numpy as np

    from tinygrad_tf.audio import RATE, draw_speaker, speak, wav_bytes
    from tinygrad_tf.storage.atomic import write_atomically
    from tinygrad_tf.tasks.recordings import spoken_form

    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    generator = np.random.default_rng(seed)
    speaker = draw_speaker(generator)
    samples = speak(spoken_form(text), speaker, generator, snr_db=snr)
    content = wav_bytes(samples, RATE)
    if out is None:
        write_bytes(content)
    else:
        write_atomically(out, content)
    if not quiet:
        where = "" if out is None else f" in {out}"
        say(
            f"{len(samples) / RATE:.2f} s{where}, by a voice of {speaker.pitch:.0f} Hz; "
            f"again: --seed {seed}"
        )
