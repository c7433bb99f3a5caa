"""Drawing the corpus, its floor, and what is refused."""

import hashlib
import itertools
import math
import random

import pytest

from tinygrad_tf.corpus import Corpus, decided_spans, draw_stories, floor, generate, story_nats
from tinygrad_tf.corpus.story_grammar import GRAMMAR
from tinygrad_tf.errors import InputError

# SHA-256 of 100,000 characters of seed 0: changes when, and only when, the corpus changes.
GOLDEN = "04130c8de5e96f976a435256a6bbdbbafc6fcee5898773c51bdc64e95495d6ce"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(chars=60_000, seed=7)


def test_a_seed_means_the_same_text_everywhere() -> None:
    text = generate(chars=100_000, seed=0).text
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == GOLDEN
    assert generate(chars=2000, seed=1) == generate(chars=2000, seed=1)
    assert generate(chars=2000, seed=1) != generate(chars=2000, seed=2)


def test_a_longer_corpus_begins_with_the_shorter(corpus: Corpus) -> None:
    assert corpus.text.startswith(generate(chars=3000, seed=7).text)


def test_drawing_touches_no_other_randomness() -> None:
    random.seed(5)
    before = random.getstate()
    generate(chars=1000, seed=3)
    assert random.getstate() == before


@pytest.mark.parametrize("chars", [1, 2, 500, 60_000])
def test_it_stops_at_the_first_story_end_at_or_past_chars(chars: int) -> None:
    drawn = generate(chars=chars, seed=7)
    assert len(drawn.text) >= chars > len(drawn.text) - len(drawn.stories[-1]) - 1
    exactly = generate(chars=len(drawn.text), seed=7)
    assert exactly == drawn


def test_text_is_ascii_one_story_a_line(corpus: Corpus) -> None:
    assert corpus.text.isascii()
    assert corpus.text.split("\n") == [*corpus.stories, ""]
    assert len(corpus.nats) == len(corpus.stories)


def test_size_of_the_default_corpus() -> None:
    default = generate()
    lengths = [len(story) for story in default.stories]
    assert 460_000 <= len(default.text) < 460_200
    assert 100 < sum(lengths) / len(lengths) < 125
    assert max(lengths) <= 190
    assert len(set(default.text)) <= 40
    assert 0.18 < default.floor.bits_per_char < 0.28


def test_the_floor_computed_from_text_is_that_of_the_draw(corpus: Corpus) -> None:
    again = floor(corpus.stories)
    assert again == corpus.floor
    assert again.chars == len(corpus.text)
    assert again.stories == len(corpus.stories)
    assert again.nats == pytest.approx(sum(corpus.nats), rel=1e-12)
    assert again.bits_per_char == pytest.approx(again.nats / again.chars / math.log(2))


def test_the_floor_of_parts_adds_up(corpus: Corpus) -> None:
    half = len(corpus.stories) // 2
    first, second = floor(corpus.stories[:half]), floor(corpus.stories[half:])
    assert first.nats + second.nats == pytest.approx(corpus.floor.nats)
    assert first.chars + second.chars == corpus.floor.chars


def test_the_floor_of_nothing_is_zero() -> None:
    assert floor([]).bits_per_char == 0


def test_story_nats_is_what_the_draw_paid(corpus: Corpus) -> None:
    for story, nats in zip(corpus.stories, corpus.nats, strict=True):
        assert story_nats(story) == pytest.approx(nats, rel=1e-13)


def test_another_model_pays_more_than_the_floor(corpus: Corpus) -> None:
    counts = {c: corpus.text.count(c) for c in set(corpus.text)}
    unigram = -sum(n * math.log2(n / len(corpus.text)) for n in counts.values()) / len(corpus.text)
    assert unigram > 4 * corpus.floor.bits_per_char


@pytest.mark.parametrize("chars", [0, -1, True, 1.5])
def test_chars_must_be_a_positive_whole_number(chars: int) -> None:
    with pytest.raises(InputError, match="characters"):
        generate(chars=chars)


@pytest.mark.parametrize("seed", [-1, False, 0.5])
def test_seed_must_be_a_whole_number(seed: int) -> None:
    # random.Random(-1) and random.Random(1) are the same stream: two seeds must not be one text.
    with pytest.raises(InputError, match="seed"):
        generate(chars=10, seed=seed)


def test_foreign_text_is_refused(corpus: Corpus) -> None:
    story = corpus.stories[0]
    for foreign in (
        "",
        "To be, or not to be.",
        story + "\n",
        story + " ",
        story[:-1],
        story.upper(),
    ):
        with pytest.raises(InputError, match="cannot have produced") as refused:
            story_nats(foreign)
        assert refused.value.next
    with pytest.raises(InputError):
        floor([story, "Tom."])


def test_a_wrong_branch_is_impossible() -> None:
    story = "On Friday Tom wrote to Fay: check the {} log and find out whether it ran{} please. "
    story += "Fay learned that it ran{}."
    for machine, how in (("battery", " down"), ("program", "")):
        assert math.isfinite(story_nats(story.format(machine, how, how)))
    for machine, how in (("battery", ""), ("program", " down")):
        with pytest.raises(InputError):
            story_nats(story.format(machine, how, how))


def test_decided_spans_name_the_branch_and_the_word_that_decides_it() -> None:
    story = (
        "On Friday Tom wrote to Fay: check the battery log and find out whether it ran down please."
        " Fay learned that it ran down."
    )
    spans = decided_spans(story)
    pairs = [
        (story[s.start : s.end], story[s.source_start : s.source_end], s.distance) for s in spans
    ]
    assert pairs == [
        ("down please", "battery", len(" log and find out whether it ran ")),
        ("Fay", "Fay", len(": check the battery log and find out whether it ran down please. ")),
        ("ran down", "battery", pairs[2][2]),
    ]


@pytest.mark.slow
def test_what_is_decided_costs_the_grammar_nothing(corpus: Corpus) -> None:
    # Any other word of the slot in a decided span makes a story that cannot be.
    checked = 0
    for story in corpus.stories[:60]:
        for mention in GRAMMAR.parse(story)[0].mentions:
            if not any(s[:2] == (mention.start, mention.end) for s in decided_spans(story)):
                continue
            now = story[mention.start : mention.end]
            forms = {word.form(mention.form) for word in GRAMMAR.slots[mention.slot].words}
            for other in forms - {now}:
                with pytest.raises(InputError):
                    story_nats(story[: mention.start] + other + story[mention.end :])
                checked += 1
    assert checked > 300


def test_stories_come_one_by_one() -> None:
    """Also of a corpus that would not fit into any memory."""
    few = [text for text, _ in itertools.islice(draw_stories(10**15, seed=7), 5)]
    assert tuple(few) == generate(chars=2000, seed=7).stories[:5]
