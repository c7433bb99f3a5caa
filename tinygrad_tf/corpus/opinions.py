"""Opinions, good or bad, that only the order of their words tells apart.

In `the food was good but the service was bad` the second half counts; after `although` the half
that it does not begin; `not good but bad` is bad. Exchange the halves, and the words are the same
but the opinion is the other one, and as likely. So no function of the bag of words is right on more
than half of these. Only the simple ones, at most PLAIN of all, have no such twin: of all together,
a bag of words gets at most PLAIN + (1 - PLAIN) / 2 right, which is two thirds.
"""

import random
from typing import NamedTuple

from tinygrad_tf.corpus.splits import Combination, choose, draw_split, hold_out_combinations, seeded

HELD_OUT_SHARE = 0.1
PLAIN = 0.35
DENIED = 0.2  # of the judgements that may be

LABELS = ("negative", "positive")
ASPECTS = ("food", "service", "room", "staff", "music", "view", "film", "story", "hotel", "garden")
GOOD = ("good", "great", "lovely", "excellent", "nice", "superb", "pleasant")
BAD = ("bad", "awful", "poor", "terrible", "dull", "horrible", "boring")
DEGREES = ("", "", "very", "really")


class Opinion(NamedTuple):
    """A sentence and its label, `positive` or `negative`."""

    sentence: str
    label: str
    construction: str
    combinations: frozenset[Combination]

    @property
    def text(self) -> str:
        """Label and sentence, as one line of a file of labelled texts."""
        return f"{self.label}\t{self.sentence}"


class Judgement(NamedTuple):
    """A judgement of one aspect: its words, and True if it is good."""

    aspect: str
    adjective: str
    words: str
    is_good: bool

    @property
    def clause(self) -> str:
        """As a sentence."""
        return f"the {self.aspect} was {self.words}"


def judgement(aspect: str, adjective: str, degree: str = "", denied: bool = False) -> Judgement:
    """`the food was not very good`, which is bad."""
    words = " ".join(["not"] * denied + [degree] * bool(degree) + [adjective])
    return Judgement(aspect, adjective, words, (adjective in GOOD) != denied)


def draw_opinions(
    n_train: int = 3000, n_held_out: int = 500, seed: int = 0
) -> tuple[tuple[Opinion, ...], tuple[Opinion, ...]]:
    """Draw different sentences to train on, and sentences to test with.

    A tenth of all pairs of aspect and adjective is never trained on; each sentence to test with
    has one of these. All its words are among those to train on, and half of all are positive.
    InputError where the counts cannot be had.
    """
    pairs = [("was", aspect, how) for aspect in ASPECTS for how in GOOD + BAD]
    held = hold_out_combinations(pairs, HELD_OUT_SHARE, seeded(seed, "combinations"))
    return draw_split(_draw, held, n_train, n_held_out, seed)


def _draw(generator: random.Random) -> Opinion:
    aspect, is_good = choose(ASPECTS, generator), choose((False, True), generator)
    degree = choose(DEGREES, generator)
    if generator.random() < PLAIN:
        one = _judge(generator, aspect, is_good, degree)
        return _opinion(one.clause, one.is_good, "plain", one)
    construction = choose(("not but", "and not", "but", "although first", "although"), generator)
    if construction in ("not but", "and not"):
        right = judgement(aspect, choose(GOOD if is_good else BAD, generator), degree)
        wrong = judgement(aspect, choose(BAD if is_good else GOOD, generator), degree)
        halves = ("not", wrong.words, "but", right.words)
        if construction == "and not":
            halves = (right.words, "and", "not", wrong.words)
        sentence = f"the {aspect} was {' '.join(halves)}"
        return _opinion(sentence, is_good, construction, right, wrong)
    other = choose([one for one in ASPECTS if one != aspect], generator)
    main = _judge(generator, aspect, is_good, degree)
    side = _judge(generator, other, not is_good, choose(DEGREES, generator))
    sentence = {
        "but": f"{side.clause} but {main.clause}",
        "although first": f"although {side.clause} {main.clause}",
        "although": f"{main.clause} although {side.clause}",
    }[construction]
    return _opinion(sentence, is_good, construction, main, side)


def _judge(generator: random.Random, aspect: str, is_good: bool, degree: str) -> Judgement:
    """A judgement that comes out as it should, denied or not."""
    denied = generator.random() < DENIED
    adjective = choose(GOOD if is_good != denied else BAD, generator)
    return judgement(aspect, adjective, degree, denied)


def _opinion(sentence: str, is_good: bool, construction: str, *judgements: Judgement) -> Opinion:
    combinations = frozenset(("was", one.aspect, one.adjective) for one in judgements)
    return Opinion(sentence, LABELS[is_good], construction, combinations)
