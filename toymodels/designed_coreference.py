"""Coreference of `it`: two layers of attention without training, their weights designed by hand.

`the cat drank the milk because it was hungry`: in the first layer `it` attends to the adjective,
and the residual keeps its feature; in the second `it` attends to the noun that fits the adjective,
the animal if `hungry`, the food if `sweet`. One layer cannot do it: before the feature of the
adjective is at `it`, both nouns are alike. And no causal mask may be used: the adjective comes
later (source document S2, section 3.1).
"""

from dataclasses import dataclass

import numpy as np

from tinygrad_tf import Tensor, ops
from tinygrad_tf.errors import InputError

FEATURES = ("animal", "food", "hungry", "sweet", "it")
SENTENCES = (
    "the cat drank the milk because it was hungry",
    "the cat drank the milk because it was sweet",
)
_MEANING = {"cat": "animal", "milk": "food", "hungry": "hungry", "sweet": "sweet", "it": "it"}


@dataclass(frozen=True)
class Resolution:
    """All values for a sentence of T words; each row of the weights (T, T) belongs to a query."""

    words: tuple[str, ...]
    vectors: Tensor  # (T, 5), the features of each word
    first: Tensor  # (T, T), weights of layer 1
    residual: Tensor  # (T, 5), vectors + first · vectors · W_v
    second: Tensor  # (T, T), weights of layer 2

    @property
    def it(self) -> int:
        """The position of `it`."""
        return self.words.index("it")

    @property
    def answer(self) -> str:
        """The word that `it` attends to most in layer 2."""
        return self.words[int(self.second.data[self.it].argmax())]


def resolve(sentence: str, beta: float = 6.0) -> Resolution:
    """Find the noun that `it` refers to; words without a feature are vectors of zeros.

    `beta` is the strength of a query. With one adjective among T words, e^β / (e^β + T - 1) of
    the attention of `it` goes to it; the query of the second layer is β times that weight.
    Raises InputError unless the sentence has exactly one `it`.
    """
    words = tuple(sentence.lower().rstrip(".").split())
    if words.count("it") != 1:
        raise InputError(
            f"{words.count('it')} times 'it' in {sentence!r}", "give a sentence with one"
        )
    x = Tensor(np.array([[float(_MEANING.get(w) == f) for f in FEATURES] for w in words]))
    first = _weights(x, _query_matrix({"it": ("hungry", "sweet")}, beta))
    # The values of adjectives alone are passed on, not those of nouns.
    w_v = np.diag([float(f in ("hungry", "sweet")) for f in FEATURES])
    residual = x + first @ x @ w_v  # (T, T) (T, 5) (5, 5) -> (T, 5)
    second = _weights(residual, _query_matrix({"hungry": ("animal",), "sweet": ("food",)}, beta))
    return Resolution(words, x, first, residual, second)


def _query_matrix(keys: dict[str, tuple[str, ...]], beta: float) -> Tensor:
    """Return W_q (5, 5): the feature of a row selects words with the features of its columns."""
    w_q = np.zeros((len(FEATURES), len(FEATURES)))
    for query, features in keys.items():
        for feature in features:
            w_q[FEATURES.index(query), FEATURES.index(feature)] = beta
    return Tensor(w_q)


def _weights(x: Tensor, w_q: Tensor) -> Tensor:
    """Return softmax(x W_q xᵀ), (T, T); without a mask."""
    return ops.softmax(x @ w_q @ x.T, axis=-1)
