"""Continuations and scores, which all models share."""

from collections import Counter

from toymodels.markov import Markov
from toymodels.model import score
from toymodels.sentences import CMD3, PAIR, Language

COMMANDS, TWO = Language.of(CMD3), Language.of(PAIR)


def test_sampling_draws_as_often_as_the_shares_say_and_repeats_with_its_seed():
    model, start = Markov.fit(COMMANDS.text, 1), COMMANDS.vocabulary.ids("show")
    drawn = Counter(COMMANDS.vocabulary.text(model.continue_(start, 9, s)) for s in range(300))
    for thing, share in (("directories", 0.2), ("files", 0.3), ("photos", 0.5)):
        assert abs(drawn[f"me my {thing} please"] / 300 - share) < 0.1
    assert sum(drawn.values()) == 300 and len(drawn) == 3
    assert model.continue_(start, 9, 4).tolist() == model.continue_(start, 9, 4).tolist()
    assert len(model.continue_(start, 2)) == 2


def test_a_score_may_leave_out_the_first_tokens():
    model, tokens = Markov.fit(TWO.text, 1, 0.1), TWO.text.tokens
    whole, part = score(model, tokens), score(model, tokens, 5)
    assert part.nats.tolist() == whole.nats[5:].tolist() and len(whole.nats) == len(tokens)
    assert part.right.tolist() == (model.predict(tokens) == tokens)[5:].tolist()


def test_a_model_shows_its_name_and_size():
    assert repr(Markov.fit(TWO.text, 1)) == "Markov('Markov 1', 11 numbers)"
