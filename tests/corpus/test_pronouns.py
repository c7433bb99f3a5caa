"""What `it` stands for: a reader that knows the adjectives, and what place or order do not tell."""

from collections import Counter
from itertools import product

import pytest

from tinygrad_tf.corpus.pronouns import (
    ANIMALS,
    ANYHOW,
    DRINKING,
    DRINKS,
    EATING,
    FOODS,
    NOUNS,
    OF_ANIMALS,
    OF_FOODS,
    Coreference,
    coreference,
    draw_coreferences,
)


@pytest.fixture(scope="module")
def parts() -> tuple[tuple[Coreference, ...], tuple[Coreference, ...]]:
    return draw_coreferences()


def test_the_documents_sentences(parts: tuple[tuple[Coreference, ...], ...]) -> None:
    hungry, sweet = parts[0][:2]
    assert hungry.text == "the cat drank the milk because it was hungry"
    assert sweet.text == "the cat drank the milk because it was sweet"
    assert (hungry.answer, sweet.answer) == ("cat", "milk")
    assert (hungry.it, hungry.referent, hungry.other) == (6, 1, 4)
    assert (sweet.it, sweet.referent, sweet.other) == (6, 4, 1)


def test_the_passive_turns_the_nouns_around() -> None:
    one = coreference(
        "dog", EATING[0], "cake", "greedy", coat="black", state="cold", reason="as", passive=True
    )
    assert one.text == "the cold cake was eaten by the black dog as it was greedy"
    assert (one.answer, one.words[one.other], one.words[one.it]) == ("dog", "cake", "it")


def test_the_last_word_decides_and_nothing_else() -> None:
    for animal, food, how in product(ANIMALS, FOODS, OF_ANIMALS + OF_FOODS):
        one = coreference(animal, ANYHOW[0], food, how)
        assert one.answer == (animal if how in OF_ANIMALS else food)
        assert NOUNS[one.label] == one.answer
    assert not set(OF_ANIMALS) & set(OF_FOODS)
    assert len(set(NOUNS)) == len(NOUNS)


def test_positions_are_those_of_the_only_two_nouns(
    parts: tuple[tuple[Coreference, ...], ...],
) -> None:
    for one in (*parts[0], *parts[1]):
        assert [place for place, word in enumerate(one.words) if word in NOUNS] == sorted(
            (one.referent, one.other)
        )
        assert one.words.count("it") == 1 and one.words[one.it] == "it"
        assert (one.answer in ANIMALS) == (one.words[-1] in OF_ANIMALS)
        assert one.text.split() == list(one.words)


def test_only_drinks_are_drunk_and_only_dishes_eaten(
    parts: tuple[tuple[Coreference, ...], ...],
) -> None:
    drinking, eating = ({form for verb in verbs for form in verb} for verbs in (DRINKING, EATING))
    for one in parts[0]:
        is_drink = bool(set(one.words) & set(DRINKS))
        assert not set(one.words) & (eating if is_drink else drinking)


def test_neither_place_nor_kind_is_more_likely(
    parts: tuple[tuple[Coreference, ...], ...],
) -> None:
    train = parts[0]
    first = sum(one.referent < one.other for one in train) / len(train)
    animal = sum(one.answer in ANIMALS for one in train) / len(train)
    assert abs(first - 0.5) < 0.04 and abs(animal - 0.5) < 0.04
    counts = Counter(one.answer for one in train)
    assert set(counts) == set(NOUNS) and min(counts.values()) > 50


def test_the_defaults_hold_out_pairs_of_nouns_and_adjectives(
    parts: tuple[tuple[Coreference, ...], ...],
) -> None:
    train, held_out = parts
    assert (len(train), len(held_out)) == (3000, 500)
    pairs = {frozenset(set(one.words) & set(NOUNS)) for one in train}
    described = {(one.answer, one.words[-1]) for one in train}
    for one in held_out:
        new_pair = frozenset(set(one.words) & set(NOUNS)) not in pairs
        assert new_pair or (one.answer, one.words[-1]) not in described
    # 8 of 80, and 5 of 48 and 6 of 60.
    assert len(pairs) == 80 - 8 and len(described) == 108 - 11
