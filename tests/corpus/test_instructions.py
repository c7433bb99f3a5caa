"""Instructions: right answers, and what is held out of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.corpus.instructions import (
    FIRST_STEPS,
    LETTERS,
    TASKS,
    Instruction,
    draw_instructions,
    draw_two_steps,
    draw_unnamed,
    draw_words,
    instruct,
)
from tinygrad_tf.errors import InputError

WORDS = st.text(LETTERS, min_size=1, max_size=6)


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
        ("reverse upper", "BAC"),
        ("double count", "6"),
        ("sort last", "c"),
        ("reverse reverse reverse", "bac"),
    ],
)
def test_known_answers(task: str, answer: str) -> None:
    assert instruct(task, "cab") == Instruction(f"{task} cab = ", answer, task, "cab")
    assert instruct(task, "cab", named=False).text == f"cab = {answer}"


@given(st.sampled_from(FIRST_STEPS), st.sampled_from(list(TASKS)), WORDS)
def test_two_steps_are_one_after_the_other(first: str, second: str, word: str) -> None:
    between = instruct(first, word).answer
    assert instruct(f"{first} {second}", word).answer == instruct(second, between).answer


def test_a_held_out_word_is_known_from_other_tasks() -> None:
    train, held_out = draw_instructions()
    assert (len(train), len(held_out)) == (3600, 400)
    assert len({*train, *held_out}) == 4000 == 500 * len(TASKS)
    words = Counter(one.word for one in train)
    for one in held_out:
        assert words[one.word] >= len(TASKS) - 1
    assert set(Counter(one.task for one in held_out)) == set(TASKS)
    assert min(Counter(one.task for one in train).values()) > 400


@given(st.integers(0, 2**32 - 1))
def test_held_out_pairs_of_steps_are_known_one_by_one(seed: int) -> None:
    train, held_out = draw_two_steps(3, seed)
    trained = {one.task for one in train}
    assert trained >= set(TASKS)
    asked = {one.task for one in held_out}
    assert len(asked) == 4 and not asked & trained and len(asked | trained) == 8 + 24
    for task in asked:
        first, second = task.split()
        assert any(other.startswith(first + " ") for other in trained)
        assert any(other.endswith(" " + second) for other in trained)
    assert len(held_out) == 4 * 3 and len(train) == 28 * 3


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, *TASKS]))
def test_what_is_not_named_is_one_task_or_all(seed: int, task: str | None) -> None:
    drawn = draw_unnamed(200, seed, task=task)
    assert {one.task for one in drawn} == ({task} if task else set(TASKS))
    for one in drawn:
        assert one.prompt == f"{one.word} = " and one.answer == TASKS[one.task](one.word)
    assert draw_unnamed(50, seed, task=task) == drawn[:50]
    assert {one.word for one in draw_unnamed(20, seed, words=("ab", "c"))} == {"ab", "c"}


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
    with pytest.raises(InputError, match="no task 'fly'"):
        draw_unnamed(1, task="sort fly")
    with pytest.raises(InputError, match="nothing to copy"):
        instruct("copy", "")
    for share in (0, 0.5, -1):
        with pytest.raises(InputError, match="held out"):
            draw_instructions(10, held_out=share)
        with pytest.raises(InputError, match="held out"):
            draw_two_steps(10, held_out=share)
    for count, words in ((0, None), (1, ())):
        with pytest.raises(InputError):
            draw_unnamed(count, words=words)
    for shortest, longest in ((0, 2), (3, 2)):
        with pytest.raises(InputError, match="letters"):
            draw_words(2, shortest=shortest, longest=longest)
