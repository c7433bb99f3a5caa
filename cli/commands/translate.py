"""`tt translate`: translate sentences with a trained model, and show its attention."""

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import has_colour, has_glyphs, print_json, print_picture, say
from cli.decoding_options import (
    BEAM_OPTIONS,
    OUTPUT,
    SAMPLING,
    TOP_OPTIONS,
    WITH_BEAM,
    attention_options,
    check_save,
    decoded_json,
    print_decoded,
    require_with,
)
from cli.options import POSITIVE, GroupedCommand, RunPath, option
from cli.sentences import UNKNOWN, WEIGHTS, sentences_of

if TYPE_CHECKING:
    from rich.text import Text

    from tinygrad_tf.tasks.decoded_text import DecodedText
    from tinygrad_tf.tasks.translator import CrossAttention, Translator

TOGETHER = 64  # sentences that are translated at a time

EXAMPLES = (
    'tt translate runs/translate "The ball is blue"',
    'tt translate runs/translate "The ball is blue" --attention --save attention.svg',
    "tt translate runs/translate --beam 4 --n-best 3 < sentences.txt",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1),
    *BEAM_OPTIONS,
    option("--sample", group=SAMPLING, is_flag=True, help="Draw tokens by their probability."),
    option("--temperature", "-t", group=SAMPLING, type=POSITIVE,
           help="Below 1: likelier tokens, above 1: more varied.  [default: 1]"),
    *TOP_OPTIONS,
    *attention_options("Show the attention of each target word over the source words."),
    WEIGHTS,
    UNKNOWN,
    option("--json", group=OUTPUT, is_flag=True, help="One object a sentence."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the translations."),
]
# fmt: on

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
    check_save(save, texts, force=force, what="sentence TEXT")
    from tinygrad_tf.tasks.translator import Translator

    translator = Translator.load(run, weights, unknown=unknown)
    if search["seed"] is None:
        search["seed"] = random.SystemRandom().randrange(2**32)
    for number, some in enumerate(sentences_of(texts, TOGETHER)):
        draws = {**search, "seed": search["seed"] + number}
        for text, translations in zip(some, _search(translator, some, draws), strict=True):
            look = None
            if attention:
                look = translator.attention(text, translations[0], layer=layer, head=head)
            if json:
                print_json(_record(text, translations, look))
            else:
                print_decoded(translations, scores=search["n_best"] is not None)
            if look is not None and not json and not quiet:
                heads = "mean of all heads" if look.head is None else f"head {look.head}"
                say(f"attention of decoder layer {look.layer}, {heads}: rows written, columns read")
                print_picture(_picture(look, colour=has_colour(sys.stdout)))
            if look is not None and save is not None:
                from cli.pictures.export import save as save_picture

                save_picture(_picture(look), save, title=f"tt translate {text}", force=force)
                say(f"saved {save}")


def _check(ctx: click.Context, search: dict[str, Any]) -> None:
    """Raise UsageError for options that cannot be combined."""
    if search["sample"] and search["beam"] is not None:
        raise click.UsageError("--sample and --beam cannot go together", ctx)
    require_with(ctx, search, "beam", WITH_BEAM)
    require_with(ctx, search, "sample", WITH_SAMPLE)


def _search(
    translator: "Translator", texts: list[str], search: dict[str, Any]
) -> list[list["DecodedText"]]:
    """Return the translations of each sentence, the best first."""
    if search["sample"]:
        options = {n: search[n] for n in WITH_SAMPLE if search[n] is not None}
        return [[one] for one in translator.sample(texts, **options)]
    if search["beam"] is None:
        return [[one] for one in translator.translate(texts)]
    options = {n: search[n] for n in WITH_BEAM if search[n] is not None}
    return translator.beam(texts, beam=search["beam"], **options)


def _record(text: str, texts: list["DecodedText"], look: "CrossAttention | None") -> dict[str, Any]:
    """Return a sentence and its translations as one JSON object."""
    translations = decoded_json(texts)
    record: dict[str, Any] = {"source": text, **translations[0], "translations": translations}
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
    """Draw the attention as a heatmap: a row a target word, a column a source word."""
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
