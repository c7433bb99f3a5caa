"""The embedded corpus: readable stories whose true entropy, the floor, is known exactly."""

from tinygrad_tf.corpus.stories import (
    DEFAULT_CHARS,
    Corpus,
    Decided,
    Floor,
    decided_spans,
    draw_stories,
    floor,
    generate,
    story_nats,
)

__all__ = [
    "DEFAULT_CHARS",
    "Corpus",
    "Decided",
    "Floor",
    "decided_spans",
    "draw_stories",
    "floor",
    "generate",
    "story_nats",
]
