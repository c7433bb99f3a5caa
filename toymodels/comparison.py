"""The comparison of models on one text: the size, the cost and the accuracy of each."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toymodels.counts import NgramCounts
from toymodels.held_out import Split
from toymodels.markov import Markov
from toymodels.masks import selective
from toymodels.model import LanguageModel, Score, score
from toymodels.ngrams import kneser_ney, witten_bell
from toymodels.skips import Skips
from toymodels.text import Text

ORDERS = (1, 2, 3, 4, 5)
ADD = 0.1  # to each count of a Markov model, so that nothing is impossible
WINDOW = 16  # tokens that skips look back where a text has no sentences
LARGE = 1024  # tokens beyond which pairs of them are too many to learn a mask for each
SMALL_EFFORT = {"candidates": 16, "examples": 500}  # for a large vocabulary or no sentences
FRACTIONS = tuple(2.0**-k for k in range(10, -1, -1))
LEAST = 200  # tokens of the smallest part of the training text in a curve
EXAMPLE = 60  # characters, about, of the example of each model


@dataclass(frozen=True)
class Candidate:
    """A model to be made; `votes` if its best guess is the token with most votes."""

    make: Callable[[], LanguageModel]
    votes: bool = False


@dataclass(frozen=True)
class Result:
    """A row of the comparison: the size of a model (numbers, bytes), the seconds of its training,
    and its mean cost per token and per character and its accuracy on the held-out part.

    `far` is the accuracy at far words, which a word more than a few back decides; `reach` is the
    number of tokens back that the model sees, None for the sentence; `mixed` is the power and the
    share of n-grams that made its votes probabilities.
    """

    model: str
    unit: str
    parameters: int
    memory_bytes: int
    seconds: float
    nats: float
    bits: float
    bits_per_char: float
    accuracy: float
    far: float | None
    reach: int | None
    example: str
    mixed: tuple[float, float] | None = None


@dataclass(frozen=True)
class Amount:
    """A point of the learning curves: the number of training tokens, the held-out cost of each
    model (nats per token, by name), and the share of held-out places whose last k tokens occurred
    in training, by k."""

    tokens: int
    nats: dict[str, float]
    met: dict[int, float]


def candidates(split: Split, orders: Sequence[int] = ORDERS) -> Iterator[Candidate]:
    """Yield every counting model, the simple ones first; each counts for itself, so that its time
    is its own."""

    def plain(order: int) -> Candidate:
        return Candidate(lambda: Markov.fit(split.train, order, ADD))

    def smoothed(order: int, kind: Callable[[NgramCounts, int], LanguageModel]) -> Candidate:
        return Candidate(lambda: kind(NgramCounts.count(split.train, order), order))

    window = None if split.train.end is not None else WINDOW
    yield from (plain(order) for order in orders if order <= 3)
    yield from (smoothed(order, witten_bell) for order in orders if order > 1)
    if split.train.weights is None:
        yield from (smoothed(order, kneser_ney) for order in orders if order > 1)
    yield Candidate(lambda: Skips.fit(split.train, 1, window), True)
    small = split.train.end is not None and split.train.vocab_size <= LARGE
    effort = {} if small else SMALL_EFFORT
    yield Candidate(lambda: selective(split.train, 1, window, **effort), True)
    if split.train.vocab_size <= LARGE:
        yield Candidate(lambda: selective(split.train, 2, window, **effort), True)


def compare(split: Split, models: Iterable[Candidate], prompt: str = "") -> Iterator[Result]:
    """Make each model and measure it on the held-out part, one after the other."""
    for candidate in models:
        begun = time.perf_counter()
        model = candidate.make()
        yield measure(model, split, time.perf_counter() - begun, prompt)


def measure(model: LanguageModel, split: Split, seconds: float, prompt: str = "") -> Result:
    """Measure a model whose training took `seconds`: a row of the comparison."""
    result = score(model, split.held_out, split.first)
    nats = result.mean_nats
    mixed = (model.sharpness, model.mixed_in) if isinstance(model, Skips) else None
    return Result(
        model.name,
        split.unit,
        model.parameters,
        model.memory_bytes,
        seconds,
        nats,
        nats / math.log(2),
        float(result.nats.sum()) / math.log(2) / split.chars,
        result.accuracy,
        far_accuracy(result, split),
        model.reach,
        example(model, split, prompt),
        mixed,
    )


def far_accuracy(result: Score, split: Split) -> float | None:
    """Return the share of far words of which every token was the best guess; None without any."""
    if split.far is None or not len(split.far.start):
        return None
    wrong = np.concatenate([np.zeros(split.first, int), np.cumsum(~result.right)])
    wrong = np.concatenate([[0], wrong])
    missed = wrong[split.far.stop] - wrong[split.far.start]
    return float((missed == 0).mean())


def example(model: LanguageModel, split: Split, prompt: str = "", seed: int = 0) -> str:
    """Draw an example text of a model, up to the end of the sentence or about a line.

    It continues the prompt, or else begins a sentence or the held-out part.
    """
    if prompt:
        before = split.read(prompt)
    elif split.train.end is not None:
        before = np.empty(0, np.int64)
    else:
        before = split.held_out[: split.first]
    per_token = split.chars / split.targets
    length = round((EXAMPLE if split.train.end is None else 5 * EXAMPLE) / per_token)
    written = model.continue_(before, length, seed)
    return (prompt + " " if prompt and split.unit == "word" else prompt) + split.show(written)


def learning_curve(
    split: Split, fractions: Sequence[float] = FRACTIONS, orders: Sequence[int] = ORDERS
) -> list[Amount]:
    """Return the held-out cost after training on growing last parts of the training text.

    The models are n-grams (Witten-Bell) of each order, and the highest order of Kneser-Ney.
    """
    amounts: list[Amount] = []
    for fraction in fractions:
        if len(split.train) * fraction < LEAST:
            continue
        part = last_part(split.train, fraction)
        counts = NgramCounts.count(part, max(orders))
        models: list[LanguageModel] = [witten_bell(counts, order) for order in orders]
        if part.weights is None:
            models.append(kneser_ney(counts, max(orders)))
        nats = {m.name: float(m.nats(split.held_out)[split.first :].mean()) for m in models}
        amounts.append(Amount(len(part), nats, met(counts, split)))
    return amounts


def met(counts: NgramCounts, split: Split) -> dict[int, float]:
    """Return the share of predicted places whose last k tokens occurred in the counts, by k."""
    history = Text(split.held_out, split.train.vocab_size, split.train.end).history
    numbers = counts.contexts.find(history, history.everywhere[split.first :], counts.order)
    return {k: float((numbers[k] >= 0).mean()) for k in range(1, counts.order + 1)}


def last_part(text: Text, fraction: float) -> Text:
    """Return the last share of a text; whole sentences, if it is made of sentences."""
    begin = len(text) - round(len(text) * fraction)
    if text.end is not None and begin:
        ends = np.flatnonzero(text.tokens[:begin] == text.end)
        begin = int(ends[-1]) + 1 if len(ends) else 0
    weights = None if text.weights is None else text.weights[begin:]
    return Text(text.tokens[begin:], text.vocab_size, text.end, weights)
