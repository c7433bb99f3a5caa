"""The spoken commands: a small grammar of them, who says them, and what is kept for the test.

Among them are the commands of source document S4. Held-out sentences are never trained on, though
each pair of words in them is; nor is any held-out speaker ever heard in training.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from tinygrad_tf.audio.samples import Floats
from tinygrad_tf.audio.voice import Speaker, draw_speaker, speak
from tinygrad_tf.errors import InputError

# One of the words in braces; an empty one is nothing.
TEMPLATES = (
    "show me {my|the|all} {directories|files|photos|songs|letters} {please|now|}",
    "{find|open|close|delete} {my|the|all} {directories|files|photos|songs|letters} {please|}",
    "check whether the {battery|engine} ran down {please|now}",
    "check whether the {program|printer} ran {please|now}",
    "check the {battery|engine} log and find out whether it ran down {please|}",
    "check the {program|printer} log and find out whether it ran {please|}",
    "{open|close|delete|show me} the {battery|engine|program|printer} log {please|now|}",
    "{start|stop} the {engine|program|printer} {please|now|}",
)
HELD_OUT_SHARE = 0.2
TRAINING, HELD_OUT = 0, 1  # which stream of random numbers


class SpokenCommand(NamedTuple):
    """A spoken sentence with its speaker and its sound: samples [N] at 16,000 Hz."""

    text: str
    speaker: Speaker
    samples: Floats


def all_commands() -> tuple[str, ...]:
    """Every sentence of the grammar, in a fixed order."""
    return tuple(sentence for template in TEMPLATES for sentence in _expansions(template))


def split_commands(seed: int = 0) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sentences to train on, and a fifth of all that are held out.

    Each pair of neighbours in a held-out sentence, its beginning and its end included, also
    stands in one to train on.
    """
    commands = all_commands()
    left = Counter(pair for command in commands for pair in _pairs(command))
    held_out: set[str] = set()
    for index in np.random.default_rng(seed).permutation(len(commands)):
        pairs = _pairs(commands[index])
        if len(held_out) < HELD_OUT_SHARE * len(commands) and min(left[p] for p in pairs) > 1:
            held_out.add(commands[index])
            left.subtract(pairs)
    kept = tuple(command for command in commands if command not in held_out)
    return kept, tuple(command for command in commands if command in held_out)


def spoken_commands(
    count: int, seed: int = 0, *, held_out: bool = False, n_speakers: int = 200
) -> Iterator[SpokenCommand]:
    """Draw so many commands, each by one of `n_speakers` speakers, in constant memory.

    With `held_out` both the sentences and the speakers are others than without. The first
    commands are the same whatever the count. Raises InputError where a number is below 1.
    """
    if count < 1 or n_speakers < 1:
        raise InputError(
            f"{count} commands by {n_speakers} speakers cannot be drawn", "take numbers from 1 up"
        )
    return _spoken(count, seed, HELD_OUT if held_out else TRAINING, n_speakers)


def _spoken(count: int, seed: int, part: int, n_speakers: int) -> Iterator[SpokenCommand]:
    sentences = split_commands(seed)[part]
    people = np.random.default_rng([seed, part, 0])
    speakers = [draw_speaker(people) for _ in range(n_speakers)]
    for index in range(count):
        generator = np.random.default_rng([seed, part, 1, index])
        text = sentences[generator.integers(len(sentences))]
        speaker = speakers[generator.integers(n_speakers)]
        yield SpokenCommand(
            text, speaker, speak(text, speaker, generator, snr_db=generator.uniform(15, 40))
        )


def _expansions(template: str) -> Iterator[str]:
    """All sentences of a template."""
    parts = re.split(r"\{(.*?)\}", template)
    choices = [part.split("|") if index % 2 else [part] for index, part in enumerate(parts)]
    for chosen in product(*choices):
        yield " ".join("".join(chosen).split())


def _pairs(command: str) -> set[tuple[str, str]]:
    """Neighbours, with an empty word at either end."""
    return set(pairwise(["", *command.split(), ""]))
