"""Instructions about short strings, with their answers: `reverse abc = cba`.

A model is tuned on several at once, and asked about strings that it knows from other instructions
only; or two of them are carried out in turn, `sort first cab = a`, two that it never saw together.
Without the instruction, `abc = `, the answer is anybody's guess: a soft prompt learns to say to a
frozen model which it is.
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
# Which can come first of two, as they leave something to do.
FIRST_STEPS = ("reverse", "upper", "double", "sort")
LETTERS = "abcdefgh"


class Instruction(NamedTuple):
    """What is asked, up to and with the space before the answer, and the answer."""

    prompt: str
    answer: str
    task: str
    word: str

    @property
    def text(self) -> str:
        """Prompt and answer, one line of a corpus without its newline."""
        return self.prompt + self.answer


def instruct(task: str, word: str, *, named: bool = True) -> Instruction:
    """`reverse abc = cba`, or without the task's name `abc = cba`.

    Of several tasks with spaces between, each works on what the one before gave. InputError for a
    task that is not in TASKS, or an empty word.
    """
    if not word:
        raise InputError(f"there is nothing to {task}", "give a word of at least one letter")
    answer = word
    for step in task.split(" "):
        if step not in TASKS:
            raise InputError(f"there is no task {step!r}", f"choose from {', '.join(TASKS)}")
        answer = TASKS[step](answer)
    return Instruction(f"{task} {word} = " if named else f"{word} = ", answer, task, word)


def draw_instructions(
    n_words: int = 500, seed: int = 0, *, held_out: float = 0.1
) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """Every task for every one of the drawn words, to train on; and the share held out.

    What is held out is a word with a task: with other tasks the word is trained on, as is the task
    with other words. InputError where there are no such words, or no such share.
    """
    words = draw_words(n_words, seed)
    combinations: list[Combination] = [("asked", task, word) for word in words for task in TASKS]
    held = _held_out(combinations, held_out, seed)
    return (
        _shuffled((instruct(*one[1:]) for one in combinations if one not in held), seed),
        _shuffled((instruct(*one[1:]) for one in held), seed),
    )


def draw_two_steps(
    n_words: int = 100, seed: int = 0, *, held_out: float = 0.15
) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """Every task and pair of tasks for every one of the words; and the share of pairs held out.

    Of what is held out each task is trained on alone, and in its place with others. InputError
    where there are no such words, or no such share.
    """
    words = draw_words(n_words, seed)
    pairs: list[Combination] = [
        ("then", first, second)
        for first in FIRST_STEPS
        for second in TASKS
        if second not in (first, "copy")
    ]
    held = _held_out(pairs, held_out, seed)
    known = [*TASKS, *(" ".join(one[1:]) for one in pairs if one not in held)]
    asked = [" ".join(one[1:]) for one in held]
    return (
        _shuffled((instruct(task, word) for task in known for word in words), seed),
        _shuffled((instruct(task, word) for task in asked for word in words), seed),
    )


def draw_unnamed(
    count: int,
    seed: int = 0,
    *,
    task: str | None = None,
    words: tuple[str, ...] | None = None,
) -> tuple[Instruction, ...]:
    """Examples that do not say what is asked, as `abc = cba`.

    Without `task` each follows one at random: what a model to be frozen is trained on. With
    `task` all follow that one: what a soft prompt is trained on, and tested. Words are drawn from
    `words`, by default from those of `draw_words` for the seed. InputError for an unknown task, a
    count below 1, or no words.
    """
    if count < 1 or (words is not None and not words):
        raise InputError(f"{count} examples cannot be drawn", "take at least one, and some words")
    known = draw_words(seed=seed) if words is None else words
    generator = seeded(seed, "unnamed")
    names = tuple(TASKS)
    return tuple(
        instruct(task or choose(names, generator), choose(known, generator), named=False)
        for _ in range(count)
    )


def draw_words(
    n_words: int = 500, seed: int = 0, *, shortest: int = 2, longest: int = 4
) -> tuple[str, ...]:
    """Different strings of LETTERS, each length as likely as another.

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
