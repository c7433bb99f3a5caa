"""The embedded corpus: stories drawn from a known grammar, and the floor no model can pass.

The grammar gives every story its exact probability. So the cross-entropy that the true source has
on a text is computed, not estimated: the floor of that text (Shannon 1948).
"""

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tinygrad_tf.corpus.story_grammar import GRAMMAR
from tinygrad_tf.errors import InputError

DEFAULT_CHARS = 460_000


@dataclass(frozen=True)
class Floor:
    """The cost of a text under the true source: `nats` in all, over `chars` characters.

    The newline that ends each story is one of the characters; that a story ends costs nothing
    more, since the grammar says where.
    """

    stories: int
    chars: int
    nats: float

    @property
    def nats_per_char(self) -> float:
        """Cross-entropy in nats per character; 0 for no text."""
        return self.nats / self.chars if self.chars else 0.0

    @property
    def bits_per_char(self) -> float:
        """Cross-entropy in bits per character; 0 for no text."""
        return self.nats_per_char / math.log(2)


@dataclass(frozen=True)
class Corpus:
    """Stories, one a line, and the exact -ln probability of each in `nats`."""

    stories: tuple[str, ...]
    nats: tuple[float, ...]

    @property
    def text(self) -> str:
        """The stories, each followed by a newline."""
        return "".join(f"{story}\n" for story in self.stories)

    @property
    def floor(self) -> Floor:
        """The floor of the whole text."""
        return _floor(self.stories, self.nats)


class Decided(NamedTuple):
    """Characters `start` to `end` (exclusive) follow from the word at `source_start` for certain.

    The word in between cannot settle them: `down` or nothing follows `ran`, as the log was a
    battery's or a program's.
    """

    start: int
    end: int
    source_start: int
    source_end: int

    @property
    def distance(self) -> int:
        """Characters from the end of the deciding word to the decided one."""
        return self.start - self.source_end


def generate(chars: int = DEFAULT_CHARS, seed: int = 0) -> Corpus:
    """Draw stories up to the first story end at or past `chars` characters.

    The same `seed` gives the same text on every platform and Python version. Raises InputError
    where `chars` is not a positive whole number or `seed` not a whole number from 0 up.
    """
    drawn = list(draw_stories(chars, seed))
    return Corpus(tuple(text for text, _ in drawn), tuple(nats for _, nats in drawn))


def draw_stories(chars: int = DEFAULT_CHARS, seed: int = 0) -> Iterator[tuple[str, float]]:
    """Yield the stories of `generate` one by one, each with its nats, in constant memory."""
    if isinstance(chars, bool) or not isinstance(chars, int) or chars < 1:
        raise InputError(
            f"a corpus of {chars} characters cannot be drawn",
            f"give a whole number of characters from 1 up, as {DEFAULT_CHARS}",
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"the seed is {seed}", "give a whole number from 0 up")
    return _draw_stories(chars, random.Random(seed))


def _draw_stories(chars: int, generator: random.Random) -> Iterator[tuple[str, float]]:
    written = 0
    while written < chars:
        story = GRAMMAR.draw(generator)
        yield story.text, story.nats
        written += len(story.text) + 1


def story_nats(story: str) -> float:
    """The exact -ln probability of a story, without its newline.

    Sums over all derivations, though the grammar has only one for each story. Raises InputError
    where the grammar cannot have produced it.
    """
    costs = [derivation.nats for derivation in GRAMMAR.parse(story)]
    least = min(costs)
    return least - math.log(math.fsum(math.exp(least - cost) for cost in costs))


def floor(stories: Iterable[str]) -> Floor:
    """The floor of any stories of the grammar, such as a held-out part of a corpus.

    Raises InputError where the grammar cannot have produced one of them.
    """
    stories = tuple(stories)
    return _floor(stories, tuple(story_nats(story) for story in stories))


def decided_spans(story: str) -> list[Decided]:
    """Return the spans that repeat, or agree with, a word named before, in reading order.

    Raises InputError where the grammar cannot have produced the story.
    """
    source: dict[str, tuple[int, int]] = {}
    spans = []
    for mention in GRAMMAR.parse(story)[0].mentions:
        if mention.slot in source:
            spans.append(Decided(mention.start, mention.end, *source[mention.slot]))
        elif GRAMMAR.slots[mention.slot].is_named_by(mention.form):
            source[mention.slot] = (mention.start, mention.end)
    return spans


def _floor(stories: tuple[str, ...], nats: tuple[float, ...]) -> Floor:
    return Floor(len(stories), sum(len(story) + 1 for story in stories), math.fsum(nats))
