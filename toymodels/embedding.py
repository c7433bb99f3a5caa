"""Words as points: projecting one-hot vectors into few dimensions, and back.

Source document S4, from embeddings to the softmax. The points are those of its 13-word example:
four are quoted there, nine were read off its drawing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinygrad_tf import ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.types import Floats, Ids
from toymodels.onehot import Vocabulary

Decoding = Literal["transpose", "unit columns", "bias"]

QUOTED = {"battery": (0.2, 1.0), "program": (-0.3, 1.1), "down": (-0.9, -0.8), "out": (-0.5, -1.2)}
POINTS: Mapping[str, tuple[float, float]] = QUOTED | {
    "and": (1.2, -0.3),
    "check": (0.3, 0.3),
    "find": (-0.4, -0.2),
    "it": (1.1, -0.5),
    "log": (-0.9, 0.8),
    "please": (0.4, -0.8),
    "ran": (-0.2, 0.5),
    "the": (1.3, -0.7),
    "whether": (1.2, 0.7),
}


@dataclass(frozen=True)
class EmbeddingTable:
    """A vocabulary and its points E (N, d): row w is the point of word w."""

    vocabulary: Vocabulary
    points: Floats

    @classmethod
    def of(cls, points: Mapping[str, tuple[float, ...]]) -> "EmbeddingTable":
        """Make the table of words, sorted, each with its point.

        Raises InputError for points of several lengths.
        """
        if len({len(point) for point in points.values()}) != 1:
            raise InputError("points of several dimensions", "give each word as many numbers")
        vocabulary = Vocabulary.of(points)
        return cls(vocabulary, np.array([points[word] for word in vocabulary.words]))

    def de_embedding(self, decoding: Decoding = "unit columns") -> tuple[Floats, Floats]:
        """Return the projection back (d, N), and a bias (N,), 0 but for one of the three.

        `transpose` is Eᵀ: a word farther out in about the same direction wins over the word
        itself, as |a||b|cos can be more than |a|². `unit columns` compares directions alone.
        `bias` takes |e|²/2 off, which leaves the order of the distances to the points.
        """
        lengths = np.linalg.norm(self.points, axis=1)
        none = np.zeros(len(lengths))
        if decoding == "transpose":
            return self.points.T, none
        if decoding == "bias":
            return self.points.T, -(lengths**2) / 2
        if not lengths.all():
            word = self.vocabulary.words[int(lengths.argmin())]
            raise InputError(f"{word!r} is at the origin and has no direction", "use the bias")
        return (self.points / lengths[:, None]).T, none

    def scores(self, vectors: Floats, decoding: Decoding = "unit columns") -> Floats:
        """Return the scores of each word for vectors (n, d): (n, N)."""
        projection, bias = self.de_embedding(decoding)
        scores: Floats = vectors @ projection + bias
        return scores

    def decoded(self, decoding: Decoding = "unit columns") -> Ids:
        """Return what each word becomes on its way into the space and back (N,): the argmax."""
        back: Ids = self.scores(self.points, decoding).argmax(axis=1)
        return back

    def mistaken(self, decoding: Decoding = "unit columns") -> dict[str, str]:
        """Return the words that come back as another word, with that other word."""
        words = self.vocabulary.words
        back = self.decoded(decoding)
        return {
            word: words[b] for i, (word, b) in enumerate(zip(words, back, strict=True)) if b != i
        }

    def distances(self) -> Floats:
        """Return the distance of each word from each other (N, N)."""
        distances: Floats = np.linalg.norm(self.points[:, None] - self.points[None], axis=-1)
        return distances

    def pairs(self) -> list[tuple[str, str, float]]:
        """Return all pairs of words with their distance, the closest first."""
        first, second = np.triu_indices(len(self.vocabulary), 1)
        distance = self.distances()[first, second]
        words = self.vocabulary.words
        order = np.argsort(distance, kind="stable")
        return [(words[first[i]], words[second[i]], float(distance[i])) for i in order]


def softmax(x: Floats, temperature: float = 1.0) -> Floats:
    """Return e^(x/T) over its sum, along the last axis: the soft form of argmax.

    Raises InputError unless the temperature is above 0.
    """
    if not temperature > 0:
        raise InputError(f"the temperature is {temperature}", "give a number above 0")
    probs: Floats = ops.softmax(x / temperature).data
    return probs


def wiggle(centre: tuple[float, float], positions: int, step: float, radius: float = 1.0) -> Floats:
    """Return a word at positions 0 to `positions` - 1, turned by `step` radians each.

    (positions, 2): centre + radius (cos(step k), sin(step k)).
    """
    angle = step * np.arange(positions)
    return np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def position_products(length: int, d_model: int) -> Floats:
    """Return PE(p)·PE(q) of the sinusoidal table: (length, length).

    It depends on q - p alone, and is d/2 where they are equal: every position turns the word by
    the same distance.
    """
    table = sinusoidal_positions(length, d_model)
    products: Floats = table @ table.T
    return products
