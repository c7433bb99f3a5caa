"""A model that was tuned on instructions: a question in, its working and its answer out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

import numpy as np

from tinygrad_tf.corpus.combinations import (
    INSTRUCTIONS,
    LONGEST,
    SHORTEST,
    THEN,
    Question,
    carry_out,
    combinations,
    examples_for,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.generation import generate_tokens
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.tasks.instruction_tokens import InstructionTokenizer
from tinygrad_tf.tasks.instruction_tuning import InstructionTask
from tinygrad_tf.tasks.predictor import Predictor
from tinygrad_tf.train.stored_run import StoredRun
from tinygrad_tf.train.task import Task

MOST_STEPS = 2


@dataclass(frozen=True)
class Reply:
    """The lines that the model wrote, the last of which is its answer, and the right lines.

    trained_on: whether this instruction was trained on with this kind of content.
    """

    question: str
    working: tuple[str, ...]
    right: tuple[str, ...]
    trained_on: bool

    @property
    def answer(self) -> str:
        """The last line."""
        return self.working[-1] if self.working else ""

    @property
    def is_right(self) -> bool:
        """Return whether the answer is right, whatever the working."""
        return self.answer == self.right[-1]


class InstructionModel(Predictor):
    """A GPT that was tuned on instructions."""

    task: ClassVar[type[Task]] = InstructionTask
    model: GPT

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        self.tokenizer = InstructionTokenizer()

    @classmethod
    def from_run(cls, run: StoredRun) -> InstructionModel:
        """Make the model, without its weights, of what a run has kept."""
        return cls(GPT(GPTConfig.from_dict(run.recipe.model)))

    def ask(self, text: str, shots: int = 0, seed: int = 0) -> Reply:
        """Answer a question such as `reverse: stone`, after `shots` answered examples of its kind.

        Raises InputError for an unknown instruction, characters that the model does not know,
        and more than fits into its context.
        """
        question = _parse(text)
        right = carry_out(question.instruction, question.content)
        examples = examples_for(question, shots, random.Random(seed))
        text = "".join(q.prompt + q.working for q in examples) + question.prompt
        ids, room = self.tokenizer.encode(text), self.model.config.block_size
        need = len(ids) + len(self.tokenizer.encode(question.working))
        if need > room:
            raise InputError(
                f"the question takes {need} tokens with its answer, and the model reads {room}",
                "ask about something shorter, or with fewer `shots`",
            )
        steps = question.instruction.count(THEN) + 1
        written = "".join(self._lines(ids, steps, room - len(ids)))
        trained = (question.instruction, question.kind) in combinations().seen
        return Reply(
            question.prompt.strip(),
            tuple(written.removesuffix("\n").split("\n")),
            tuple(right),
            trained and SHORTEST <= len(question.content) <= LONGEST,
        )

    def _lines(self, ids: np.ndarray, count: int, most: int) -> Iterator[str]:
        """Yield the text that the model writes, up to the end of `count` lines."""
        tokens = generate_tokens(self.model, ids[None], most, temperature=0.0)
        pieces = (self.tokenizer.decode(chosen) for chosen in tokens)
        for _ in range(count):
            yield from takewhile(lambda piece: piece != "\n", pieces)
            yield "\n"


def _parse(text: str) -> Question:
    instruction, colon, content = (part.strip() for part in text.strip().partition(":"))
    steps = instruction.split(THEN)
    if not colon or len(steps) > MOST_STEPS:
        known = ", ".join(INSTRUCTIONS)
        raise InputError(
            f"{text!r} is not one or two instructions, a colon and a text",
            f'write as in "reverse then upper: stone"; instructions are {known}',
        )
    carry_out(instruction, content)
    is_ascii = content.isascii() and content.isalnum()
    if not is_ascii:
        raise InputError(
            f"{content!r} is not made of letters a to z and digits", "ask about such a text"
        )
    return Question(instruction, content, _kind(content))


def _kind(content: str) -> str:
    """Return the kind of content as in training; "" for none of them, such as capitals."""
    if content.isdigit():
        return "number"
    if not content.islower() or not content.replace(" ", "").isalnum():
        return ""
    return "word" if content.isalpha() else "code"
