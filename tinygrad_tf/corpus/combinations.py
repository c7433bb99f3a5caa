"""Instructions that are combined: `reverse then upper: stone`, and content of several kinds.

What is asked of two steps is answered in two lines. The first carries out the first step and
says what remains, which is then an instruction of one step like any other:

    reverse then upper: stone
    upper: enots
    ENOTS

Some pairs of instructions never occur in training, and some instructions never with some kind of
content: each of the parts is known, the combination is not.
"""

import random
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tinygrad_tf.corpus.splits import choose, seeded
from tinygrad_tf.errors import InputError

INSTRUCTIONS: Mapping[str, Callable[[str], str]] = {
    "copy": lambda text: text,
    "reverse": lambda text: text[::-1],
    "upper": lambda text: text.upper(),
    "double": lambda text: text + text,
    "count": lambda text: str(len(text)),
    "first": lambda text: text[0],
    "last": lambda text: text[-1],
}
KINDS: Mapping[str, str] = {
    "word": string.ascii_lowercase,
    "number": string.digits,
    "code": string.ascii_lowercase + string.digits,
}
SHORTEST, LONGEST = 2, 4
THEN = " then "

# Never trained on. Each instruction comes before others and after others all the same.
UNSEEN_PAIRS = frozenset(
    {
        "reverse then upper",
        "upper then last",
        "double then first",
        "upper then double",
        "first then upper",
        "last then copy",
        "copy then reverse",
        "count then double",
    }
)
UNSEEN_KINDS = frozenset(
    {("reverse", "number"), ("double", "code"), ("last", "number"), ("first", "code")}
)


class Question(NamedTuple):
    """A question: its instruction, its content, and the kind of the content."""

    instruction: str
    content: str
    kind: str = ""

    @property
    def prompt(self) -> str:
        """The input of the model: `reverse: stone`, a line."""
        return f"{self.instruction}: {self.content}\n"

    @property
    def working(self) -> str:
        """The correct output: a line a step, the last of which is the answer."""
        return "".join(f"{line}\n" for line in carry_out(self.instruction, self.content))

    @property
    def unnamed(self) -> tuple[str, str]:
        """The same without saying what is asked: content, and the last answer."""
        return f": {self.content}\n", carry_out(self.instruction, self.content)[-1] + "\n"


def carry_out(instruction: str, content: str) -> list[str]:
    """The lines of working; InputError for an unknown instruction or nothing to work on."""
    if not content:
        raise InputError(f"there is nothing to {instruction}", 'write as in "reverse: stone"')
    lines, steps = [], instruction.split(THEN)
    for done, step in enumerate(steps, 1):
        if step not in INSTRUCTIONS:
            raise InputError(
                f"there is no instruction {step!r}",
                f"choose from {', '.join(INSTRUCTIONS)}, one or two with {THEN.strip()!r} between",
            )
        content = INSTRUCTIONS[step](content)
        rest = THEN.join(steps[done:])
        lines.append(f"{rest}: {content}" if rest else content)
    return lines


class Combinations(NamedTuple):
    """Every (instruction, kind): those trained on, and those that are not, of both sorts."""

    seen: tuple[tuple[str, str], ...]
    unseen_kinds: tuple[tuple[str, str], ...]
    unseen_pairs: tuple[tuple[str, str], ...]


def combinations() -> Combinations:
    """Single instructions and all pairs of them, with every kind of content.

    A pair is not trained on with content that one of its instructions is not trained on with;
    where the pair is not trained on either, it is left out altogether.
    """
    pairs = [f"{a}{THEN}{b}" for a in INSTRUCTIONS for b in INSTRUCTIONS]
    seen, kinds, unseen = [], [], []
    for instruction in (*INSTRUCTIONS, *pairs):
        for kind in KINDS:
            is_known = not {(step, kind) for step in instruction.split(THEN)} & UNSEEN_KINDS
            if instruction in UNSEEN_PAIRS:
                unseen += [(instruction, kind)] * is_known
            elif is_known:
                seen.append((instruction, kind))
            elif THEN not in instruction:
                kinds.append((instruction, kind))
    return Combinations(tuple(seen), tuple(kinds), tuple(unseen))


def draw_questions(
    among: Sequence[tuple[str, str]], count: int, seed: int, known: Iterable[Question] = ()
) -> list[Question]:
    """Questions of those combinations, single instructions as often as pairs, none in `known`.

    They may repeat. InputError where there are no combinations or the seed is no whole number.
    """
    if not among:
        raise InputError("there is nothing to ask", "give combinations")
    generator, avoid = seeded(seed, "questions"), {(q.instruction, q.content) for q in known}
    single = [one for one in among if THEN not in one[0]]
    pairs = [one for one in among if THEN in one[0]]
    groups = [group for group in (single, pairs) if group]

    def drawn() -> Iterator[Question]:
        while True:
            instruction, kind = choose(choose(groups, generator), generator)
            question = Question(instruction, _content(kind, generator), kind)
            if question[:2] not in avoid:
                yield question

    endless = drawn()
    return [next(endless) for _ in range(count)]


def examples_for(question: Question, count: int, generator: random.Random) -> list[Question]:
    """Other questions of the same instruction and kind, to be shown answered before it."""
    found: list[Question] = []
    while len(found) < count:
        other = question._replace(content=_content(question.kind, generator))
        if other.content != question.content:
            found.append(other)
    return found


def _content(kind: str, generator: random.Random) -> str:
    length = choose(range(SHORTEST, LONGEST + 1), generator)
    return "".join(choose(KINDS[kind], generator) for _ in range(length))
