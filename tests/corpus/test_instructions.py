"""Instructions: right answers, and what is held out of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.corpus.instructions import (
    LETTERS,
    TASKS,
    Instruction,
    draw_instructions,
    draw_words,
    instruct,
)
from tinygrad_tf.errors import InputError


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("copy", "cab"),
        ("reverse", "bac"),
        ("upper", "CAB"),
        ("double", "cabcab"),
        ("sort", "abc"),
        ("count", "3"),
        ("first", "c"),
        ("last", "b"),
    ],
)
def test_known_answers(task: str, answer: str) -> None:
    assert instruct(task, "cab") == Instruction(f"{task} cab = ", answer, task, "cab")


def test_a_held_out_word_is_known_from_other_tasks() -> None:
    train, held_out = draw_instructions()
    assert (len(train), len(held_out)) == (3600, 400)
    assert len({*train, *held_out}) == 4000 == 500 * len(TASKS)
    words = Counter(one.word for one in train)
    for one in held_out:
        assert words[one.word] >= len(TASKS) - 1
    assert set(Counter(one.task for one in held_out)) == set(TASKS)
    assert min(Counter(one.task for one in train).values()) > 400


@given(st.integers(1, 200), st.integers(1, 3), st.integers(0, 2), st.integers(0, 9))
def test_words_are_different_and_as_long_as_asked(
    count: int, shortest: int, more: int, seed: int
) -> None:
    longest = shortest + more
    if count > len(LETTERS) ** longest / 2:
        with pytest.raises(InputError, match="cannot be drawn"):
            draw_words(count, seed, shortest=shortest, longest=longest)
        return
    words = draw_words(count, seed, shortest=shortest, longest=longest)
    assert len(set(words)) == count
    assert all(shortest <= len(word) <= longest and set(word) <= set(LETTERS) for word in words)
    assert (
        draw_words((count + 1) // 2, seed, shortest=shortest, longest=longest)
        == (words[: (count + 1) // 2])
    )


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(InputError, match=r"no task 'fly'.*copy, reverse"):
        instruct("fly", "abc")
    with pytest.raises(InputError, match="nothing to copy"):
        instruct("copy", "")
    for share in (0, 0.5, -1):
        with pytest.raises(InputError, match="held out"):
            draw_instructions(10, held_out=share)
    for shortest, longest in ((0, 2), (3, 2)):
        with pytest.raises(InputError, match="letters"):
            draw_words(2, shortest=shortest, longest=longest)
