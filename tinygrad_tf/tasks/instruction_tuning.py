"""Instruction tuning: a GPT learns to follow instructions (source document S4, introduction).

The loss is on the answers alone. A base that was trained on examples without instructions can go by
examples (few-shot, Brown et al. 2020); tuned, it follows an instruction without any (zero-shot),
also where the combination is new to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tinygrad_tf.corpus.combinations import (
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
from tinygrad_tf.tasks.example_task import ExampleTask
from tinygrad_tf.tasks.examples import Counts, Padded, Rows, in_batches
from tinygrad_tf.tasks.instruction_tokens import InstructionTokenizer
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files
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

MODEL: dict[str, Any] = {
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

Turn = tuple[str, str]  # the prompt, and the text to be written


class AnswerExamples:
    """Dialogues whose answers are the targets; prompts are not.

    last_only: nor are the answers before the last, which are shown as examples.
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
        """Return ids (B, T) and targets (B, T), IGNORE on prompts and padding."""
        width = int(self.lengths[rows].max()) - 1
        ids = np.zeros((len(rows), width), np.int64)  # any id: a causal model never looks there
        targets = np.full((len(rows), width), IGNORE, np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(self._ids[row]) - 1] = self._ids[row][:-1]
            targets[place, : len(self._ids[row]) - 1] = self._labels[row][1:]
        return Padded((ids, targets), self.targets[rows])


class InstructionTask(ExampleTask):
    """A GPT, questions with their answers, and the share answered right to the last letter.

    train: the questions to train on; tests: those held out, by group; base: the model
    whose weights it starts from, which are part of the run.
    """

    name: ClassVar[str] = "instructions"

    def __init__(
        self,
        recipe: Recipe,
        train: Sequence[Question],
        tests: Mapping[str, Sequence[Question]],
        base: GPT | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.recipe, self.notes, self.tests = recipe, notes, tests
        self._base = base
        self.tokenizer = InstructionTokenizer()
        self.unnamed = recipe.options["unnamed"] is True
        self.training_set = AnswerExamples(self._training(train), self.tokenizer)
        shots = SHOTS if self.unnamed else 0
        held_out = self._dialogues(tests["seen"], shots, unnamed=self.unnamed)
        self.validation_set = AnswerExamples(held_out, self.tokenizer)
        self.files = {
            TRAIN_FILE: format_questions({"": train}),
            TEST_FILE: format_questions(tests),
        } | ({} if base is None else {BASE_FILE: pack_weights(base)})

    @classmethod
    def create(
        cls,
        *,
        init_from: str | Path | None = None,
        unnamed: bool = False,
        questions: int = QUESTIONS,
        held_out: int = HELD_OUT,
        **settings: Any,
    ) -> InstructionTask:
        """Make the task of a new run; init_from: a run of this task whose weights to start from.

        unnamed: examples that never say what is asked, for a base that can only go by examples.
        questions: how many to train on; held_out: how many to test with, of each group.
        `settings` are those of GPTConfig and of TrainOptions. Raises InputError where the base is
        no such run, or of another shape than the settings.
        """
        options = TrainOptions.sort(GPTConfig, settings)
        groups, seed = combinations(), options.seed
        train = draw_questions(groups.seen, questions, seed)
        tests = {
            group: draw_questions(getattr(groups, group), held_out, seed + 1, known=train)
            for group in GROUPS
        }
        shape, base, notes = MODEL | options.model, None, []
        if init_from is not None:
            run = cls.open_run(init_from)
            shape = {n: v for n, v in run.recipe.model.items() if n != "vocab_size"}
            if shape | options.model != shape:
                raise InputError(
                    f"the model of {init_from} has a shape of its own",
                    "leave out the model's options",
                )
            base = GPT(GPTConfig.from_dict(run.recipe.model))
            base.load_tensors(run.weights())
            notes.append(f"it starts as {init_from} ended")
        elif not unnamed:
            notes.append(
                "it starts from nothing; `init_from` starts from a run that was made with "
                "`unnamed=True`"
            )
        config = GPTConfig(vocab_size=InstructionTokenizer.vocab_size, **shape)
        own = {
            "unnamed": unnamed,
            "init_from": None if init_from is None else str(Path(init_from).absolute()),
        }
        title = "instructions-base" if unnamed else "instructions"
        recipe = options.recipe(title, config.as_dict(), TRAINING, BATCH_SIZE, own)
        return cls(recipe, train, tests, base, notes=notes)

    @classmethod
    def from_files(cls, recipe: Recipe, files: Files) -> InstructionTask:
        """Make the task again of a recipe and of the files that its run has kept."""
        train, tests = (parse_questions(files[name]) for name in (TRAIN_FILE, TEST_FILE))
        base = None
        if BASE_FILE in files:
            base = GPT(GPTConfig.from_dict(recipe.model))
            unpack_weights(files[BASE_FILE], base)
        return cls(recipe, train[""], tests, base)

    @cached_property
    def model(self) -> GPT:
        """The GPT that is trained."""
        return self._initial_model()

    def _initial_model(self) -> GPT:
        """Make the model as it is before its first step."""
        model = GPT(GPTConfig.from_dict(self.recipe.model), self.recipe.seed)
        if self._base is not None:
            model.load_tensors(self._base.file_tensors())
        return model

    def _training(self, questions: Sequence[Question]) -> list[list[Turn]]:
        """Make dialogues: most of one question; some, and all unnamed ones, after others."""
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
        """Return the loss of guessing each token alike, in nats per token."""
        return {"uniform": math.log(InstructionTokenizer.vocab_size)}

    def evaluate(self) -> dict[str, Any]:
        """Return the shares answered right to the last letter, before and after the training.

        By group: combinations trained on (with other content), an instruction with a kind of
        content that it was not trained on with, and pairs of instructions that were not trained
        on; each asked in every one of WAYS.
        """
        after = self._figures(self.model)
        before = self._figures(self._initial_model().eval())
        samples = [
            {"question": q.prompt.strip(), "right": q.working.rstrip("\n").split("\n")}
            for group in GROUPS
            for q in self.tests[group][:SAMPLES]
        ]
        return {
            "before": before,
            "after": after,
            "shots": SHOTS,
            "unnamed": self.unnamed,
            "samples": samples,
        }

    def _figures(self, model: Any) -> dict[str, dict[str, float]]:
        def share(group: str, shots: int, unnamed: bool) -> float:
            dialogues = self._dialogues(self.tests[group], shots, unnamed=unnamed)
            return exact_match(model, AnswerExamples(dialogues, self.tokenizer, last_only=True))

        return {
            group: {way: share(group, *style) for way, style in WAYS.items()} for group in GROUPS
        }


def dialogue(question: Question, shots: int, number: int, *, unnamed: bool = False) -> list[Turn]:
    """Return `shots` other questions of its kind with answers, then the question with its own.

    With `unnamed` they never say what is asked. The others are a function of `number`.
    """
    generator = seeded(number, "examples before " + question.prompt)
    questions = [*examples_for(question, shots, generator), question]
    return [q.unnamed if unnamed else (q.prompt, q.working) for q in questions]


@no_grad()
def exact_match(model: GPT, examples: AnswerExamples) -> float:
    """Return the share whose every target is the likeliest token after the right ones before it.

    That is the share that greedy decoding writes without a mistake.
    """
    right = 0
    for batch in in_batches(examples, InstructionTask.EVALUATION_ROWS):
        ids, targets = batch.arguments
        chosen = model(ids).data.argmax(axis=-1)
        right += int(((chosen == targets) | (targets == IGNORE)).all(axis=1).sum())
    return right / len(examples.lengths)


def format_questions(groups: Mapping[str, Iterable[Question]]) -> bytes:
    """Write a question a line: its group, instruction, kind and content, with tabs between."""
    rows = (
        f"{group}\t{question.instruction}\t{question.kind}\t{question.content}\n"
        for group, questions in groups.items()
        for question in questions
    )
    return "".join(rows).encode()


def parse_questions(content: bytes) -> dict[str, list[Question]]:
    """Read the questions of a file that `format_questions` wrote, by group."""
    groups: dict[str, list[Question]] = {}
    for line in content.decode().splitlines():
        group, instruction, kind, text = line.split("\t")
        groups.setdefault(group, []).append(Question(instruction, text, kind))
    return groups


def pack_weights(model: GPT) -> bytes:
    """Write every parameter in order, float32, little-endian."""
    return b"".join(p.data.astype("<f4").tobytes() for p in model.parameters())


def unpack_weights(content: bytes, model: GPT) -> None:
    """Read what `pack_weights` wrote into a model of the same shape; InputError for another."""
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
