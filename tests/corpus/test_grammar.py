"""The grammar formalism, on grammars small enough to write every story out."""

import math
import random
from collections import Counter

import pytest

from tinygrad_tf.corpus.grammar import Grammar, Slot, Word
from tinygrad_tf.errors import InputError

SHE, HE = {"she": "she"}, {"she": "he"}
PEOPLE = (Word("Ann", 3, SHE), Word("Bob", 2, HE), Word("Cy", 1, HE))
GUESTS = (Word("Di", 1, SHE), Word("Ed", 2, HE))
PARTY = Grammar(
    {
        "story": [(3, "{who} met {other}. {end}"), (1, "{who} left.")],
        "end": [(1, "{who.She} sang."), (1, "{other.She} and {who} sang.")],
    },
    {"who": Slot(PEOPLE), "other": Slot(GUESTS)},
)


def test_probabilities_of_all_stories_sum_to_one() -> None:
    stories = list(PARTY.everything())
    assert len(stories) == 3 * 2 * 2 + 3
    assert len({story.text for story in stories}) == len(stories)
    assert math.fsum(math.exp(-story.nats) for story in stories) == pytest.approx(1, abs=1e-12)


def test_probability_is_the_product_of_its_choices() -> None:
    (story,) = PARTY.parse("Ann met Ed. He and Ann sang.")
    # Ann 3 of 6, the first shape 3 of 4, Ed 2 of 3, the second end 1 of 2.
    assert math.exp(-story.nats) == pytest.approx(3 / 6 * 3 / 4 * 2 / 3 * 1 / 2)


def test_a_slot_keeps_its_word_and_its_forms() -> None:
    for story in ("Ann met Ed. She and Bob sang.", "Ann met Ed. He sang.", "Bob met Di. Di sang."):
        with pytest.raises(InputError):
            PARTY.parse(story)


@pytest.mark.slow
def test_drawing_agrees_with_parsing_and_with_the_probabilities() -> None:
    generator = random.Random(1)
    drawn = [PARTY.draw(generator) for _ in range(20_000)]
    counts = Counter(story.text for story in drawn)
    for story in PARTY.everything():
        assert [way.nats for way in PARTY.parse(story.text)] == [pytest.approx(story.nats)]
        expected = math.exp(-story.nats)
        spread = math.sqrt(expected * (1 - expected) / len(drawn))
        assert abs(counts[story.text] / len(drawn) - expected) < 5 * spread
    assert set(counts) <= {story.text for story in PARTY.everything()}


def test_two_derivations_of_one_text_are_both_found() -> None:
    double = Grammar({"story": [(1, "{a}{b}"), (2, "ab")], "a": [(1, "a")], "b": [(1, "b")]}, {})
    assert sorted(math.exp(-way.nats) for way in double.parse("ab")) == pytest.approx(
        [1 / 3, 2 / 3]
    )


def test_a_mention_says_where_a_slot_stands() -> None:
    (story,) = PARTY.parse("Bob met Di. She and Bob sang.")
    found = [(m.slot, m.form, story.text[m.start : m.end]) for m in story.mentions]
    assert found == [
        ("who", "", "Bob"),
        ("other", "", "Di"),
        ("other", "She", "She"),
        ("who", "", "Bob"),
    ]


def test_a_form_names_a_word_only_if_no_other_has_it() -> None:
    assert PARTY.slots["who"].is_named_by("")
    assert not PARTY.slots["who"].is_named_by("she")


@pytest.mark.parametrize(
    ("story", "fits"),
    [("", 0), ("Zoe left.", 0), ("Ann lefx.", 7), ("Ann left. ", 9), ("Ann", 3)],
)
def test_a_foreign_text_is_refused_where_it_stops_to_fit(story: str, fits: int) -> None:
    with pytest.raises(InputError, match=f"up to character {fits} of {len(story)}"):
        PARTY.parse(story)


@pytest.mark.parametrize("template", ["{nobody}", "{who.hat}", "{end.she}"])
def test_a_template_that_names_nothing_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"no rule and no slot|has no form"):
        Grammar({"story": [(1, template)], "end": [(1, "x")]}, {"who": Slot(PEOPLE)})


def test_a_whole_story_has_no_choice_left() -> None:
    (story,) = PARTY.parse("Ann left.")
    with pytest.raises(ValueError, match="no choice left"):
        PARTY.options(story)
