"""`tt translate`: translate sentences with a trained model, and see where it looks."""

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import has_colour, has_glyphs, print_json, print_picture, say, write_text
from cli.options import (
    NATURAL,
    POSITIVE,
    POSITIVE_INT,
    GroupedCommand,
    Number,
    RunPath,
    option,
)
from cli.sentences import UNKNOWN, WEIGHTS, sentences_of
from tinygrad_tf.errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from tinygrad_tf.tasks.translator import CrossAttention, Translation, Translator

SEARCH, SAMPLING, ATTENTION, OUTPUT = "Search", "Sampling", "Attention", "Options"
TOGETHER = 64  # sentences that are translated at a time

EXAMPLES = (
    'tt translate runs/translate "The ball is blue"',
    'tt translate runs/translate "The ball is blue" --attention --save looks.svg',
    "tt translate runs/translate --beam 4 --n-best 3 < sentences.txt",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1),
    option("--beam", group=SEARCH, type=POSITIVE_INT, metavar="N",
           help="Keep the N likeliest beginnings.  [default: 1, greedy]"),
    option("--n-best", group=SEARCH, type=POSITIVE_INT, metavar="N",
           help="Print the N best of the beam, with scores.  [default: 1]"),
    option("--length-penalty", group=SEARCH, type=Number(min=0, max=10),
           help="How much longer texts are favoured; 0 for not.  [default: 0.6]"),
    option("--sample", group=SAMPLING, is_flag=True, help="Draw tokens by their probability."),
    option("--temperature", "-t", group=SAMPLING, type=POSITIVE,
           help="Below 1 likelier, above 1 wilder.  [default: 1]"),
    option("--top-k", group=SAMPLING, type=POSITIVE_INT,
           help="Draw among the K likeliest tokens."),
    option("--top-p", group=SAMPLING, type=Number(min=0, max=1, min_open=True),
           help="Draw among the likeliest tokens that make up this probability."),
    option("--seed", group=SAMPLING, type=NATURAL,
           help="Seed of the draws.  [default: a new one]"),
    option("--attention", group=ATTENTION, is_flag=True,
           help="Show which source words each target word looked at."),
    option("--layer", group=ATTENTION, type=NATURAL,
           help="Decoder layer, from 0.  [default: the last]"),
    option("--head", group=ATTENTION, type=NATURAL,
           help="Head, from 0.  [default: the mean of all]"),
    option("--save", group=OUTPUT, type=click.Path(path_type=Path),
           help="Save the attention as .svg, .html or .txt."),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite the saved file."),
    WEIGHTS,
    UNKNOWN,
    option("--json", group=OUTPUT, is_flag=True, help="One object a sentence."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the translations."),
]
# fmt: on

WITH_BEAM = ("n_best", "length_penalty")
WITH_SAMPLE = ("temperature", "top_k", "top_p", "seed")


@click.command("translate", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    run: Path,
    texts: tuple[str, ...],
    weights: str,
    unknown: Any,
    attention: bool,
    save: Path | None,
    force: bool,
    json: bool,
    quiet: bool,
    layer: int | None,
    head: int | None,
    **search: Any,
) -> None:
    """Translate each TEXT with the model of RUN; without any, each line of stdin."""
    _check(ctx, search)
    attention = attention or save is not None or layer is not None or head is not None
    if save is not None:
        from cli.pictures.export import check_target

        check_target(save, force=force)
        if len(texts) != 1:
            raise InputError("--save is for the attention of one sentence", "give one TEXT")
    from tinygrad_tf.tasks.translator import Translator

    translator = Translator.load(run, weights, unknown)
    if search["seed"] is None:
        search["seed"] = random.SystemRandom().randrange(2**32)
    for number, some in enumerate(sentences_of(texts, TOGETHER)):
        draws = {**search, "seed": search["seed"] + number}
        for text, found in zip(some, _search(translator, some, draws), strict=True):
            look = None
            if attention:
                look = translator.attention(text, found[0], layer=layer, head=head)
            if json:
                print_json(_record(text, found, look))
            else:
                _print(found, scores=search["n_best"] is not None)
            if look is not None and not json and not quiet:
                heads = "mean of all heads" if look.head is None else f"head {look.head}"
                say(f"attention of decoder layer {look.layer}, {heads}: rows written, columns read")
                print_picture(_picture(look, colour=has_colour(sys.stdout)))
            if look is not None and save is not None:
                from cli.pictures.export import save as save_picture

                save_picture(_picture(look), save, title=f"tt translate {text}", force=force)
                say(f"saved {save}")


def _check(ctx: click.Context, search: dict[str, Any]) -> None:
    """Raise UsageError for options that say nothing together."""
    if search["sample"] and search["beam"] is not None:
        raise click.UsageError("--sample and --beam cannot go together", ctx)
    for needed, names in (("beam", WITH_BEAM), ("sample", WITH_SAMPLE)):
        for name in names:
            if search[name] is not None and not search[needed]:
                option_name = name.replace("_", "-")
                raise click.UsageError(f"--{option_name} is for --{needed}", ctx)


def _search(
    translator: "Translator", texts: list[str], search: dict[str, Any]
) -> list[list["Translation"]]:
    """What is found for each sentence, the best first."""
    if search["sample"]:
        given = {n: search[n] for n in WITH_SAMPLE if search[n] is not None}
        return [[one] for one in translator.sample(texts, **given)]
    if search["beam"] is None:
        return [[one] for one in translator.translate(texts)]
    given = {n: search[n] for n in WITH_BEAM if search[n] is not None}
    return translator.beam(texts, beam=search["beam"], **given)


def _print(found: list["Translation"], *, scores: bool) -> None:
    """The translations, one a line, with their scores before them where these are asked for."""
    for one in found:
        write_text((f"{one.score:.4f}\t" if scores else "") + one.text + "\n")


def _record(text: str, found: list["Translation"], look: "CrossAttention | None") -> dict[str, Any]:
    """A sentence and what became of it."""
    told = [
        {"text": h.text, "log_prob": h.log_prob, "score": h.score, "finished": h.finished}
        for h in found
    ]
    record: dict[str, Any] = {"source": text, **told[0], "translations": told}
    if look is not None:
        record["attention"] = {
            "source": look.source,
            "target": look.target,
            "weights": look.weights.tolist(),
            "layer": look.layer,
            "head": look.head,
        }
    return record


def _picture(look: "CrossAttention", colour: bool = True) -> "Text":
    """Rows are what was written, columns what was read."""
    from cli.pictures.heatmap import heatmap

    return heatmap(
        look.weights.tolist(),
        rows=look.target,
        columns=look.source,
        low=0.0,
        high=1.0,
        numbers=len(look.source) <= 12 and len(look.target) <= 12,
        colour=colour,
        ascii=not has_glyphs(sys.stdout),
    )
