"""Instruction tuning: a GPT learns to do what it is told (source document S4, introduction).

The loss is on the answers alone. A base that only ever read examples which do not say what is asked
can go by examples (few-shot, Brown et al. 2020); tuned, it does what it is told without any
(zero-shot), also where the combination is new to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tinygrad_tf.corpus.combinations import (
    Combinations,
    Question,
    combinations,
    draw_questions,
    examples_for,
)
from tinygrad_tf.corpus.splits import seeded
from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.tasks.examples import Counts, Padded, Rows, in_batches
from tinygrad_tf.tasks.instruction_tokens import InstructionTokenizer
from tinygrad_tf.tasks.task import Files, OpenedRun, Task, TaskOptions, TaskRecipe
from tinygrad_tf.types import IGNORE

TRAIN_FILE, TEST_FILE, BASE_FILE = "data/train.tsv", "data/held_out.tsv", "data/base.f32"
GROUPS = ("seen", "unseen_kinds", "unseen_pairs")

QUESTIONS, HELD_OUT = 16_000, 300  # to train on; to test with, of each group
SHOTS = 2  # examples before a question that is asked few-shot
FEW_SHOT_SHARE = 6  # one question in so many is trained on few-shot
# How a question is asked: after so many examples, and whether what to do is left unsaid.
WAYS = {
    "zero_shot": (0, False),
    "few_shot": (SHOTS, False),
    "few_shot_unnamed": (SHOTS, True),
}
SAMPLES = 5
EVALUATION_ROWS = 128

MODEL = {
    "block_size": 112,
    "n_layer": 3,
    "n_head": 4,
    "n_embd": 64,
    "activation": "gelu_tanh",
    "init_std": 0.05,
    "hidden_std": 0.08,
}
TRAINING = {
    "steps": 3000,
    "learning_rate": 4e-3,
    "min_lr": 0.0,
    "warmup": 50,
    "beta2": 0.99,
    "eval_every": 250,
    "checkpoint_every": 500,
}
BATCH_SIZE = 64

Turn = tuple[str, str]  # what is given, and what is to be written


class AnswerExamples:
    """Dialogues of which the answers are learned: the targets of what is given do not count.

    last_only: nor do the answers before the last, which are shown as examples.
    """

    def __init__(
        self,
        dialogues: Sequence[Sequence[Turn]],
        tokenizer: InstructionTokenizer,
        *,
        last_only: bool = False,
    ) -> None:
        self._ids, self._labels = [], []
        for turns in dialogues:
            parts = [tokenizer.encode(text) for turn in turns for text in turn]
            labels = [ids if n % 2 else np.full(len(ids), IGNORE) for n, ids in enumerate(parts)]
            if last_only:
                labels[:-1] = [np.full(len(ids), IGNORE) for ids in parts[:-1]]
            self._ids.append(np.concatenate(parts))
            self._labels.append(np.concatenate(labels))
        self.lengths: Counts = np.array([len(ids) for ids in self._ids], np.int64)
        self.targets: Counts = np.array([np.count_nonzero(x != IGNORE) for x in self._labels])

    def batch(self, rows: Rows, rng: np.random.Generator) -> Padded:
        """Ids (B, T) and targets (B, T), IGNORE on what is given and on the padding."""
        width = int(self.lengths[rows].max()) - 1
        ids = np.zeros((len(rows), width), np.int64)  # any id: a causal model never looks there
        targets = np.full((len(rows), width), IGNORE, np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(self._ids[row]) - 1] = self._ids[row][:-1]
            targets[place, : len(self._ids[row]) - 1] = self._labels[row][1:]
        return Padded((ids, targets), self.targets[rows])


class InstructionTask(Task):
    """A GPT, questions with their answers, and how many it gets right to the last letter.

    The base that it starts from is part of the run, where there is one.
    """

    name: ClassVar[str] = "instructions"

    def __init__(self, recipe: TaskRecipe, files: Files, notes: Iterable[str] = ()) -> None:
        self.recipe, self.files, self.notes = recipe, files, tuple(notes)
        self.tokenizer = InstructionTokenizer()
        self.config = GPTConfig.from_dict(recipe.model)
        self.unnamed = recipe.options["unnamed"] is True
        train, self.tests = (
            parse_questions(files[TRAIN_FILE])[""],
            parse_questions(files[TEST_FILE]),
        )
        self.training = AnswerExamples(self._training(train), self.tokenizer)
        asked = self._dialogues(
            self.tests["seen"], SHOTS if self.unnamed else 0, unnamed=self.unnamed
        )
        self.validation = AnswerExamples(asked, self.tokenizer)
        self.model: GPT = self._start()

    @classmethod
    def from_files(cls, recipe: TaskRecipe, files: Files) -> InstructionTask:
        """The task of a recipe and of the files of `prepare_instructions`."""
        return cls(recipe, files)

    def _start(self) -> GPT:
        """The model before its first step."""
        model = GPT(self.config, self.recipe.seed)
        if BASE_FILE in self.files:
            unpack_weights(self.files[BASE_FILE], model)
        return model

    def _training(self, questions: Sequence[Question]) -> list[list[Turn]]:
        """Most of them alone; some, and all that are unnamed, after others with their answers."""
        if self.unnamed:
            return self._dialogues(questions, SHOTS, unnamed=True)
        few = len(questions) // FEW_SHOT_SHARE
        return [
            *self._dialogues(questions[:few], SHOTS, unnamed=False),
            *self._dialogues(questions[few:], 0, unnamed=False),
        ]

    def _dialogues(
        self, questions: Sequence[Question], shots: int, *, unnamed: bool
    ) -> list[list[Turn]]:
        return [
            dialogue(question, shots, number, unnamed=unnamed)
            for number, question in enumerate(questions)
        ]

    def references(self) -> dict[str, float | None]:
        """What guessing any token costs, nats per token."""
        return {"uniform": math.log(InstructionTokenizer.vocab_size)}

    def evaluate(self) -> dict[str, Any]:
        """Shares answered right to the last letter, working included, before and after.

        By group: combinations trained on (with other content), an instruction with a kind of
        content that it was not trained on with, and pairs of instructions that were not trained
        on; each asked in every one of WAYS.
        """
        after = self._figures(self.model)
        before = self._figures(self._start().eval())
        asked = [question for group in GROUPS for question in self.tests[group][:SAMPLES]]
        told = [
            {"question": q.prompt.strip(), "right": q.working.rstrip("\n").split("\n")}
            for q in asked
        ]
        return {
            "before": before,
            "after": after,
            "shots": SHOTS,
            "unnamed": self.unnamed,
            "samples": told,
        }

    def _figures(self, model: Any) -> dict[str, dict[str, float]]:
        def share(group: str, shots: int, unnamed: bool) -> float:
            dialogues = self._dialogues(self.tests[group], shots, unnamed=unnamed)
            return exact_match(model, AnswerExamples(dialogues, self.tokenizer, last_only=True))

        return {
            group: {way: share(group, *asked) for way, asked in WAYS.items()} for group in GROUPS
        }


def dialogue(question: Question, shots: int, number: int, *, unnamed: bool = False) -> list[Turn]:
    """So many other questions of its kind with their answers, then the question with its own.

    Unnamed, they never say what is asked. The others are a function of `number`.
    """
    generator = seeded(number, "examples before " + question.prompt)
    asked = [*examples_for(question, shots, generator), question]
    return [q.unnamed if unnamed else (q.prompt, q.working) for q in asked]


@no_grad()
def exact_match(model: GPT, examples: AnswerExamples) -> float:
    """The share whose every target is the likeliest token after the right ones before it.

    That is the share that greedy decoding writes without a fault.
    """
    right = 0
    for batch in in_batches(examples, EVALUATION_ROWS):
        ids, targets = batch.arguments
        chosen = model(ids).data.argmax(axis=-1)
        right += int(((chosen == targets) | (targets == IGNORE)).all(axis=1).sum())
    return right / len(examples.lengths)


def prepare_instructions(
    options: TaskOptions,
    *,
    init_from: Path | None = None,
    unnamed: bool = False,
    questions: int = QUESTIONS,
    held_out: int = HELD_OUT,
) -> InstructionTask:
    """The task of a new run; init_from: a run of the same kind whose weights to start from.

    unnamed: examples that never say what is asked, for a base that can only go by examples.
    questions: how many to train on; held_out: how many to test with, of each group.
    Raises InputError where the base is no such run, or of another shape than is asked.
    """
    seed = 1337 if options.seed is None else options.seed
    groups: Combinations = combinations()
    train = draw_questions(groups.seen, questions, seed)
    tests = {
        group: draw_questions(getattr(groups, group), held_out, seed + 1, known=train)
        for group in GROUPS
    }
    files = {TRAIN_FILE: format_questions({"": train}), TEST_FILE: format_questions(tests)}
    shape, notes = options.shape(**MODEL), []
    if init_from is not None:
        base = OpenedRun.open(init_from, InstructionTask.name)
        shape = {n: v for n, v in base.recipe.model.items() if n != "vocab_size"}
        if options.shape(**shape) != shape:
            raise InputError(
                f"the model of {init_from} has a shape of its own", "leave out the model's options"
            )
        model = GPT(GPTConfig(vocab_size=InstructionTokenizer.vocab_size, **shape))
        model.load_tensors(base.weights())
        files[BASE_FILE] = pack_weights(model)
        notes.append(f"it starts as {init_from} ended")
    elif not unnamed:
        notes.append("it starts from nothing; --init-from starts from a run with --unnamed")
    config = GPTConfig(vocab_size=InstructionTokenizer.vocab_size, **shape)
    own = {
        "unnamed": unnamed,
        "init_from": None if init_from is None else str(init_from.absolute()),
    }
    title = "instructions-base" if unnamed else "instructions"
    recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
    return InstructionTask(recipe, files, notes)


def format_questions(groups: Mapping[str, Iterable[Question]]) -> bytes:
    """One question a line: its group, instruction, kind and content, with tabs between."""
    rows = (
        f"{group}\t{question.instruction}\t{question.kind}\t{question.content}\n"
        for group, questions in groups.items()
        for question in questions
    )
    return "".join(rows).encode()


def parse_questions(content: bytes) -> dict[str, list[Question]]:
    """The questions of a file that `format_questions` made, by group."""
    groups: dict[str, list[Question]] = {}
    for line in content.decode().splitlines():
        group, instruction, kind, text = line.split("\t")
        groups.setdefault(group, []).append(Question(instruction, text, kind))
    return groups


def pack_weights(model: GPT) -> bytes:
    """Every parameter in order, float32, little-endian."""
    return b"".join(p.data.astype("<f4").tobytes() for p in model.parameters())


def unpack_weights(content: bytes, model: GPT) -> None:
    """The reverse of `pack_weights`, into a model of the same shape; InputError for another."""
    flat = np.frombuffer(content, "<f4")
    if flat.size != model.parameter_count():
        raise InputError(
            f"the weights to start from are {flat.size:,} numbers, the model has "
            f"{model.parameter_count():,}",
            "start a new run from them",
        )
    start = 0
    for parameter in model.parameters():
        parameter.data[...] = flat[start : start + parameter.size].reshape(parameter.shape)
        start += parameter.size
