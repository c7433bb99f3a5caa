"""What holds in the small world of the embedded corpus."""

import math
import random
import re

import pytest

from tinygrad_tf.corpus.grammar import Derivation, Grammar, Slot
from tinygrad_tf.corpus.story_grammar import GRAMMAR, RULES, SLOTS

DRAWN = 2000


@pytest.fixture(scope="module")
def drawn() -> list[Derivation]:
    generator = random.Random(3)
    return [GRAMMAR.draw(generator) for _ in range(DRAWN)]


@pytest.mark.slow
def test_every_story_has_one_derivation_with_the_probability_it_was_drawn_with(
    drawn: list[Derivation],
) -> None:
    for story in drawn:
        (parsed,) = GRAMMAR.parse(story.text)
        assert parsed == story


@pytest.mark.parametrize("shape", range(len(RULES["story"])))
def test_all_stories_of_a_smaller_world_differ_and_sum_to_one(shape: int) -> None:
    # The first and the last word of each slot: both genders, singular and plural.
    few = {name: Slot((s.words[0], s.words[-1])) for name, s in SLOTS.items()}
    world = Grammar({**RULES, "story": [RULES["story"][shape]]}, few)
    total, texts = 0.0, []
    for story in world.everything():
        total += math.exp(-story.nats)
        texts.append(story.text)
    assert total == pytest.approx(1, abs=1e-9)
    assert len(set(texts)) == len(texts)


def test_no_two_shapes_share_a_story() -> None:
    # With one word a slot, stories of two shapes are equal only if the shapes are.
    one = {name: Slot(slot.words[:1]) for name, slot in SLOTS.items()}
    texts = [story.text for story in Grammar(RULES, one).everything()]
    assert len(set(texts)) == len(texts) > len(RULES["story"])


def entropy(state: Derivation, known: dict[tuple[object, ...], float]) -> float:
    """The exact entropy in nats of what may follow, by recursion over the choices.

    Which words are held makes no difference to the choices ahead, only which slots are.
    """
    if not state.pending:
        return 0.0
    key = (state.pending, frozenset(state.bound))
    if key not in known:
        options = GRAMMAR.options(state)
        total = sum(option.weight for option in options)
        known[key] = math.fsum(
            option.weight / total * (entropy(way, known) + math.log(total / option.weight))
            for option, way in zip(options, GRAMMAR.successors(state), strict=True)
        )
    return known[key]


def test_the_mean_cost_of_a_story_is_the_entropy_of_the_grammar(drawn: list[Derivation]) -> None:
    costs = [story.nats for story in drawn]
    mean = math.fsum(costs) / DRAWN
    deviation = math.sqrt(math.fsum((cost - mean) ** 2 for cost in costs) / DRAWN)
    assert abs(mean - entropy(GRAMMAR.start(), {})) < 4 * deviation / math.sqrt(DRAWN)


def test_shapes_come_as_often_as_their_weights_say(drawn: list[Derivation]) -> None:
    late = [story for story in drawn if " late for the " in story.text]
    heavy = sum(weight for weight, _ in RULES["story"])
    chance = sum(weight for weight, way in RULES["story"] if " late for the " in way) / heavy
    assert abs(len(late) / DRAWN - chance) < 5 * math.sqrt(chance * (1 - chance) / DRAWN)


def test_stories_are_sentences(drawn: list[Derivation]) -> None:
    for story in drawn:
        assert re.fullmatch(r"([A-Z][A-Za-z,: ]*[a-z]\.)( [A-Z][A-Za-z,: ]*[a-z]\.)*", story.text)
        assert "  " not in story.text
        assert not re.search(r"\b(a [aeiou]|an [^aeiou])", story.text)
        assert len(story.text) <= 190


def test_all_rules_and_all_words_are_used(drawn: list[Derivation]) -> None:
    used = {(slot, word.text) for story in drawn for slot, word in story.bound.items()}
    assert used == {(name, word.text) for name, slot in SLOTS.items() for word in slot.words}


def test_who_lost_what_finds_it_again(drawn: list[Derivation]) -> None:
    stories = [story.text for story in drawn if re.search(" (lost|dropped) ", story.text)]
    assert len(stories) > 100
    for text in stories:
        lost = re.search(r"(\w+) (?:lost|dropped) (her|his) \w+ (\w+) ", text)
        again = re.search(r"(?:At last|On \w+) (\w+) found (her|his) (\w+) ", text)
        assert lost and again and lost.groups() == again.groups()


def test_only_a_battery_runs_down_and_a_program_just_runs(drawn: list[Derivation]) -> None:
    how = {"battery": " down", "program": "", "engine": " hot", "printer": " dry"}
    stories = [story.text for story in drawn if " wrote to " in story.text]
    for text in stories:
        machine = re.search(r"battery|program|engine|printer", text)
        assert machine
        assert f" ran{how[machine[0]]} please." in text
        assert text.endswith((f" it ran{how[machine[0]]}.", f" not run{how[machine[0]]}."))
    told = " ".join(stories)
    assert "check the program log and find out whether it ran please." in told
    assert "check the battery log and find out whether it ran down please." in told


def test_pronouns_and_verbs_agree(drawn: list[Derivation]) -> None:
    women = {w.text for name in ("hero", "friend", "third") for w in SLOTS[name].words
             if w.forms["she"] == "she"}  # fmt: skip
    many = {word.text for word in SLOTS["thing"].words if word.forms["was"] == "were"}
    for story in drawn:
        for who, her in re.findall(r"(\w+) (?:lost|dropped|lent|found) (her|his) ", story.text):
            assert (her == "her") == (who in women)
        thing = story.bound.get("thing")
        if thing and (found := re.search(r"(it was|they were) not there", story.text)):
            assert (found[0] == "they were not there") == (thing.text in many)
        if " late for " in story.text:
            both = " and " in story.text.split(" late for ")[0]
            assert both == (" were late " in story.text) == (" have " in story.text)
            assert both == (" and are " in story.text) != (" and is " in story.text)


def test_an_animal_keeps_its_voice_and_a_trade_its_goods(drawn: list[Derivation]) -> None:
    far = {"a dog": "barked", "a cat": "mewed", "an owl": "hooted", "a hen": "clucked"}
    far |= {"a baker": "a loaf", "a tailor": "a coat", "a smith": "a hook", "an artist": "a port"}
    stories = [story.text for story in drawn if re.match(r"\w+ (has|is) ", story.text)]
    assert len(stories) > 100
    for text in stories:
        first = re.match(r"\w+ (?:has|is) (an? \w+)\.", text)
        assert first
        assert [word for word in far.values() if word in text[first.end() :]] == [far[first[1]]]
