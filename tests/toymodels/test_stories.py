"""On the embedded corpus: which model sees what stands far back."""

import numpy as np
import pytest

from tinygrad_tf.corpus import generate
from toymodels.held_out import split_stories
from toymodels.markov import Markov
from toymodels.masks import selective
from toymodels.model import score
from toymodels.skips import Skips
from toymodels.stories import far_places, far_words, next_words, story_language, story_words

LOG = (
    "On Friday Tom wrote to Fay: check the battery log and find out whether it ran down please. "
    "Fay learned that it ran down."
)


def test_words_that_may_come_next():
    before = "On Friday Tom wrote to Fay: check the battery log and find out whether it ran "
    assert next_words(before) == {"down"}
    assert next_words("On Friday Tom wrote to Fay: check ") == {"the", "whether"}
    assert next_words(LOG[:-1]) == {"."}
    assert next_words(LOG) == {""}
    assert next_words("On Friday Tom wrote to Fa") != {"Fay"}  # not before a word
    assert {"One", "On", "Tom", "Anna"} <= next_words("")


def test_every_drawn_word_is_one_that_may_come():
    for story in generate(chars=1500, seed=5).stories:
        at = 0
        for word in story_words(story):
            begin = story.index(word, at)
            assert word in next_words(story[:begin])
            at = begin + len(word)
        assert next_words(story) == {""}


def test_far_words_of_a_story():
    words = story_words(LOG)
    found = {(words[far.place], far.distance) for far in far_words(LOG)}
    # The second `ran` could be `did not run`; `down` after it says again what `down` said before.
    assert found == {("down", 8), ("Fay", 15)}
    places = [far.place for far in far_words(LOG)]
    assert [words[p] for p in places] == ["down", "Fay"]


def test_the_nearest_word_that_tells_is_what_counts():
    story = (
        "Sam lent his red kite to Ben. He took it to the river, and on Monday he gave the kite "
        "back to Sam."
    )
    words = story_words(story)
    found = {far.place: far.distance for far in far_words(story)}
    later_he, last_sam = words.index("he"), len(words) - 2
    assert found[later_he] == later_he - words.index("He")
    assert found[last_sam] == last_sam - words.index("his")


def test_far_places_count_from_the_beginning_of_the_text():
    stories = generate(chars=4000, seed=2).stories
    text, words = story_language(stories).text, story_language(stories).vocabulary.words
    alone = [story_words(s)[f.place] for s in stories for f in far_words(s) if f.distance > 3]
    assert [words[text.tokens[p]] for p in far_places(stories, 3)] == alone
    assert len(far_places(stories, 8)) < len(alone)


@pytest.mark.slow
def test_far_words_are_lost_on_a_chain_and_found_by_masked_votes():
    corpus = generate()
    cut = int(0.9 * len(corpus.stories))
    split = split_stories(corpus.stories[:cut], corpus.stories[cut:], 0.0)
    train, held_out, chance = split.train, split.held_out, split.far.chance
    vocabulary = story_language(corpus.stories).vocabulary
    places = far_places(corpus.stories[cut:], 3)
    assert len(places) > 800
    models = [
        Markov.fit(train, 1, 0.1),
        Markov.fit(train, 2, 0.1),
        Skips.fit(train),
        selective(train, 2),
    ]
    scores = [score(model, held_out) for model in models]
    first, second, plain, masked = (s.right[places].mean() for s in scores)
    assert 0.15 < chance < 0.35
    assert max(first, second) < chance + 0.05
    assert plain > chance + 0.1
    assert masked > 0.95
    floor = sum(corpus.nats[cut:]) / len(held_out)
    assert all(s.mean_nats > floor for s in scores)
    assert scores[3].mean_nats < 1.3 * floor < scores[1].mean_nats
    ran = vocabulary.ids(["it", "ran"])
    asked = {vocabulary.words[i] for i in np.flatnonzero(models[3].mask(ran))}
    heard = {vocabulary.words[i] for i in np.flatnonzero(Skips.fit(train, 2).mask(ran))}
    assert {"battery", "engine", "printer", "program"} <= asked < heard
    assert len(asked) < len(heard) / 3
