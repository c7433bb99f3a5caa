"""Options and output that commands which decode share: beam search, sampling, attention."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import write_text
from cli.options import NATURAL, POSITIVE_INT, Number, option
from tinygrad_tf.errors import InputError

if TYPE_CHECKING:
    from tinygrad_tf.tasks.decoded_text import DecodedText

SEARCH, SAMPLING, ATTENTION, OUTPUT = "Search", "Sampling", "Attention", "Output"
WITH_BEAM = ("n_best", "length_penalty")

# fmt: off
BEAM_OPTIONS: list[click.Parameter] = [
    option("--beam", group=SEARCH, type=POSITIVE_INT, metavar="N",
           help="Keep the N likeliest beginnings.  [default: 1, greedy]"),
    option("--n-best", group=SEARCH, type=POSITIVE_INT, metavar="N",
           help="Print the N best of the beam, with scores.  [default: 1]"),
    option("--length-penalty", group=SEARCH, type=Number(min=0, max=10),
           help="How much longer texts are favoured; 0 for not.  [default: 0.6]"),
]

TOP_OPTIONS: list[click.Parameter] = [
    option("--top-k", group=SAMPLING, type=POSITIVE_INT,
           help="Choose among the K likeliest tokens."),
    option("--top-p", group=SAMPLING, type=Number(min=0, max=1, min_open=True),
           help="Choose among the likeliest tokens that make up this probability."),
    option("--seed", group=SAMPLING, type=NATURAL,
           help="Seed of the draws.  [default: a new one]"),
]


def attention_options(help: str) -> list[click.Parameter]:
    """--attention with this help text, and the options that select and save it."""
    return [
        option("--attention", group=ATTENTION, is_flag=True, help=help),
        option("--layer", group=ATTENTION, type=NATURAL,
               help="Decoder layer, from 0.  [default: the last]"),
        option("--head", group=ATTENTION, type=NATURAL,
               help="Head, from 0.  [default: the mean of all]"),
        option("--save", group=OUTPUT, type=click.Path(path_type=Path),
               help="Save the attention as .svg, .html or .txt."),
        option("--force", group=OUTPUT, is_flag=True, help="Overwrite the saved file."),
    ]
# fmt: on


def require_with(ctx: click.Context, search: dict[str, Any], needed: str, names: Any) -> None:
    """Raise UsageError for options in `names` that have no effect without `needed`."""
    for name in names:
        if search[name] is not None and not search[needed]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --{needed}", ctx)


def check_save(save: Path | None, inputs: Sequence[str], *, force: bool, what: str) -> None:
    """Raise InputError if the attention cannot be saved, or there is more than one input."""
    if save is not None:
        from cli.pictures.export import check_target

        check_target(save, force=force)
        if len(inputs) != 1:
            sort, name = what.split()
            raise InputError(f"--save is for the attention of one {sort}", f"give one {name}")


def print_decoded(texts: Sequence["DecodedText"], name: str | None = None, *, scores: bool) -> None:
    """Print decoded texts, one a line, after the `name` of the input and the score where wanted."""
    for text in texts:
        cells = [] if name is None else [name]
        cells += [f"{text.score:.4f}"] if scores else []
        write_text("\t".join([*cells, text.text]) + "\n")


def decoded_json(texts: Sequence["DecodedText"]) -> list[dict[str, Any]]:
    """Return decoded texts as JSON objects."""
    return [
        {"text": h.text, "log_prob": h.log_prob, "score": h.score, "finished": h.finished}
        for h in texts
    ]
