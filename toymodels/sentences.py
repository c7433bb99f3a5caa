"""Toy languages: a few sentences, each with its weight.

The three of source document S4: commands that branch once, two that a second word decides, and two
where the word that decides is far back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Ids
from toymodels.markov import entropy
from toymodels.model import LanguageModel
from toymodels.onehot import Vocabulary, split_words
from toymodels.text import Text

CMD3 = (
    ("Show me my directories please.", 0.2),
    ("Show me my files please.", 0.3),
    ("Show me my photos please.", 0.5),
)
PAIR = (
    ("Check whether the battery ran down please.", 0.4),
    ("Check whether the program ran please.", 0.6),
)
LOGS = (
    ("Check the program log and find out whether it ran please.", 0.5),
    ("Check the battery log and find out whether it ran down please.", 0.5),
)


@dataclass(frozen=True)
class Language:
    """Sentences of numbers, each with its weight. The vocabulary is that of the words alone; the
    number after the last is the end of a sentence."""

    vocabulary: Vocabulary
    sentences: tuple[Ids, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(
        cls,
        sentences: Iterable[tuple[str | Sequence[str], float]],
        vocabulary: Vocabulary | None = None,
    ) -> "Language":
        """Make a language of sentences (texts, or lists of words) and weights, of any sum.

        Raises InputError for no sentences, one without words, a weight that is not a positive
        number, a single word, and words outside of the `vocabulary`, if there is one.
        """
        split = [
            (split_words(sentence) if isinstance(sentence, str) else list(sentence), weight)
            for sentence, weight in sentences
        ]
        if not split:
            raise InputError("there are no sentences", "give at least one, as in `2 show my files`")
        for number, (words, weight) in enumerate(split, 1):
            if not words:
                raise InputError(f"sentence {number} has no words", "write some, or leave it out")
            if not (isfinite(weight) and weight > 0):
                raise InputError(
                    f"sentence {number}, {' '.join(words)!r}, has the weight {weight:g}",
                    "give a number above 0, or leave the sentence out",
                )
        if sum(len(words) for words, _ in split) < 2:
            raise InputError(
                f"{split[0][0][0]!r} is the only word, and what follows what takes at least 2",
                "give a longer sentence",
            )
        vocabulary = vocabulary or Vocabulary.of(word for words, _ in split for word in words)
        ids = tuple(vocabulary.ids(words) for words, _ in split)
        return cls(vocabulary, ids, tuple(float(weight) for _, weight in split))

    @property
    def end(self) -> int:
        """The token that closes a sentence."""
        return len(self.vocabulary)

    @property
    def text(self) -> Text:
        """All sentences, each closed by the end token, with the weight of each token.

        Where all weights are 1 they are left out, so that counts are known to be whole.
        """
        tokens = np.concatenate([part for ids in self.sentences for part in (ids, [self.end])])
        lengths = [len(ids) + 1 for ids in self.sentences]
        weights = None if set(self.weights) == {1.0} else np.repeat(self.weights, lengths)
        return Text(tokens, self.end + 1, self.end, weights)

    @property
    def probabilities(self) -> dict[tuple[int, ...], float]:
        """Each distinct sentence and its share of the weight."""
        whole, shares = sum(self.weights), dict[tuple[int, ...], float]()
        for ids, weight in zip(self.sentences, self.weights, strict=True):
            key = tuple(ids.tolist())
            shares[key] = shares.get(key, 0.0) + weight / whole
        return shares

    @property
    def entropy(self) -> float:
        """The entropy of a sentence, in nats: the lower bound for every model."""
        return entropy(np.array(list(self.probabilities.values())))

    def likelihood(self, model: LanguageModel, sentence: str | Sequence[str]) -> float:
        """Return the probability that a model gives a whole sentence, its end included."""
        return float(np.exp(-self._nats(model, self.vocabulary.ids(sentence))))

    def leaked_mass(self, model: LanguageModel) -> float:
        """Return the probability that a model gives to sentences outside of the language."""
        own = (np.exp(-self._nats(model, np.array(ids))) for ids in self.probabilities)
        return 1.0 - float(sum(own))

    def cross_entropy(self, model: LanguageModel) -> float:
        """Return the mean cost of a sentence under a model, in nats; at least `entropy`."""
        shares = self.probabilities
        return float(sum(p * self._nats(model, np.array(ids)) for ids, p in shares.items()))

    def _nats(self, model: LanguageModel, ids: Ids) -> float:
        return float(model.nats(np.append(ids, self.end)).sum())
