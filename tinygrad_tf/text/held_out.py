"""The split into a part to train on and a part held out: by position, by number or by example."""

from collections.abc import Sequence
from itertools import compress
from typing import TypeVar

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Mask

T = TypeVar("T")


def random_generator(*seed: int) -> np.random.Generator:
    """Return the generator (PCG64) of a seed of one or more integers, none of them negative."""
    if any(part < 0 for part in seed):
        raise InputError(f"the seed is {min(seed)}, and must not be negative", "use `seed=0`")
    return np.random.Generator(np.random.PCG64(seed))


def train_size(total: int, val_fraction: float) -> int:
    """Return how many of `total` tokens, in order, come before the validation split."""
    # Rounded first, or 10 * (1 - 0.9) would be 0.9999999999999998 and lose a token.
    return int(round(total * (1 - val_fraction), 6))


def held_out_mask(total: int, val_fraction: float, seed: int) -> Mask:
    """Return which of `total` examples (N,) are held out: a random share, 1 to N - 1 of them."""
    count = min(total - 1, max(1, round(total * val_fraction)))
    mask = np.zeros(total, dtype=np.bool_)
    mask[random_generator(seed).permutation(total)[:count]] = True
    return mask


def hold_out(
    examples: Sequence[T], val_fraction: float, seed: int, labels: Sequence[str] | None = None
) -> tuple[list[T], list[T]]:
    """Return the examples to train on and the random share held out, both in the given order.

    Examples that are equal all go to one part. With `labels`, the share is held out of each label
    apart, and a label whose examples are all equal is only trained on. Raises InputError where no
    group has two different examples.
    """
    groups: dict[str, dict[T, None]] = {}
    for example, label in zip(examples, labels or [""] * len(examples), strict=True):
        groups.setdefault(label, {})[example] = None
    held: set[T] = set()
    for different in map(list, groups.values()):
        if len(different) > 1:
            mask = held_out_mask(len(different), val_fraction, seed)
            held.update(compress(different, mask.tolist()))
    if not held:
        count = f"there are {len(set(examples))} different examples"
        raise InputError(
            f"{'no label has two different examples' if labels else count}, "
            "and some are held out to test with",
            "give more examples" if labels else "give at least 2",
        )
    parts: tuple[list[T], list[T]] = ([], [])
    for example in examples:
        parts[example in held].append(example)
    return parts
