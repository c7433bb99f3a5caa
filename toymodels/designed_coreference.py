"""What `it` is: two layers of attention without training, their weights designed by hand.

`the cat drank the milk because it was hungry`: the first layer lets `it` look at the adjective,
and the residual keeps what it found; the second lets it look at the noun of which that can be
said, the animal if `hungry`, the food if `sweet`. One layer cannot do it: before the adjective has
reached `it`, nothing tells which noun to look for. And no mask may hide what comes later: the
adjective does (source document S2, section 3.1).
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
    """What happens in a sentence of T words; of each weight matrix (T, T) the row is who looks."""

    words: tuple[str, ...]
    vectors: Tensor  # (T, 5), the features of each word
    first: Tensor  # (T, T), weights of layer 1
    residual: Tensor  # (T, 5), vectors + first · vectors · W_v
    second: Tensor  # (T, T), weights of layer 2

    @property
    def it(self) -> int:
        """Where `it` stands."""
        return self.words.index("it")

    @property
    def answer(self) -> str:
        """The word that `it` looks at most in the end."""
        return self.words[int(self.second.data[self.it].argmax())]


def resolve(sentence: str, beta: float = 6.0) -> Resolution:
    """Find what `it` stands for; words without a feature are vectors of zeros.

    `beta` is how strongly a word asks. With one adjective among T words, e^β / (e^β + T - 1) of
    the attention of `it` goes to it; the second layer asks for a noun with β times that weight.
    Raises InputError where the sentence has not one `it`.
    """
    words = tuple(sentence.lower().rstrip(".").split())
    if words.count("it") != 1:
        raise InputError(
            f"{words.count('it')} times 'it' in {sentence!r}", "give a sentence with one"
        )
    x = Tensor(np.array([[float(_MEANING.get(w) == f) for f in FEATURES] for w in words]))
    first = _weights(x, _asking({"it": ("hungry", "sweet")}, beta))
    # Of what is looked at, adjectives alone are passed on: nouns stay where they are.
    w_v = np.diag([float(f in ("hungry", "sweet")) for f in FEATURES])
    residual = x + first @ x @ w_v  # (T, T) (T, 5) (5, 5) -> (T, 5)
    second = _weights(residual, _asking({"hungry": ("animal",), "sweet": ("food",)}, beta))
    return Resolution(words, x, first, residual, second)


def _asking(who: dict[str, tuple[str, ...]], beta: float) -> Tensor:
    """W_q (5, 5): a word with the feature of a row asks for words with those of its columns."""
    w_q = np.zeros((len(FEATURES), len(FEATURES)))
    for asking, asked in who.items():
        for feature in asked:
            w_q[FEATURES.index(asking), FEATURES.index(feature)] = beta
    return Tensor(w_q)


def _weights(x: Tensor, w_q: Tensor) -> Tensor:
    """softmax(x W_q xᵀ), (T, T); without a mask."""
    return ops.softmax(x @ w_q @ x.T, axis=-1)
