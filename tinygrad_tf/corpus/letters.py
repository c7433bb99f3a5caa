"""A topic of the embedded corpus: the letters that Anna writes, and the floor of those alone.

A model of the whole corpus knows how to write them; what it does not know is that nothing else
is wanted. So what a prompt can teach it is known exactly: -ln of the share of the corpus that
such letters make up.
"""

import math
import random

from tinygrad_tf.corpus.grammar import Grammar, Slot
from tinygrad_tf.corpus.stories import Corpus, generate, story_nats
from tinygrad_tf.corpus.story_grammar import RULES, SLOTS
from tinygrad_tf.errors import InputError

AUTHOR = "Anna"
_LETTER = "{hero} wrote to {friend}"

LETTERS = Grammar(
    {**RULES, "story": [way for way in RULES["story"] if _LETTER in way[1]]},
    {**SLOTS, "hero": Slot(tuple(w for w in SLOTS["hero"].words if w.text == AUTHOR))},
)


def draw_letters(count: int = 1500, seed: int = 0, held_out: float = 0.2) -> tuple[Corpus, Corpus]:
    """`count` letters drawn by Anna: those to learn from, and those held out.

    Repetitions stay, as both parts are drawn alike; but no letter is in both, and none that is
    held out is in the embedded corpus either. `nats` are the exact -ln probabilities among such
    letters: the whole corpus gives each of them `topic_nats` more. Raises InputError where count
    is below 2, held_out not between 0 and 1, or nothing is left of either part.
    """
    if count < 2 or not 0 < held_out < 1:
        raise InputError(
            f"{count} letters cannot be drawn with a share of {held_out} held out",
            "give at least 2, and a share between 0 and 1",
        )
    side = dict.fromkeys(generate().stories, 0)
    generator = random.Random(seed)
    parts: tuple[list[tuple[str, float]], ...] = ([], [])
    for _ in range(count):
        letter = LETTERS.draw(generator)
        is_held = side.setdefault(letter.text, int(generator.random() < held_out))
        parts[is_held].append((letter.text, letter.nats))
    if not all(parts):
        raise InputError(f"{count} letters are too few for two parts", "draw more")
    train, held = (Corpus(tuple(t for t, _ in p), tuple(n for _, n in p)) for p in parts)
    return train, held


def letter_nats(letter: str) -> float:
    """The exact -ln probability of a letter among Anna's; InputError where it is none."""
    (derivation,) = LETTERS.parse(letter)
    return derivation.nats


def topic_nats() -> float:
    """-ln of the probability that a story of the corpus is a letter by Anna."""
    letter = LETTERS.draw(random.Random(0))
    return story_nats(letter.text) - letter.nats


def topic_share() -> float:
    """The share of the corpus that is letters by Anna."""
    return math.exp(-topic_nats())
