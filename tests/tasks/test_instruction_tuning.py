"""Learning instructions: the loss is on answers alone, figures are honest, runs go on exactly."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tinygrad_tf.corpus.combinations import Question, combinations, draw_questions
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks.instruction_model import InstructionModel
from tinygrad_tf.tasks.instruction_tokens import InstructionTokenizer
from tinygrad_tf.tasks.instruction_tuning import (
    GROUPS,
    WAYS,
    AnswerExamples,
    InstructionTask,
    dialogue,
    exact_match,
    format_questions,
    pack_weights,
    parse_questions,
    unpack_weights,
)
from tinygrad_tf.train.optim import AdamW
from tinygrad_tf.train.parallel import loss_and_gradients
from tinygrad_tf.train.run import Run
from tinygrad_tf.types import IGNORE

TOKENS = InstructionTokenizer()
TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16}


def prepare(**changes) -> InstructionTask:
    tiny = {"steps": 4, "eval_every": 2, "checkpoint_every": 2, "batch_size": 8, "threads": 1}
    return InstructionTask.create(**{**TINY, **tiny, "questions": 400, "held_out": 20, **changes})


def trained(out: Path, **changes) -> list[dict]:
    return [event.as_json() for event in Run.create(prepare(**changes), out).run()]


# --- tokens ---


def test_a_name_is_one_token_only_where_it_instructs():
    text = "reverse then copy: copy\ncopy: ypoc\nypoc\n"
    ids = TOKENS.encode(text)
    assert TOKENS.decode(ids) == text
    assert [TOKENS.tokens[i] for i in ids[:9]] == [
        *("reverse", " then ", "copy", ": ", "c", "o", "p", "y", "\n")
    ]
    assert TOKENS.vocab_size == len(set(TOKENS.tokens)) == len(TOKENS.tokens)


@pytest.mark.parametrize("text", ["copy: é\n", "copy: a-b\n", "copy: a b\n"])
def test_unknown_characters_are_refused(text):
    with pytest.raises(InputError, match="unknown to this model"):
        TOKENS.encode(text)


# --- what counts in the loss ---


@pytest.mark.parametrize("last_only", [True, False])
def test_only_answers_are_targets(last_only):
    turns = [("reverse: ab\n", "ba\n"), ("reverse: xyz\n", "zyx\n")]
    examples = AnswerExamples([turns, [("copy: a\n", "a\n")]], TOKENS, last_only=last_only)
    batch = examples.batch(np.array([0, 1]), np.random.default_rng())
    ids, targets = batch.arguments
    learned = [TOKENS.decode(row[row != IGNORE]) for row in targets]
    assert learned == ["zyx\n" if last_only else "ba\nzyx\n", "a\n"]
    assert batch.count == examples.targets.sum() == np.count_nonzero(targets != IGNORE)
    for row, wanted in zip(ids, targets, strict=True):
        places = np.flatnonzero(wanted != IGNORE)
        inside = places[places + 1 < len(row)]
        followed = wanted[inside] == row[inside + 1]
        assert followed[:-1].all(), "each target is the next id"


def test_changing_a_question_that_is_not_asked_changes_no_gradient_of_the_loss_elsewhere():
    """What is given has no target of its own: with no answer at all nothing is learned."""
    task = prepare()
    examples = AnswerExamples([[("copy: abc\n", "")]], TOKENS)
    assert examples.targets.tolist() == [0]
    batch = examples.batch(np.array([0]), np.random.default_rng())
    assert task.model.loss(*batch.arguments).item() == 0.0


# --- the data of a run ---


def test_what_is_trained_on_and_what_is_asked_are_apart():
    task = prepare(questions=5000)
    train = parse_questions(task.files["data/train.tsv"])[""]
    groups = combinations()
    assert {(q.instruction, q.kind) for q in train} == set(groups.seen)
    for group in GROUPS:
        asked = task.tests[group]
        assert {(q.instruction, q.kind) for q in asked} <= set(getattr(groups, group))
        assert not {q[:2] for q in asked} & {q[:2] for q in train}
    again = format_questions({"": train})
    assert parse_questions(again)[""] == train


def test_examples_before_a_question_are_answered_and_the_same_every_time():
    question = Question("reverse then upper", "ab", "word")
    turns = dialogue(question, 2, 5)
    assert turns == dialogue(question, 2, 5) != dialogue(question, 2, 6)
    assert turns[-1] == ("reverse then upper: ab\n", "upper: ba\nBA\n") and len(turns) == 3
    assert dialogue(question, 0, 5, unnamed=True) == [(": ab\n", "BA\n")]


# --- runs ---


def test_exact_match_is_what_greedy_decoding_writes(tmp_path):
    """With a model that has learned a little, so that some answers are right and some wrong."""
    task = prepare(n_embd=32)
    asked = draw_questions([("first", "number"), ("last", "number")], 60, 0)
    examples = AnswerExamples([dialogue(q, 0, 0) for q in asked], TOKENS, last_only=True)
    optimizer, rng = AdamW(task.model, lr=1e-2), np.random.default_rng(0)
    for _ in range(60):
        batch = examples.batch(rng.integers(60, size=16), rng)
        optimizer.step(loss_and_gradients(task.model, batch)[1])
    asker = InstructionModel(task.model)
    replies = [asker.ask(q.prompt) for q in asked]
    right = sum(reply.working == reply.right for reply in replies)
    assert 0 < right < len(asked)
    assert exact_match(task.model, examples) == right / len(asked)


def test_a_run_tells_before_and_after_and_starts_from_another(tmp_path):
    base = trained(tmp_path / "base", unnamed=True)
    assert base[-1]["event"] == "report"
    assert base[-1]["figures"]["unnamed"] is True
    task = prepare(init_from=tmp_path / "base")
    start = pack_weights(task.model)
    kept = InstructionModel.load(tmp_path / "base").model
    assert pack_weights(kept) == start
    events = [event.as_json() for event in Run.create(task, tmp_path / "run").run()]
    figures = events[-1]["figures"]
    assert set(figures["before"]) == set(figures["after"]) == set(GROUPS)
    assert set(figures["after"]["seen"]) == set(WAYS)
    json.dumps(figures, allow_nan=False)
    assert pack_weights(InstructionModel.load(tmp_path / "base").model) == start, (
        "the base stays as it was"
    )


def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path):
    trained(tmp_path / "whole", steps=6)
    run = Run.create(prepare(steps=6), tmp_path / "parts")
    for event in run.run():
        if event.as_json().get("step") == 3:
            run.stop()
    for _ in Run.resume(InstructionTask, tmp_path / "parts").run():
        pass
    whole, parts = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")
    )
    assert whole == parts


def test_weights_of_another_shape_are_refused(tmp_path):
    trained(tmp_path / "base")
    with pytest.raises(InputError, match="a shape of its own"):
        prepare(n_embd=32, init_from=tmp_path / "base")
    model = InstructionModel.load(tmp_path / "base").model
    with pytest.raises(InputError, match="weights to start from are 2 numbers"):
        unpack_weights(np.zeros(2, "<f4").tobytes(), model)


# --- asking ---


@pytest.fixture(scope="module")
def asker() -> InstructionModel:
    return InstructionModel(prepare().model)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reverse tone", "is not one or two instructions"),
        ("copy then copy then copy: a", "is not one or two instructions"),
        ("sort: abc", "no instruction 'sort'"),
        ("reverse:", "nothing to reverse"),
        ("copy: a-b", "is not made of letters"),
        ("copy: żó", "is not made of letters"),
        ("copy: " + "a" * 100, "the model reads 112"),
    ],
)
def test_what_cannot_be_asked_is_refused(asker, text, said):
    with pytest.raises(InputError, match=said):
        asker.ask(text)


def test_a_reply_tells_what_is_right_and_whether_it_was_trained_on(asker):
    known: Callable[[str], bool] = lambda text: asker.ask(text).trained_on  # noqa: E731
    assert known("reverse: tone") and known(" reverse then copy :tone ")
    assert not known("reverse: 4711"), "a kind of content that it never had"
    assert not known("reverse then upper: tone"), "a pair that never came together"
    assert not known("reverse: stones"), "longer than any"
    assert not known("copy: Tone"), "capitals"
    reply = asker.ask("reverse then upper: tone", shots=1)
    assert reply.right == ("upper: enot", "ENOT") and len(reply.working) == 2
    assert reply.is_right == (reply.answer == "ENOT")


@pytest.mark.slow
def test_instructions_are_learned_and_combined(tmp_path):
    """As the command does, in fewer steps: far beyond chance, also where never trained on."""
    task = InstructionTask.create(steps=1200, eval_every=600, held_out=200)
    figures = list(Run.create(task, tmp_path / "run").run())[-1].figures
    before, after = figures["before"], figures["after"]
    assert before["seen"]["zero_shot"] < 0.01
    assert after["seen"]["zero_shot"] > 0.7
    assert after["unseen_kinds"]["zero_shot"] > 0.4
    assert after["unseen_pairs"]["zero_shot"] > 0.25
