"""`tt coreference`: what `it` is, by attention that is learned, beside attention by design."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.console import answer, has_colour, has_glyphs, print_json, print_picture, say, write_text
from cli.options import NATURAL, GroupedCommand, option
from cli.task_lines import percent
from tinygrad_tf.train.config import DEFAULT_SEED

if TYPE_CHECKING:
    from rich.text import Text

EXAMPLES = (
    "tt coreference                                  two sentences, a few seconds of training",
    'tt coreference "the dog ate the bread because it was salty"',
    "tt coreference --save it.svg",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["sentences"], metavar="[SENTENCE]...", nargs=-1),
    option("--seed", type=NATURAL, default=DEFAULT_SEED, show_default=True,
           help="Seed of the training."),
    option("--save", type=click.Path(path_type=Path), help="Save as .svg, .html or .txt."),
    option("--force", is_flag=True, help="Overwrite the saved file."),
    option("--json", is_flag=True, help="One object with everything."),
    option("--quiet", "-q", is_flag=True, help="Only sentences and answers."),
]
# fmt: on


@click.command("coreference", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    sentences: tuple[str, ...], seed: int, save: Path | None, force: bool, json: bool, quiet: bool
) -> None:
    """Train a small encoder to say what "it" is, and show where it looks from there.

    Beside it stand two layers of attention whose weights were designed, not learned.
    """
    if save is not None:
        from cli.pictures.export import check_target

        check_target(save, force=force)
    from tinygrad_tf.tasks.coreference import CoreferenceModel
    from toymodels.designed_coreference import SENTENCES

    demo = CoreferenceModel(seed=seed)
    # Read before the training too: whoever misspelt a word should not wait for it.
    demo.read(sentences)
    for event in demo.run():
        if event.event == "eval" and not quiet and not json:
            losses = event.as_json()
            say(f"step {losses['step']:,}: held out {losses['val_loss']:.4f} nats per sentence")
    record = _record(demo, sentences or SENTENCES)
    if json:
        print_json(record)
    elif quiet:
        for one in record["learned"]:
            write_text(f"{' '.join(one['words'])}\t{one['answer']}\n")
    else:
        _print(record)
    if save is not None:
        from rich.console import Group

        from cli.pictures.export import save as save_picture

        pictures = Group(*(_picture(one) for one in record["learned"] + record["designed"]))
        save_picture(pictures, save, title="tt coreference", force=force)
        say(f"saved {save}")


def _record(demo: Any, sentences: tuple[str, ...]) -> dict[str, Any]:
    """Return the answers to held-out sentences, to these sentences, and to the designed ones."""
    from dataclasses import asdict

    from toymodels.designed_coreference import SENTENCES, resolve

    judged = demo.judge()
    learned = [
        {
            "words": reading.words,
            "answer": reading.answer,
            "prob": reading.prob,
            "weights": reading.weights[judged.layer, judged.head].tolist(),
        }
        for reading in demo.read(sentences)
    ]
    designed = []
    for sentence in SENTENCES:
        done = resolve(sentence)
        weights = [layer.data[done.it].tolist() for layer in (done.first, done.second)]
        designed.append(
            {"words": done.words, "answer": done.answer, "first": weights[0], "weights": weights[1]}
        )
    return {"held_out": asdict(judged), "learned": learned, "designed": designed}


def _print(record: dict[str, Any]) -> None:
    """Every sentence with the attention from `it` under it, and the answer."""
    judged = record["held_out"]
    answer(
        f"learned: right in {percent(judged['accuracy'])} of {judged['sentences']} sentences held "
        f"out; in {percent(judged['above_half'])} a head gives the noun over half of its attention"
    )
    answer(f"attention from it in layer {judged['layer']}, head {judged['head']}:")
    for one in record["learned"]:
        print_picture(_picture(one, colour=has_colour(sys.stdout)))
        answer(f"it = {one['answer']} ({one['prob']:.4f})\n")
    answer("designed: two layers without training; attention from it in the second:")
    for one in record["designed"]:
        print_picture(_picture(one, colour=has_colour(sys.stdout)))
        answer(
            f"it = {one['answer']} ({max(one['weights']):.16f}), after the first layer gave "
            f"{one['words'][-1]} {max(one['first']):.16f}\n"
        )


def _picture(one: dict[str, Any], colour: bool = True) -> "Text":
    """The attention from `it` as a row."""
    from cli.pictures.heatmap import heatmap

    return heatmap(
        [one["weights"]],
        rows=["it"],
        columns=one["words"],
        low=0.0,
        high=1.0,
        numbers=True,
        colour=colour,
        ascii=not has_glyphs(sys.stdout),
    )
