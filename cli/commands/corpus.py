"""`tt corpus`: print the built-in corpus, or its figures."""

import click

from cli.console import print_json, write_text
from cli.options import NATURAL, POSITIVE_INT, GroupedCommand, option

EXAMPLES = (
    "tt corpus > stories.txt",
    "tt corpus --chars 10000 --seed 7",
    "tt corpus --json                            its sizes and its floor",
)

OPTIONS: list[click.Parameter] = [
    option("--chars", type=POSITIVE_INT, help="About how many characters.  [default: 460,000]"),
    option("--seed", type=NATURAL, default=0, show_default=True, help="Seed of the stories."),
    option(
        "--json", is_flag=True, help="One object with its sizes and its floor, without the text."
    ),
]


@click.command("corpus", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(chars: int | None, seed: int, json: bool) -> None:
    """Print the corpus that "tt train-gpt" trains on when it is given no text.

    Its stories come from a grammar with known probabilities, so the least cross-entropy that any
    model can reach on them (the floor, in bits per character) is known exactly.
    """
    from tinygrad_tf.corpus import DEFAULT_CHARS, Floor, draw_stories

    stories = draw_stories(chars or DEFAULT_CHARS, seed)
    if not json:
        for story, _ in stories:
            write_text(story + "\n")
        return
    count, written, nats, vocabulary = 0, 0, 0.0, {"\n"}
    for story, cost in stories:
        count, written, nats = count + 1, written + len(story) + 1, nats + cost
        vocabulary |= set(story)
    floor = Floor(count, written, nats)
    print_json(
        {
            "seed": seed,
            "stories": floor.stories,
            "chars": floor.chars,
            "vocab_size": len(vocabulary),
            "floor_nats": floor.nats,
            "floor_nats_per_char": floor.nats_per_char,
            "floor_bits_per_char": floor.bits_per_char,
        }
    )
