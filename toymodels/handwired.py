"""A transformer without training: its weights are put together from counted sentences.

One head over one-hot tokens. The query of the current word, through W_q, selects the words that
decide what follows it; `masks.selective` learns them. The residual keeps the current word, a
layer with bias and ReLU makes the features (earlier word, current word), and the transition
matrix says what follows each (source document S4; Vaswani et al. 2017, eq. 1 without the scaling,
and eq. 2).
"""

from dataclasses import dataclass

import numpy as np

from tinygrad_tf import Tensor, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids
from toymodels.masks import selective
from toymodels.onehot import one_hot
from toymodels.sentences import Language


@dataclass(frozen=True)
class ForwardPass:
    """The intermediate values at each of T positions."""

    tokens: Tensor  # (T, V), one-hot
    scores: Tensor  # (T, T), -inf where a word would look ahead
    weights: Tensor  # (T, T), rows sum to 1
    residual: Tensor  # (T, V), tokens + weights · tokens
    before_relu: Tensor  # (T, F)
    features: Tensor  # (T, F)
    logits: Tensor  # (T, V)


@dataclass(frozen=True)
class HandWired:
    """The weights, for V words and F features; `features` are their (earlier, current) words."""

    features: tuple[tuple[int, int], ...]
    w_q: Tensor  # (V, V), beta where the word of a row selects that of a column
    w_features: Tensor  # (V, F)
    b_features: Tensor  # (F,)
    w_transition: Tensor  # (F, V)

    def forward(self, ids: Ids) -> ForwardPass:
        """Compute all values of a sentence (T,). Raises InputError where it is empty."""
        if not len(ids):
            raise InputError("there is no word to start from", "give at least one")
        x = Tensor(one_hot(ids, self.w_q.shape[0]))
        ahead = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
        scores = x @ self.w_q @ x.T + ahead  # (T, V) (V, V) (V, T) -> (T, T)
        weights = ops.softmax(scores, axis=-1)
        residual = x + weights @ x  # (T, T) (T, V) -> (T, V)
        before_relu = residual @ self.w_features + self.b_features
        features = ops.relu(before_relu)
        return ForwardPass(
            x, scores, weights, residual, before_relu, features, features @ self.w_transition
        )

    @property
    def earlier_words(self) -> list[int]:
        """The earlier words of the features, in order."""
        return sorted({earlier for earlier, _ in self.features})

    def feature_matrix(self) -> Floats:
        """Return the rows of the words that matter: earlier, then current ones, the bias last."""
        currents = sorted({current for _, current in self.features} - set(self.earlier_words))
        rows: Floats = self.w_features.data[[*self.earlier_words, *currents]]
        return np.vstack([rows, self.b_features.data])


def wire(language: Language, beta: float = 10.0) -> HandWired:
    """Make the weights for a language from the counts of its sentences.

    `beta` is the strength of the query: with 0 the attention is the same on all words. A feature
    needs its earlier word, its current word, and none of the other words that the query selects:
    1, 1 and -1, with bias -1. Raises InputError where no word far back decides anything.
    """
    votes = selective(language.text)
    words = len(language.vocabulary)
    features = [(earlier, context[0], row) for earlier, context, row in votes.pairs()]
    features = [(u, c, row) for u, c, row in features if u < words and c < words]
    if not features:
        raise InputError(
            "no earlier word decides what follows in these sentences",
            "give two that differ in a word and, further on, in what follows a word they share",
        )
    w_q, w_features = np.zeros((words, words)), np.zeros((words, len(features)))
    w_transition = np.zeros((len(features), words))
    for f, (earlier, current, row) in enumerate(features):
        w_q[current, earlier] = beta
        w_features[[u for u, c, _ in features if c == current], f] = -1
        w_features[[earlier, current], f] = 1
        for token, share in row.items():
            if token < words:
                w_transition[f, token] = share
    return HandWired(
        tuple((earlier, current) for earlier, current, _ in features),
        Tensor(w_q),
        Tensor(w_features),
        Tensor(np.full(len(features), -1.0)),
        Tensor(w_transition),
    )
