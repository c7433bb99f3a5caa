"""All models on one text: what each stores, costs and gets right, and who wins."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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
LITTLE_EFFORT = {"candidates": 16, "examples": 500}  # also where no sentence ends a look back
FRACTIONS = tuple(2.0**-k for k in range(10, -1, -1))
LEAST = 200  # tokens that a part of the training text has at least, to be learned from
EXAMPLE = 60  # characters, about, that each model writes

HOW_VOTES_COUNT = (
    "Votes are no probabilities. To be counted in bits they are raised to a power and divided by "
    "their sum, and n-grams of the last words (Witten-Bell) are mixed in with a small weight; "
    "power and weight are those of a few that suit the training text best."
)


@dataclass(frozen=True)
class Candidate:
    """A model to be made: `votes` where its best guess is the one with most votes."""

    make: Callable[[], LanguageModel]
    votes: bool = False


@dataclass(frozen=True)
class Result:
    """One row: what a model stores (numbers, bytes), the seconds it took to learn, and on the
    held-out part its mean cost per token and per character, and how often it guessed right.

    `far` is the share of the words it got right that a word more than a few back decides; `reach`
    how many tokens back it sees, None for the sentence; `mixed` the power and the share of n-grams
    by which its votes became bits.
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

    def as_json(self) -> dict[str, Any]:
        """Every figure by name."""
        return asdict(self)


@dataclass(frozen=True)
class Amount:
    """What models pay for the held-out part (nats per token, by name) after learning from so many
    tokens, and the share of held-out places whose last k tokens they had met, by k."""

    tokens: int
    nats: dict[str, float]
    met: dict[int, float]


def candidates(split: Split, orders: Sequence[int] = ORDERS) -> Iterator[Candidate]:
    """Every counting model, the simple ones first; each counts for itself, so that its time is
    its own."""

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
    effort = {} if small else LITTLE_EFFORT
    yield Candidate(lambda: selective(split.train, 1, window, **effort), True)
    if split.train.vocab_size <= LARGE:
        yield Candidate(lambda: selective(split.train, 2, window, **effort), True)


def compare(split: Split, wanted: Iterator[Candidate], prompt: str = "") -> Iterator[Result]:
    """Make each model and try it on the held-out part, one after the other."""
    for candidate in wanted:
        begun = time.perf_counter()
        model = candidate.make()
        yield measure(model, split, time.perf_counter() - begun, prompt)


def measure(model: LanguageModel, split: Split, seconds: float, prompt: str = "") -> Result:
    """One row of the comparison, for a model that took `seconds` to learn."""
    found = score(model, split.held_out, split.first)
    nats = found.mean_nats
    mixed = (model.sharpness, model.mixed_in) if isinstance(model, Skips) else None
    return Result(
        model.name,
        split.unit,
        model.parameters,
        model.memory_bytes,
        seconds,
        nats,
        nats / math.log(2),
        float(found.nats.sum()) / math.log(2) / split.chars,
        found.accuracy,
        far_accuracy(found, split),
        model.reach,
        example(model, split, prompt),
        mixed,
    )


def far_accuracy(found: Score, split: Split) -> float | None:
    """The share of far words of which every token was the best guess; None where there are none."""
    if split.far is None or not len(split.far.start):
        return None
    wrong = np.concatenate([np.zeros(split.first, int), np.cumsum(~found.right)])
    wrong = np.concatenate([[0], wrong])
    missed = wrong[split.far.stop] - wrong[split.far.start]
    return float((missed == 0).mean())


def example(model: LanguageModel, split: Split, prompt: str = "", seed: int = 0) -> str:
    """What a model writes after a prompt, or from the beginning of a sentence or of the held-out
    part: drawn, up to the end of the sentence or about a line."""
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
    """What n-grams (Witten-Bell) of each order, and the highest of Kneser-Ney, pay after learning
    from the last part of the training text, ever more of it."""
    found: list[Amount] = []
    for fraction in fractions:
        if len(split.train) * fraction < LEAST:
            continue
        part = last_part(split.train, fraction)
        counts = NgramCounts.count(part, max(orders))
        models: list[LanguageModel] = [witten_bell(counts, order) for order in orders]
        if part.weights is None:
            models.append(kneser_ney(counts, max(orders)))
        nats = {m.name: float(m.nats(split.held_out)[split.first :].mean()) for m in models}
        found.append(Amount(len(part), nats, met(counts, split)))
    return found


def met(counts: NgramCounts, split: Split) -> dict[int, float]:
    """The share of predicted places whose last k tokens occurred in what was counted, by k."""
    history = Text(split.held_out, split.train.vocab_size, split.train.end).history
    numbers = counts.contexts.find(history, history.everywhere[split.first :], counts.order)
    return {k: float((numbers[k] >= 0).mean()) for k in range(1, counts.order + 1)}


def last_part(text: Text, fraction: float) -> Text:
    """The last share of a text; whole sentences, if it is made of sentences."""
    begin = len(text) - round(len(text) * fraction)
    if text.end is not None and begin:
        ends = np.flatnonzero(text.tokens[:begin] == text.end)
        begin = int(ends[-1]) + 1 if len(ends) else 0
    weights = None if text.weights is None else text.weights[begin:]
    return Text(text.tokens[begin:], text.vocab_size, text.end, weights)


def verdict(results: Sequence[Result], floor_bits_per_char: float | None = None) -> str:
    """Who wins, in a sentence or two: the fewest bits, of models that predict the same tokens.

    Models of other units are compared by bits per character.
    """
    ranked = sorted(results, key=lambda r: r.bits_per_char)
    best = ranked[0]
    one_unit = len({r.unit for r in results}) == 1

    def told(r: Result) -> str:
        per_char = f"{r.bits_per_char:.4g} bits per character"
        return f"{r.nats:.4f} nats per {r.unit} ({per_char})" if one_unit else per_char

    alike = [r.model for r in ranked[1:] if r.bits_per_char - best.bits_per_char < 1e-9]
    if alike:
        return f"{best.model} and {', '.join(alike)} are equal, with {told(best)}: nobody wins."
    said = f"{best.model} wins with {told(best)}"
    if floor_bits_per_char:
        ratio = best.bits_per_char / floor_bits_per_char
        said += f", {ratio:.3f} times the floor of {floor_bits_per_char:.4f}"
    if len(ranked) > 1:
        said += f"; next is {ranked[1].model} with {told(ranked[1])}"
    gpt = next((r for r in ranked if r.model.startswith("GPT")), None)
    if gpt is not None and gpt is not best:
        ahead = [r.model for r in ranked[: ranked.index(gpt)]]
        said += f". {gpt.model} comes {_ordinal(len(ahead) + 1)} with {told(gpt)}"
    return said + "."


def explain_curve(amounts: Sequence[Amount]) -> list[str]:
    """Where which order (of Witten-Bell) is best, and why: how many of its contexts were met."""
    said = []
    previous = ""
    for amount in amounts:
        smoothed = [name for name in amount.nats if name.startswith("Witten-Bell")]
        name = min(smoothed, key=amount.nats.__getitem__)
        if name == previous:
            continue
        order = int(name.split()[-1])
        said.append(
            f"from {amount.tokens:,} tokens on {name} is the best order of Witten-Bell "
            f"({amount.nats[name]:.3f} nats): at "
            f"{amount.met[order]:.0%} of the held-out places its context had been met"
        )
        previous = name
    return said


def _ordinal(number: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    return names[number - 1] if number <= len(names) else f"number {number}"
