"""Drawing and holding out, on small languages and on all of ours."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf.corpus.opinions import draw_opinions
from tinygrad_tf.corpus.phrases import draw_phrases
from tinygrad_tf.corpus.pronouns import draw_coreferences
from tinygrad_tf.corpus.splits import Combination, choose, draw_split, hold_out_combinations, seeded
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.word_tokenizer import split_words

LANGUAGES = [draw_phrases, draw_coreferences, draw_opinions]
SEEDS = st.integers(0, 2**32 - 1)
Draw = Callable[..., Any]


class Letters(NamedTuple):
    """Two letters side by side."""

    text: str
    construction: str
    combinations: frozenset[Combination]


def draw_letters(generator: random.Random) -> Letters:
    one, other = choose("abcde", generator), choose("vwxyz", generator)
    return Letters(f"{one} {other}", "pair", frozenset({("by", one, other)}))


def table(rows: int, columns: int) -> list[Combination]:
    return [("by", f"r{row}", f"c{column}") for row in range(rows) for column in range(columns)]


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.01, 0.45), SEEDS)
def test_every_word_keeps_most_of_its_combinations(
    rows: int, columns: int, share: float, seed: int
) -> None:
    every = table(rows, columns)
    held = hold_out_combinations(every, share, seeded(seed, "test"), keep=every[:1])
    assert held == hold_out_combinations(
        reversed(every), share, seeded(seed, "test"), keep=every[:1]
    )
    assert held <= set(every[1:]) and len(held) < share * len(every) + 1
    for place in (1, 2):
        all_of, lost = Counter(one[place] for one in every), Counter(one[place] for one in held)
        for word, count in lost.items():
            assert count <= max(1, 2 * share * all_of[word]) and count < all_of[word]


def test_about_the_share_is_held_out() -> None:
    for seed in range(20):
        assert len(hold_out_combinations(table(20, 20), 0.1, seeded(seed, "test"))) == 40


def test_draw_split_finds_all_that_there_is_and_says_when_it_is_too_much() -> None:
    held = {("by", "a", "v"), ("by", "b", "w")}
    train, test = draw_split(draw_letters, held, 23, 2, seed=0)
    assert len({one.text for one in train}) == 23
    assert {one.text for one in test} == {"a v", "b w"}
    with pytest.raises(InputError, match="only 23 of the 24"):
        draw_split(draw_letters, held, 24, 2, seed=0)
    with pytest.raises(InputError, match="only 2 of the 3"):
        draw_split(draw_letters, held, 23, 3, seed=0)


def test_what_is_tested_has_only_known_words() -> None:
    every = {("by", "a", other) for other in "vwxyz"}  # `a` is never trained on
    with pytest.raises(InputError, match="only 0 of the 1"):
        draw_split(draw_letters, every, 20, 1, seed=0)


@pytest.mark.parametrize("draw", LANGUAGES)
def test_a_seed_means_the_same_and_more_begin_with_fewer(draw: Draw) -> None:
    few, more = draw(300, 30, seed=5), draw(600, 30, seed=5)
    assert more[0][:300] == few[0]
    assert draw(300, 30, seed=5) == few
    assert draw(300, 30, seed=6)[0] != few[0]


@pytest.mark.parametrize("draw", LANGUAGES)
@settings(max_examples=5)
@given(seed=SEEDS)
def test_held_out_combinations_are_new_but_words_and_constructions_are_not(
    draw: Draw, seed: int
) -> None:
    train, test = draw(1500, 100, seed=seed)
    assert len({one.text for one in train}) == 1500 and len({one.text for one in test}) == 100
    trained = {combination for one in train for combination in one.combinations}
    words = {word for one in train for word in split_words(one.text)}
    constructions = {one.construction for one in train}
    for one in test:
        assert one.combinations - trained
        assert set(split_words(one.text)) <= words and one.construction in constructions
    assert not {one.text for one in test} & {one.text for one in train}


@pytest.mark.parametrize("draw", LANGUAGES)
def test_what_cannot_be_drawn_is_refused(draw: Draw) -> None:
    for wrong in ((0, 1, 0), (100, 0, 0), (100, 1, -1), (100, 1, 0.5), (100, 1, True)):
        with pytest.raises(InputError):
            draw(*wrong)


def test_drawing_touches_no_other_randomness() -> None:
    random.seed(5)
    before = random.getstate()
    for draw in LANGUAGES:
        draw(100, 10)
    assert random.getstate() == before


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("phrases", "764ec4c68e3253fa"),
        ("coreferences", "76db00e4b69f8667"),
        ("opinions", "376aaaf564c8e78c"),
    ],
)
def test_a_seed_means_the_same_everywhere(name: str, digest: str) -> None:
    # These change when, and only when, the language changes.
    drawn = {
        "phrases": lambda: draw_phrases(500, 50),
        "coreferences": lambda: draw_coreferences(500, 50),
        "opinions": lambda: draw_opinions(500, 50),
    }[name]()
    text = "\n".join(one.text for part in drawn for one in part)
    assert hashlib.sha256(text.encode("utf-8")).hexdigest()[:16] == digest
