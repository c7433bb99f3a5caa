"""The embedded corpus as words, and the far words: those that a word far back decides."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.corpus import decided_spans
from tinygrad_tf.corpus.story_grammar import GRAMMAR
from tinygrad_tf.text.word_tokenizer import WORD
from tinygrad_tf.types import Ids
from toymodels.onehot import Vocabulary
from toymodels.sentences import Language


@dataclass(frozen=True)
class FarWord:
    """A word that is certain: its place in the story, and its distance in words from the nearest
    word that determines it."""

    place: int
    distance: int


def story_words(story: str) -> list[str]:
    """Return words and punctuation marks, as they are written."""
    return WORD.findall(story)


def story_language(stories: Iterable[str], vocabulary: Vocabulary | None = None) -> Language:
    """Return stories as sentences of words, each of weight 1."""
    return Language.of(((story_words(story), 1.0) for story in stories), vocabulary)


def far_words(story: str) -> list[FarWord]:
    """Find the words that an earlier word decides for certain, in reading order.

    They are the first words of the decided spans, where the grammar allows no other word. The
    distance is to the latest word that determines it, a name or a pronoun that agrees.
    """
    begins = [match.start() for match in WORD.finditer(story)]
    latest: dict[int, int] = {}
    words = []
    for span in decided_spans(story):
        place = begins.index(span.start)
        source = latest.get(span.source_start, _place_of(begins, span.source_end - 1))
        latest[span.source_start] = place
        if len(next_words(story[: span.start])) == 1:
            words.append(FarWord(place, place - source))
    return words


def far_places(stories: Iterable[str], beyond: int) -> Ids:
    """Return the places, in the tokens of `story_language(stories).text`, of the far words with a
    distance of more than `beyond` words."""
    places, start = [], 0
    for story in stories:
        places += [start + far.place for far in far_words(story) if far.distance > beyond]
        start += len(story_words(story)) + 1
    return np.array(places, np.int64)


def next_words(beginning: str) -> set[str]:
    """Return every word that may follow the beginning of a story; `` where the story may end.

    A beginning stops before a word, behind the space.
    """
    words = set()
    ways = [GRAMMAR.start()]
    while ways:
        for way in GRAMMAR.successors(ways.pop()):
            if not (way.text.startswith(beginning) or beginning.startswith(way.text)):
                continue
            match = WORD.match(way.text, len(beginning))
            if match and (match.end() < len(way.text) or not way.pending):
                words.add(match.group())
            elif way.pending:
                ways.append(way)
            else:
                words.add("")
    return words


def _place_of(begins: list[int], character: int) -> int:
    """Return the word that holds a character."""
    return int(np.searchsorted(begins, character, side="right")) - 1
