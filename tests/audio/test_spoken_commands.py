"""The spoken commands: what the grammar says, what is held out, and that a seed draws the same."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf.audio.commands import all_commands, split_commands, spoken_commands
from tinygrad_tf.audio.phonemes import WORDS
from tinygrad_tf.errors import InputError


def pairs(command: str) -> set[tuple[str, str]]:
    return set(pairwise(["START", *command.split(), "END"]))


def test_the_documents_commands_are_in_the_grammar() -> None:
    assert {
        "show me my directories please",
        "show me my files please",
        "show me my photos please",
        "find my files",
        "check whether the battery ran down please",
        "check whether the program ran please",
        "check the program log and find out whether it ran please",
        "check the battery log and find out whether it ran down please",
    } <= set(all_commands())


def test_the_grammar_is_small_but_not_tiny() -> None:
    commands = all_commands()
    assert len(set(commands)) == len(commands) >= 200
    assert {word for command in commands for word in command.split()} == set(WORDS)
    assert max(len(command.split()) for command in commands) == 12
    assert all(command == " ".join(command.split()) for command in commands)
    # The log decides, five words later, whether it ran down.
    for command in commands:
        if "ran" in command:
            runs_down = "battery" in command or "engine" in command
            assert ("ran down" in command) == runs_down


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_held_out_sentences_are_new_but_their_pairs_of_words_are_not(seed: int) -> None:
    train, held_out = split_commands(seed)
    assert sorted(train + held_out) == sorted(all_commands())
    assert len(held_out) >= 0.19 * len(all_commands())
    known = set().union(*map(pairs, train))
    assert all(pairs(command) <= known for command in held_out)
    assert split_commands(seed) == (train, held_out)


def test_other_seeds_hold_out_other_sentences() -> None:
    assert split_commands(0)[1] != split_commands(1)[1]


def test_the_same_seed_draws_the_same_whatever_the_count() -> None:
    few, more = list(spoken_commands(3, seed=5)), list(spoken_commands(6, seed=5))
    for one, other in zip(few, more[:3], strict=True):
        assert (one.text, one.speaker) == (other.text, other.speaker)
        assert np.array_equal(one.samples, other.samples)
    assert [c.text for c in more] != [c.text for c in spoken_commands(6, seed=6)]


@pytest.mark.slow
def test_held_out_commands_share_neither_sentence_nor_speaker() -> None:
    heard = list(spoken_commands(60, n_speakers=10))
    new = list(spoken_commands(60, n_speakers=10, held_out=True))
    train, held_out = split_commands()
    assert {c.text for c in heard} <= set(train) and {c.text for c in new} <= set(held_out)
    speakers = {c.speaker for c in heard}
    assert len(speakers) == 10 and not speakers & {c.speaker for c in new}


@pytest.mark.parametrize("count, n_speakers", [(0, 1), (1, 0)])
def test_none_cannot_be_drawn(count: int, n_speakers: int) -> None:
    with pytest.raises(InputError):
        spoken_commands(count, n_speakers=n_speakers)
