"""Splits: what is held out, what stands before it, and where its far words are."""

import numpy as np
import pytest

from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.text import CharTokenizer
from toymodels.comparison import far_accuracy
from toymodels.held_out import (
    UNKNOWN,
    hold_out_stories,
    spell_stories,
    split_stories,
    split_tokens,
    split_words,
)
from toymodels.model import Score
from toymodels.stories import story_words

TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 30


def letters(text=TEXT, fraction=0.1):
    tokenizer = CharTokenizer.from_text(text)
    return split_tokens("a text", tokenizer.encode(text), tokenizer, fraction)


def test_the_held_out_part_is_the_end_and_has_the_rest_before_it():
    split = letters()
    assert split.targets == split.chars == len(TEXT) // 10
    assert split.show(split.held_out) == TEXT[-len(TEXT) // 10 - split.first :]
    assert split.show(split.train.tokens) == TEXT[: len(TEXT) - len(TEXT) // 10]


def test_words_that_training_never_saw_are_one_token():
    split = split_words("a text", "a b, a b. " * 9 + "a new, newer b.", 7 / 60)
    # The last 7 tokens: . a new , newer b .
    assert split.show(split.held_out[split.first :]) == f". a {UNKNOWN}, {UNKNOWN} b."
    assert "2 of the 7" in split.notes[0] and split.chars == len(". a new, newer b.")
    with pytest.raises(InputError, match="'new' is not among"):
        split.read("a new")


@pytest.mark.parametrize("make", [letters, lambda t, f: split_words("a text", t, f)])
def test_an_empty_held_out_part_is_refused(make):
    with pytest.raises(InputError, match="held-out part of a text is empty"):
        make("one two three", 1e-9)


@pytest.fixture(scope="module")
def stories():
    train, held_out = hold_out_stories(12_000, 0.2, 5)
    return train, held_out, corpus.floor(held_out)


def test_stories_are_split_once_and_by_the_seed(stories):
    train, held_out, _ = stories
    whole = corpus.generate(12_000).stories
    assert sorted([*train, *held_out]) == sorted(whole)
    assert len(held_out) == round(0.2 * len(whole))
    assert hold_out_stories(12_000, 0.2, 5)[1] == held_out != hold_out_stories(12_000, 0.2, 6)[1]


def test_words_and_characters_ask_for_the_same_far_words(stories):
    train, held_out, floor = stories
    words = split_stories(train, held_out, floor.nats)
    spelled = spell_stories(
        train, held_out, CharTokenizer.from_text(corpus.generate(12_000).text), floor.nats
    )
    assert words.chars == spelled.chars == spelled.targets == floor.chars
    assert spelled.show(spelled.held_out) == "".join(f"{s}\n" for s in held_out)
    far = [
        split.show(split.held_out[a:b])
        for split in (words, spelled)
        for a, b in zip(split.far.start, split.far.stop, strict=True)
    ]
    assert len(far) > 20 and far[: len(far) // 2] == far[len(far) // 2 :]
    assert words.far.chance == spelled.far.chance and 0.1 < words.far.chance < 0.5
    assert words.targets == sum(len(story_words(s)) + 1 for s in held_out)


def test_a_far_word_is_right_if_all_of_it_is(stories):
    train, held_out, _ = stories
    words = split_stories(train, held_out, 0.0)
    right = np.zeros(len(words.held_out), bool)
    right[words.far.start[::2]] = True
    assert far_accuracy(Score(right * 1.0, right), words) == pytest.approx(0.5, abs=0.05)
    tokenizer = CharTokenizer.from_text(corpus.generate(12_000).text)
    spelled = spell_stories(train, held_out, tokenizer, 0.0)
    right = np.ones(len(spelled.held_out), bool)
    assert far_accuracy(Score(right * 1.0, right), spelled) == 1
    right[spelled.far.stop - 1] = False
    assert far_accuracy(Score(right * 1.0, right), spelled) == 0
