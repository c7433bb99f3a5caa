"""The common parts of the drawn languages: seeded choices, held-out combinations."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.word_tokenizer import split_words

# Two words that stand in a relation, which its name comes before: ("noun-adjective", "cat", "red").
Combination = tuple[str, str, str]

# So many draws in a row without anything new, and there is nothing new left.
_PATIENCE = 5000


class Example(Protocol):
    """An example that can be drawn, and held out by the words that it combines."""

    @property
    def text(self) -> str:
        """The full text, question and answer: examples with the same text are the same."""
        ...

    @property
    def construction(self) -> str:
        """The name of its construction."""
        ...

    @property
    def combinations(self) -> frozenset[Combination]:
        """The pairs of words that it combines."""
        ...


T = TypeVar("T")
AnyExample = TypeVar("AnyExample", bound=Example)


def seeded(seed: int, purpose: str) -> random.Random:
    """Return the generator of one purpose; InputError for a seed that is no whole number from 0."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"the seed is {seed}", "give a whole number from 0 up")
    return random.Random(f"{seed} {purpose}")


def choose(options: Sequence[T], generator: random.Random) -> T:
    """Choose one option by `generator.random()` alone, so that a seed means the same everywhere."""
    return options[int(generator.random() * len(options))]


def hold_out_combinations(
    combinations: Iterable[Combination],
    share: float,
    generator: random.Random,
    keep: Collection[Combination] = (),
) -> frozenset[Combination]:
    """Return about that share of the combinations, none of `keep`.

    No word loses more than twice that share of its own, or one of them where that is more, and
    none its last: each is still trained on.
    """
    ordered = sorted(set(combinations))
    left = Counter(word for one in ordered for word in _ends(one))
    least = {word: max(1, min(count - 1, count * (1 - 2 * share))) for word, count in left.items()}
    held: set[Combination] = set()
    for one in sorted(ordered, key=lambda _: generator.random()):
        if len(held) >= share * len(ordered):
            break
        if one not in keep and all(left[word] - 1 >= least[word] for word in _ends(one)):
            held.add(one)
            left.subtract(_ends(one))
    return frozenset(held)


def draw_split(
    draw: Callable[[random.Random], AnyExample],
    held: Collection[Combination],
    n_train: int,
    n_held_out: int,
    seed: int,
    always: Sequence[AnyExample] = (),
) -> tuple[tuple[AnyExample, ...], tuple[AnyExample, ...]]:
    """Draw different examples to train on, `always` first, and examples to test with.

    Each to train on has none of the `held` combinations. Each to test with has at least one of
    them, while all its words and its construction are among those to train on. A larger count
    only adds to what a smaller one gives to train on. InputError where a count is below 1, or
    more than there is.
    """
    if n_train < max(1, len(always)) or n_held_out < 1:
        raise InputError(
            f"{n_train} examples to train on and {n_held_out} to test with cannot be drawn",
            f"take at least {max(1, len(always))} and 1",
        )
    held = frozenset(held)
    train = _distinct(
        draw, lambda e: not e.combinations & held, n_train, seeded(seed, "train"), always
    )
    words = {word for example in train for word in split_words(example.text)}
    constructions = {example.construction for example in train}

    def is_test(example: AnyExample) -> bool:
        return (
            bool(example.combinations & held)
            and example.construction in constructions
            and words.issuperset(split_words(example.text))
        )

    return train, _distinct(draw, is_test, n_held_out, seeded(seed, "held out"))


def _distinct(
    draw: Callable[[random.Random], AnyExample],
    wanted: Callable[[AnyExample], bool],
    count: int,
    generator: random.Random,
    always: Sequence[AnyExample] = (),
) -> tuple[AnyExample, ...]:
    found = {example.text: example for example in always}
    in_vain = 0
    while len(found) < count:
        example = draw(generator)
        if example.text not in found and wanted(example):
            found[example.text] = example
            in_vain = 0
        elif (in_vain := in_vain + 1) == _PATIENCE:
            raise InputError(
                f"only {len(found)} of the {count} examples were found in this language",
                "ask for fewer to test with, or for more to train on if words were too few",
            )
    return tuple(found.values())


def _ends(combination: Combination) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return both words, each with its side of the relation."""
    relation, first, second = combination
    return (relation + " of", first), (relation + " with", second)
