"""Instructions about short strings, with their answers: `reverse abc = cba`.

A model is tuned on several at once, and tested on strings that it knows from other instructions
only.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tinygrad_tf.corpus.splits import Combination, choose, hold_out, seeded
from tinygrad_tf.errors import InputError

TASKS: Mapping[str, Callable[[str], str]] = {
    "copy": lambda word: word,
    "reverse": lambda word: word[::-1],
    "upper": lambda word: word.upper(),
    "double": lambda word: word + word,
    "sort": lambda word: "".join(sorted(word)),
    "count": lambda word: str(len(word)),
    "first": lambda word: word[0],
    "last": lambda word: word[-1],
}
LETTERS = "abcdefgh"


class Instruction(NamedTuple):
    """A task for a word: the prompt, up to and with the space before the answer, and the answer."""

    prompt: str
    answer: str
    task: str
    word: str

    @property
    def text(self) -> str:
        """Prompt and answer, one line of a corpus without its newline."""
        return self.prompt + self.answer


def instruct(task: str, word: str) -> Instruction:
    """Return the instruction `reverse abc = cba`.

    InputError for a task that is not in TASKS, or an empty word.
    """
    if not word:
        raise InputError(f"there is nothing to {task}", "give a word of at least one letter")
    if task not in TASKS:
        raise InputError(f"there is no task {task!r}", f"choose from {', '.join(TASKS)}")
    return Instruction(f"{task} {word} = ", TASKS[task](word), task, word)


def draw_instructions(
    n_words: int = 500, seed: int = 0, *, held_out: float = 0.1
) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """Return every task for every one of the drawn words to train on, and the share held out.

    A word is held out with a task: with other tasks the word is trained on, as is the task
    with other words. InputError where there are no such words, or no such share.
    """
    words = draw_words(n_words, seed)
    combinations: list[Combination] = [("asked", task, word) for word in words for task in TASKS]
    held = _held_out(combinations, held_out, seed)
    return (
        _shuffled((instruct(*one[1:]) for one in combinations if one not in held), seed),
        _shuffled((instruct(*one[1:]) for one in held), seed),
    )


def draw_words(
    n_words: int = 500, seed: int = 0, *, shortest: int = 2, longest: int = 4
) -> tuple[str, ...]:
    """Return different strings of LETTERS, each length as likely as another.

    The first words are the same whatever their number. InputError where there are not so many.
    """
    if not 1 <= shortest <= longest:
        raise InputError(
            f"words of {shortest} to {longest} letters cannot be drawn", "give lengths from 1 up"
        )
    most = len(LETTERS) ** longest
    # Above half of the longest ones, drawing until a new one comes would take too long.
    if not 1 <= n_words <= most / 2:
        raise InputError(
            f"{n_words} words cannot be drawn from {most} of {longest} letters",
            f"take from 1 to {most // 2}, or longer words",
        )
    generator = seeded(seed, "words")
    found: dict[str, None] = {}
    while len(found) < n_words:
        found[_word(shortest, longest, generator)] = None
    return tuple(found)


def _held_out(combinations: list[Combination], share: float, seed: int) -> frozenset[Combination]:
    if not 0 < share < 0.5:
        raise InputError(f"a share of {share} is held out", "give a number between 0 and 0.5")
    return hold_out(combinations, share, seeded(seed, "combinations"))


def _shuffled(examples: Iterable[Instruction], seed: int) -> tuple[Instruction, ...]:
    generator = seeded(seed, "order")
    return tuple(sorted(sorted(examples), key=lambda _: generator.random()))


def _word(shortest: int, longest: int, generator: random.Random) -> str:
    length = choose(range(shortest, longest + 1), generator)
    return "".join(choose(LETTERS, generator) for _ in range(length))
