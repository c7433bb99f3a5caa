"""`tt transcribe`: transcribe WAV files, and show the attention of each word."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import has_colour, has_glyphs, print_json, print_picture, say
from cli.decoding_options import (
    BEAM_OPTIONS,
    OUTPUT,
    WITH_BEAM,
    attention_options,
    check_save,
    decoded_json,
    print_decoded,
    require_with,
)
from cli.options import GroupedCommand, RunPath, option
from cli.sentences import WEIGHTS
from tinygrad_tf.errors import InputError

if TYPE_CHECKING:
    from tinygrad_tf.audio import Wave
    from tinygrad_tf.tasks.decoded_text import DecodedText
    from tinygrad_tf.tasks.transcriber import Listening, Transcriber

TOGETHER = 16  # sounds that are transcribed at a time
SAVED_COLUMNS = 110

EXAMPLES = (
    "tt transcribe runs/speech find.wav",
    "tt transcribe runs/speech find.wav --attention --save attention.svg",
    "tt transcribe runs/speech *.wav --beam 4 --json",
    'tt say "find my files" | tt transcribe runs/speech -',
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["wavs"], metavar="WAV...", nargs=-1, required=True),
    WEIGHTS,
    *BEAM_OPTIONS,
    *attention_options("Show the sound and the attention of each word over it."),
    option("--json", group=OUTPUT, is_flag=True, help="One object a file."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the transcripts."),
]
# fmt: on


@click.command("transcribe", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    run: Path,
    wavs: tuple[str, ...],
    weights: str,
    attention: bool,
    layer: int | None,
    head: int | None,
    save: Path | None,
    force: bool,
    json: bool,
    quiet: bool,
    **search: Any,
) -> None:
    """Transcribe each WAV (- for stdin). Several transcripts follow the name of their file."""
    require_with(ctx, search, "beam", WITH_BEAM)
    attention = attention or save is not None or layer is not None or head is not None
    check_save(save, wavs, force=force, what="sound WAV")
    from tinygrad_tf.tasks.transcriber import Transcriber

    transcriber = Transcriber.load(run, weights)
    waiting = iter(wavs)
    while names := list(islice(waiting, TOGETHER)):
        waves = [read_sound(name) for name in names]
        for name, wave, texts in zip(
            names, waves, _search(transcriber, names, waves, search), strict=True
        ):
            look = None
            if attention:
                look = transcriber.listening(wave, texts[0], layer=layer, head=head)
            if json:
                print_json(_record(name, wave, texts, look))
                continue
            print_decoded(
                texts, name if len(wavs) > 1 else None, scores=search["n_best"] is not None
            )
            if look is not None:
                _show(look, name, save, force=force, quiet=quiet)


def read_sound(name: str) -> "Wave":
    """Read the WAV of a file, or of stdin for `-`; raises InputError if it is malformed."""
    from tinygrad_tf.audio import parse_wav, read_wav

    if name != "-":
        return read_wav(name)
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("there is no sound on stdin", "pipe a WAV into it, or name a file")
    return parse_wav(sys.stdin.buffer.read(), "stdin")


def _search(
    transcriber: "Transcriber",
    names: Sequence[str],
    waves: Sequence["Wave"],
    search: dict[str, Any],
) -> Iterator[list["DecodedText"]]:
    """Return the transcripts of each sound, the best first."""
    called = ["stdin" if name == "-" else name for name in names]
    sounds = [
        transcriber.extract_features(wave, name) for wave, name in zip(waves, called, strict=True)
    ]
    if search["beam"] is None:
        return ([one] for one in transcriber.transcribe(sounds))
    options = {name: value for name, value in search.items() if value is not None}
    return iter(transcriber.beam(sounds, **options))


def _show(look: "Listening", name: str, save: Path | None, *, force: bool, quiet: bool) -> None:
    from cli.pictures.listening import listening_picture, terminal_columns

    if not quiet:
        colour, glyphs = has_colour(sys.stdout), has_glyphs(sys.stdout)
        print_picture(listening_picture(look, terminal_columns(), colour=colour, ascii=not glyphs))
    if save is not None:
        from cli.pictures.export import save as save_picture

        picture = listening_picture(look, SAVED_COLUMNS, colour=save.suffix.lower() != ".txt")
        title = f"tt transcribe {name}"
        save_picture(picture, save, title=title, width=SAVED_COLUMNS, force=force)
        say(f"saved {save}")


def _record(
    name: str, wave: "Wave", texts: list["DecodedText"], look: "Listening | None"
) -> dict[str, Any]:
    """Return a sound's transcripts as one JSON object."""
    transcripts = decoded_json(texts)
    record: dict[str, Any] = {
        "file": name, "seconds": wave.seconds, "rate": wave.rate, **transcripts[0],
        "transcripts": transcripts,
    }  # fmt: skip
    if look is not None:
        record["attention"] = {
            "seconds": look.seconds,
            "words": look.words,
            "weights": look.weights.tolist(),
        }
    return record
