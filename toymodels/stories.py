"""The embedded corpus as words, and the places where a word far back decides."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.corpus import decided_spans
from tinygrad_tf.corpus.story_grammar import GRAMMAR
from tinygrad_tf.types import Ids
from toymodels.onehot import Vocabulary
from toymodels.sentences import Language

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Far:
    """A word that is certain: its place in the story, and how many words back the nearest one
    stands that tells it."""

    place: int
    distance: int


def story_words(story: str) -> list[str]:
    """Words and punctuation marks, as they are written."""
    return _WORD.findall(story)


def story_language(stories: Iterable[str], vocabulary: Vocabulary | None = None) -> Language:
    """Stories as sentences of words, each of weight 1."""
    return Language.of(((story_words(story), 1.0) for story in stories), vocabulary)


def far_words(story: str) -> list[Far]:
    """The words that a word named before decides for certain, in reading order.

    Of each decided span the first word, where the grammar allows no other after what stands before
    it. Its distance is to the latest word that tells it, be it a name or a pronoun that agrees.
    """
    begins = [match.start() for match in _WORD.finditer(story)]
    latest: dict[int, int] = {}
    found = []
    for span in decided_spans(story):
        place = begins.index(span.start)
        told = latest.get(span.source_start, _place_of(begins, span.source_end - 1))
        latest[span.source_start] = place
        if len(next_words(story[: span.start])) == 1:
            found.append(Far(place, place - told))
    return found


def far_places(stories: Iterable[str], beyond: int) -> Ids:
    """Where in the tokens of `story_language(stories).text` the far words of more than `beyond`
    words are."""
    places, start = [], 0
    for story in stories:
        places += [start + far.place for far in far_words(story) if far.distance > beyond]
        start += len(story_words(story)) + 1
    return np.array(places, np.int64)


def next_words(beginning: str) -> set[str]:
    """Every word that may follow the beginning of a story; `` where the story may end.

    A beginning stops before a word, behind the space.
    """
    found = set()
    ways = [GRAMMAR.start()]
    while ways:
        for way in GRAMMAR.successors(ways.pop()):
            if not (way.text.startswith(beginning) or beginning.startswith(way.text)):
                continue
            match = _WORD.match(way.text, len(beginning))
            if match and (match.end() < len(way.text) or not way.pending):
                found.add(match.group())
            elif way.pending:
                ways.append(way)
            else:
                found.add("")
    return found


def _place_of(begins: list[int], character: int) -> int:
    """The word that holds a character."""
    return int(np.searchsorted(begins, character, side="right")) - 1
