"""Examples of a file in two parts: to learn from, and to be judged by."""

from collections.abc import Sequence
from typing import TypeVar

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.tokens import random_generator

T = TypeVar("T")


def hold_out(examples: Sequence[T], share: float, seed: int) -> tuple[list[T], list[T]]:
    """A random `share` of the examples, but at least one, apart; both parts in the given order.

    Of examples that are the same, all go to one part. Raises InputError where there are not two
    different ones.
    """
    different = list(dict.fromkeys(examples))
    if len(different) < 2:
        raise InputError(
            f"there are {len(different)} different examples, and some are held out to test with",
            "give at least 2",
        )
    count = min(len(different) - 1, max(1, round(share * len(different))))
    chosen = random_generator(seed).permutation(len(different))[:count]
    held = {different[i] for i in chosen}
    parts: tuple[list[T], list[T]] = ([], [])
    for example in examples:
        parts[example in held].append(example)
    return parts


def hold_out_by(
    labels: Sequence[str], examples: Sequence[T], share: float, seed: int
) -> tuple[list[T], list[T]]:
    """As `hold_out`, of each label apart; one of which all examples are the same is all learned.

    Raises InputError where no label has two different examples.
    """
    held: set[T] = set()
    for label in sorted(set(labels)):
        alike = [x for x, own in zip(examples, labels, strict=True) if own == label]
        if len(set(alike)) > 1:
            held.update(hold_out(alike, share, seed)[1])
    if not held:
        raise InputError(
            "no label has two different examples, and some are held out to test with",
            "give more examples",
        )
    parts: tuple[list[T], list[T]] = ([], [])
    for example in examples:
        parts[example in held].append(example)
    return parts
