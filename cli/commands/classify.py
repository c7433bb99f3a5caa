"""`tt classify`: label texts with a trained encoder."""

from pathlib import Path
from typing import Any

import click

from cli.console import print_json, write_text
from cli.options import POSITIVE_INT, GroupedCommand, RunPath, option
from cli.sentences import UNKNOWN, WEIGHTS, print_ranked, sentences_of

TOGETHER = 128  # texts that are labelled at a time

EXAMPLES = (
    'tt classify runs/classifier "the food was good but the service was awful"',
    "tt classify runs/reviews --top 1 < texts.txt",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1),
    option("--top", type=POSITIVE_INT, metavar="K", help="Only the K likeliest labels."),
    WEIGHTS,
    UNKNOWN,
    option("--json", is_flag=True, help="One object a text."),
]
# fmt: on


@click.command("classify", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    run: Path, texts: tuple[str, ...], top: int | None, weights: str, unknown: Any, json: bool
) -> None:
    """Print the labels of each TEXT, or of each line of stdin, with their probabilities.

    The likeliest comes first. A model of numbers prints its number.
    """
    from tinygrad_tf.tasks.text_classifier import TextClassifier

    labeller = TextClassifier.load(run, weights)
    for some in sentences_of(texts, TOGETHER):
        for labelled in labeller.label(some, unknown):
            labels = labelled.labels[:top]
            if json:
                record: dict[str, Any] = {"text": labelled.text}
                if labelled.number is None:
                    record |= {"label": labels[0][0], "probs": dict(labels)}
                else:
                    record["number"] = labelled.number
                print_json(record)
            elif labelled.number is not None:
                write_text(f"{labelled.number:.6g}\n")
            else:
                print_ranked(labels)
