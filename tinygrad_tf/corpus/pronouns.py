"""Sentences in which `it` means one of two nouns, and the last word tells which (source document
S2): the cat drank the milk because it was hungry, or because it was sweet.

The noun may come first or second, in the active or the passive, so its place tells nothing.
"""

import random
from typing import NamedTuple

from tinygrad_tf.corpus.splits import Combination, choose, draw_split, hold_out_combinations, seeded

HELD_OUT_SHARE = 0.1

ANIMALS = ("cat", "dog", "mouse", "horse", "rabbit", "goat", "bird", "pig")
DRINKS = ("milk", "water", "juice", "tea")
DISHES = ("bread", "cheese", "apple", "cake", "carrot", "soup")
FOODS = DRINKS + DISHES
NOUNS = ANIMALS + FOODS

OF_ANIMALS = ("hungry", "thirsty", "greedy", "lonely", "curious", "clever")
OF_FOODS = ("sweet", "fresh", "tasty", "delicious", "cheap", "salty")

# As in `drank it` and `was drunk`.
DRINKING = (("drank", "drunk"), ("sipped", "sipped"), ("spilled", "spilled"))
EATING = (("ate", "eaten"), ("chewed", "chewed"), ("tasted", "tasted"))
ANYHOW = (("found", "found"), ("wanted", "wanted"), ("liked", "liked"))

# What tells nothing, for either noun; mostly there is no such word.
COATS = ("", "", "", "black", "white", "brown", "young")
STATES = ("", "", "", "cold", "warm", "red", "old")
REASONS = ("because", "because", "since", "as")


class Coreference(NamedTuple):
    """A sentence of `words`; `it`, the right noun and the wrong one by their positions from 0."""

    words: tuple[str, ...]
    it: int
    referent: int
    other: int
    construction: str
    combinations: frozenset[Combination]

    @property
    def text(self) -> str:
        """The words with a space between."""
        return " ".join(self.words)

    @property
    def answer(self) -> str:
        """The noun that `it` means."""
        return self.words[self.referent]

    @property
    def label(self) -> int:
        """The answer as a class: its place in NOUNS."""
        return NOUNS.index(self.answer)


def coreference(
    animal: str,
    verb: tuple[str, str],
    food: str,
    adjective: str,
    *,
    coat: str = "",
    state: str = "",
    reason: str = "because",
    passive: bool = False,
) -> Coreference:
    """The sentence: `adjective` of OF_ANIMALS means the animal, of OF_FOODS the food."""
    subject, thing = f"the {coat} {animal}", f"the {state} {food}"
    past, participle = verb
    event = f"{thing} was {participle} by {subject}" if passive else f"{subject} {past} {thing}"
    words = tuple(f"{event} {reason} it was {adjective}".split())
    meant, other = (animal, food) if adjective in OF_ANIMALS else (food, animal)
    return Coreference(
        words,
        words.index("it"),
        words.index(meant),
        words.index(other),
        f"{'passive' if passive else 'active'}, {'animal' if meant == animal else 'food'}",
        frozenset({("with", animal, food), ("was", meant, adjective)}),
    )


# Always trained on: the two sentences of the source document.
ALWAYS = tuple(coreference("cat", DRINKING[0], "milk", how) for how in ("hungry", "sweet"))


def draw_coreferences(
    n_train: int = 3000, n_held_out: int = 500, seed: int = 0
) -> tuple[tuple[Coreference, ...], tuple[Coreference, ...]]:
    """Draw different sentences to train on, and sentences to test with.

    A tenth of all pairs of animal and food, and of noun and adjective, is never trained on; each
    sentence to test with has one of these. All its words are among those to train on.
    InputError where the counts cannot be had.
    """
    generator = seeded(seed, "combinations")
    keep = frozenset[Combination]().union(*(one.combinations for one in ALWAYS))
    held: frozenset[Combination] = frozenset()
    for kind in _combinations():
        held |= hold_out_combinations(kind, HELD_OUT_SHARE, generator, keep)
    return draw_split(_draw, held, n_train, n_held_out, seed, ALWAYS)


def _combinations() -> tuple[list[Combination], ...]:
    return (
        [("with", animal, food) for animal in ANIMALS for food in FOODS],
        [("was", animal, adjective) for animal in ANIMALS for adjective in OF_ANIMALS],
        [("was", food, adjective) for food in FOODS for adjective in OF_FOODS],
    )


def _draw(generator: random.Random) -> Coreference:
    food = choose(FOODS, generator)
    verbs = (DRINKING if food in DRINKS else EATING) + ANYHOW
    return coreference(
        choose(ANIMALS, generator),
        choose(verbs, generator),
        food,
        choose(OF_ANIMALS + OF_FOODS, generator),
        coat=choose(COATS, generator),
        state=choose(STATES, generator),
        reason=choose(REASONS, generator),
        passive=choose((False, True), generator),
    )
