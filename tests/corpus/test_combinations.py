"""Instructions and their combinations: what is right, and what is never trained on."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.corpus.combinations import (
    INSTRUCTIONS,
    KINDS,
    LONGEST,
    SHORTEST,
    THEN,
    UNSEEN_KINDS,
    UNSEEN_PAIRS,
    Question,
    carry_out,
    combinations,
    draw_questions,
    examples_for,
)
from tinygrad_tf.errors import InputError


@pytest.mark.parametrize(
    ("instruction", "lines"),
    [
        ("copy", ["stone"]),
        ("reverse", ["enots"]),
        ("upper", ["STONE"]),
        ("double", ["stonestone"]),
        ("count", ["5"]),
        ("first", ["s"]),
        ("last", ["e"]),
        ("reverse then upper", ["upper: enots", "ENOTS"]),
        ("double then count", ["count: stonestone", "10"]),
        ("first then double then upper", ["double then upper: s", "upper: ss", "SS"]),
    ],
)
def test_known_answers(instruction, lines):
    assert carry_out(instruction, "stone") == lines
    question = Question(instruction, "stone")
    assert question.prompt == f"{instruction}: stone\n"
    assert question.working == "\n".join(lines) + "\n"
    assert question.unnamed == (": stone\n", lines[-1] + "\n")


@given(st.sampled_from(sorted(INSTRUCTIONS)), st.sampled_from(sorted(INSTRUCTIONS)), st.text("ab1"))
def test_what_remains_after_the_first_line_is_an_instruction_with_the_same_answer(a, b, content):
    if not content:
        return
    first, answer = carry_out(f"{a}{THEN}{b}", content)
    instruction, _, rest = first.partition(": ")
    assert instruction == b and carry_out(b, rest) == [answer]


@pytest.mark.parametrize(
    ("instruction", "content", "said"),
    [("sort", "abc", "no instruction 'sort'"), ("copy", "", "nothing to copy"), ("", "a", "''")],
)
def test_impossible_instructions_are_refused(instruction, content, said):
    with pytest.raises(InputError, match=said):
        carry_out(instruction, content)


def test_every_part_is_trained_on_and_no_combination_that_is_held_out():
    seen, kinds, pairs = combinations()
    assert {instruction for instruction, _ in pairs} == UNSEEN_PAIRS
    assert set(kinds) == UNSEEN_KINDS
    assert not set(seen) & ({*kinds} | {*pairs})
    assert not any(instruction in UNSEEN_PAIRS for instruction, _ in seen)
    for instruction, kind in seen:
        assert not any((step, kind) in UNSEEN_KINDS for step in instruction.split(THEN))
    together = [instruction.split(THEN) for instruction, _ in seen if THEN in instruction]
    alone = {instruction for instruction, _ in seen if THEN not in instruction}
    assert {a for a, _ in together} == {b for _, b in together} == alone == set(INSTRUCTIONS)
    for instruction, kind in UNSEEN_KINDS:
        others = {k for i, k in seen if i == instruction}
        assert others == set(KINDS) - {kind}
        assert kind in {k for i, k in seen if i != instruction}


def test_questions_are_drawn_from_what_is_asked_and_none_is_known():
    among = combinations().seen
    train = draw_questions(among, 500, 3)
    assert train == draw_questions(among, 500, 3) != draw_questions(among, 500, 4)
    test = draw_questions(among, 200, 3, known=train)
    assert not {q[:2] for q in train} & {q[:2] for q in test}
    for question in train:
        assert (question.instruction, question.kind) in among
        assert SHORTEST <= len(question.content) <= LONGEST
        assert set(question.content) <= set(KINDS[question.kind])
    pairs = sum(THEN in question.instruction for question in train)
    assert 200 < pairs < 300, "about half are pairs"
    with pytest.raises(InputError):
        draw_questions([], 1, 0)


def test_examples_are_of_the_same_kind_and_never_the_question_itself():
    question = Question("reverse", "12", "number")
    for seed in range(50):
        for other in examples_for(question, 3, random.Random(seed)):
            assert other.content != "12" and other.content.isdigit()
            assert (other.instruction, other.kind) == ("reverse", "number")
