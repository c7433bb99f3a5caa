"""Texts as token numbers, with the places where sentences begin: the data of every model here."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Floats, Ids, Mask


@dataclass(frozen=True)
class Text:
    """Tokens (N,) below `vocab_size`, in reading order.

    `end` is the token that closes a sentence, if the text is made of sentences: then no model looks
    back past it. `weights` (N,) says how much each token counts, 1 if not given. Raises InputError
    for fewer than two tokens, and for an invalid token or weight.
    """

    tokens: Ids
    vocab_size: int
    end: int | None = None
    weights: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", checked_tokens(self.tokens, self.vocab_size))
        if len(self.tokens) < 2:
            raise InputError(
                f"the text has {len(self.tokens)} token{'' if len(self.tokens) == 1 else 's'}, and "
                "what follows what takes at least 2",
                "give a longer text",
            )
        if self.end is not None and not 0 <= self.end < self.vocab_size:
            raise InputError(
                f"the end token is {self.end}, outside of 0 to {self.vocab_size - 1}",
                "give one of the vocabulary",
            )
        if self.weights is not None:
            weights = np.asarray(self.weights, np.float64)
            object.__setattr__(self, "weights", weights)
            if (
                weights.shape != self.tokens.shape
                or not (np.isfinite(weights) & (weights > 0)).all()
            ):
                raise InputError(
                    f"there must be one positive weight for each of the {len(self.tokens)} tokens",
                    "leave out sentences that do not count",
                )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def weight(self) -> Floats:
        """The weight of each token, (N,); 1 by default."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def history(self) -> "History":
        """The history of every token of this text."""
        return History(self.tokens, self.vocab_size, self.end)


class History:
    """The tokens before each place of a text: `back(1, at)` are the tokens just before `at`.

    A place may be one past the last token, for the token that follows a prompt. The padding before
    the beginning of a sentence is `end`, at any distance; before the beginning of a text that is
    not made of sentences it is a token of its own, `vocab_size`.
    """

    def __init__(self, tokens: Ids, vocab_size: int, end: int | None) -> None:
        self.tokens = tokens
        self.pad = vocab_size if end is None else end
        place = np.arange(len(tokens) + 1)
        begins = np.concatenate([[True], tokens == end]) if end is not None else place == 0
        self.starts: Ids = np.maximum.accumulate(np.where(begins, place, 0))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def everywhere(self) -> Ids:
        """The positions of all tokens, 0 to N - 1, as an array (N,)."""
        return np.arange(len(self.tokens))

    def is_there(self, lag: int, at: Ids) -> Mask:
        """True where the sentence has begun `lag` tokens before the place, (n,)."""
        begun: Mask = at - lag >= self.starts[at]
        return begun

    def back(self, lag: int, at: Ids) -> Ids:
        """The token `lag` before each place, or the padding."""
        there = self.is_there(lag, at)
        tokens = np.full(len(at), self.pad)
        tokens[there] = self.tokens[at[there] - lag]
        return tokens


def checked_tokens(tokens: Any, vocab_size: int) -> Ids:
    """Return tokens as int64 (N,). Raises InputError where one is not in the vocabulary."""
    array = np.asarray(tokens)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"tokens are one row of whole numbers, not {array.dtype} of shape {array.shape}",
            "encode the text first",
        )
    if array.size and not (array.min() >= 0 and array.max() < vocab_size):
        raise InputError(
            f"tokens run from {array.min()} to {array.max()}, outside of 0 to {vocab_size - 1}",
            "encode the text with the vocabulary that the model was counted with",
        )
    return array.astype(np.int64)


def normalised(x: Floats) -> Floats:
    """Divide the rows of x, none of them negative, by their sums; rows of 0 stay 0."""
    sums = x.sum(axis=-1, keepdims=True)
    shares: Floats = x / np.where(sums > 0, sums, 1.0)
    return shares
