"""Letters: stories by one author, and what knowing the author saves."""

import pytest

from tinygrad_tf import corpus
from tinygrad_tf.corpus.letters import draw_letters, letter_nats, topic_nats, topic_share
from tinygrad_tf.errors import InputError


@pytest.mark.slow
def test_letters_are_stories_and_cost_what_the_topic_saves():
    train, held = draw_letters(200, seed=3)
    assert topic_share() == pytest.approx(4 / 33 / 6)
    for letter, nats in zip(held.stories, held.nats, strict=True):
        assert letter_nats(letter) == nats
        assert corpus.story_nats(letter) == pytest.approx(nats + topic_nats())
        assert "Anna wrote to" in letter
    assert not set(held.stories) & ({*train.stories} | {*corpus.generate().stories})
    assert draw_letters(200, seed=3) == (train, held) != draw_letters(200, seed=4)


@pytest.mark.parametrize(("count", "share"), [(1, 0.5), (10, 0.0), (10, 1.0), (10, float("nan"))])
def test_impossible_parts_are_refused(count, share):
    with pytest.raises(InputError):
        draw_letters(count, held_out=share)
