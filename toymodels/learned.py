"""A transformer that learns the mask by itself: one layer, one head, the same few sentences.

It is trained to predict each next word of whole sentences, and nothing else. Its attention from
the deciding place is then compared with the mask that `masks.selective` finds by counting.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinygrad_tf import no_grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.train import AdamW
from tinygrad_tf.train.batches import Batch
from tinygrad_tf.train.parallel import loss_and_gradients
from tinygrad_tf.types import IGNORE, Floats, Ids
from toymodels.masks import selective
from toymodels.sentences import Language

SEEDS = tuple(range(10))


@dataclass(frozen=True)
class Settings:
    """Sizes and training settings of the one layer; each step takes all sentences.

    The weights begin so near to 0 that at first nothing but the attention can distinguish the
    sentences: begun larger, the feed-forward layer reads the answer off a blurred attention.
    """

    width: int = 32
    steps: int = 500
    learning_rate: float = 3e-3
    init_std: float = 0.004
    grad_clip: float = 1.0


@dataclass(frozen=True)
class Place:
    """A place that an earlier word decides: the prompt (T,) up to the current word, the word that
    then follows, and the mask (T,), 1 for each word of the prompt that decides."""

    prompt: Ids
    right: int
    mask: Floats


@dataclass(frozen=True)
class Decision:
    """The output of a trained model at a place: the probability of the right word, and the
    attention (T,) of the current word."""

    place: Place
    probability: float
    attention: Floats

    @property
    def on_deciding(self) -> float:
        """The attention to the word that decides."""
        return float(self.attention[self.place.mask > 0].sum())

    @property
    def on_other(self) -> float:
        """The largest attention to any other word."""
        return float(self.attention[self.place.mask == 0].max())


@dataclass(frozen=True)
class Learned:
    """The result of one seed: the output of the trained model at each deciding place."""

    seed: int
    loss: float  # nats per word of the sentences
    decisions: tuple[Decision, ...]

    @property
    def probability(self) -> float:
        """The least probability of the right word."""
        return min(decision.probability for decision in self.decisions)

    @property
    def on_deciding(self) -> float:
        """The least attention to the deciding word."""
        return min(decision.on_deciding for decision in self.decisions)

    @property
    def agrees(self) -> bool:
        """True if the deciding word gets more attention than any other, everywhere."""
        return all(decision.on_deciding > decision.on_other for decision in self.decisions)


def deciding_places(language: Language) -> list[Place]:
    """Return the places of the sentences where the learned mask selects an earlier word.

    Raises InputError where there is none.
    """
    votes, places = selective(language.text), list[Place]()
    masks = {word: votes.mask(np.array([word])) for word in range(len(language.vocabulary))}
    for ids in language.sentences:
        for last in range(1, len(ids) - 1):
            mask = masks[int(ids[last])][ids[: last + 1]]
            mask[last] = 0
            if mask.any():
                places.append(Place(ids[: last + 1], int(ids[last + 1]), mask))
    if not places:
        raise InputError(
            "no earlier word decides what follows in these sentences",
            "give two that differ in a word and, further on, in what follows a word they share",
        )
    return places


def train_one(language: Language, seed: int, settings: Settings | None = None) -> tuple[GPT, float]:
    """Train a one-layer GPT on whole sentences, without weight decay; return it and its last loss
    in nats per word. The vocabulary is the words and END."""
    settings = settings or Settings()
    longest = max(map(len, language.sentences))
    shape = GPTConfig(
        vocab_size=language.end + 1,
        block_size=longest,
        n_layer=1,
        n_head=1,
        n_embd=settings.width,
        activation="relu",
        tie_weights=False,
        init_std=settings.init_std,
    )
    ids = np.full((len(language.sentences), longest), language.end)
    targets = np.full(ids.shape, IGNORE)
    for row, sentence in enumerate(language.sentences):
        ids[row, : len(sentence)] = sentence
        targets[row, : len(sentence)] = [*sentence[1:], language.end]
    model, batch, loss = GPT(shape, seed), Batch(ids, targets), float("inf")
    optimizer = AdamW(model, settings.learning_rate, (0.9, 0.99), weight_decay=0.0)
    for _ in range(settings.steps):
        loss, gradients = loss_and_gradients(model, batch)
        optimizer.step(gradients, max_norm=settings.grad_clip)
    return model.eval(), loss  # type: ignore[return-value]


def decide(model: GPT, place: Place) -> Decision:
    """Return the output of a one-layer model after the prompt, and its attention."""
    with no_grad(), record() as values:
        logits = model(place.prompt[None, :]).data[0, -1].astype(np.float64)
    probs = ops.softmax(logits).data
    attention = values["blocks.0.attn.hook_pattern"].data[0, 0, -1].astype(np.float64)
    return Decision(place, float(probs[place.right]), attention)


def learn(
    language: Language, seeds: Iterable[int] = SEEDS, settings: Settings | None = None
) -> list[Learned]:
    """Train one model a seed, and return what each does at the deciding places.

    Raises InputError where no earlier word decides anything.
    """
    places, results = deciding_places(language), []
    for seed in seeds:
        model, loss = train_one(language, seed, settings)
        results.append(Learned(seed, loss, tuple(decide(model, place) for place in places)))
    return results
