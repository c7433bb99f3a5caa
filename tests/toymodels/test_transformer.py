"""The GPT as one of the language models: windows, sentences, training under a budget."""

import numpy as np
import pytest

from tinygrad_tf import no_grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.presets import Preset
from toymodels.model import score
from toymodels.sentences import PAIR, Language
from toymodels.text import Text
from toymodels.transformer import TransformerLM, train_transformer, windows

TINY = Preset(
    "tiny",
    "",
    {"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 4},
    {"batch_size": 4, "learning_rate": 1e-2, "warmup": 1},
)


@pytest.mark.parametrize(("first", "last", "block"), [(0, 1, 4), (3, 20, 4), (1, 9, 1), (0, 8, 8)])
def test_windows_predict_each_place_once_with_half_a_context_at_least(first, last, block):
    found = list(windows(first, last, block))
    assert [p for w in found for p in range(w.new, w.stop)] == list(range(first, last))
    assert all(w.stop - w.start <= block for w in found)
    assert all(w.new - w.start >= block // 2 for w in found[1:])


def model(vocab_size, end=None, block_size=4):
    config = GPTConfig(vocab_size, block_size, n_layer=1, n_head=2, n_embd=8, init_std=0.5)
    return TransformerLM("GPT", GPT(config, 3), min(vocab_size, 7), end)


def by_hand(transformer, context):
    with no_grad():
        logits = transformer.model(np.array([context])).data[0, -1].astype(float)
    powers = np.exp(logits[: transformer.vocab_size])
    return powers / powers.sum()


def test_a_text_is_rated_as_the_gpt_rates_its_windows():
    transformer, tokens = model(7), np.random.default_rng(0).integers(0, 7, 11)
    nats, guess = transformer.nats(tokens), transformer.predict(tokens)
    assert nats[0] == pytest.approx(np.log(7))
    for w in windows(1, 11, 4):
        for place in range(w.new, w.stop):
            probs = by_hand(transformer, tokens[w.start - 1 : place])
            assert nats[place] == pytest.approx(-np.log(probs[tokens[place]]), abs=1e-5)
            assert guess[place] == probs.argmax()


def test_sentences_are_read_alone_and_after_the_end_token():
    tokens, end = np.array([1, 2, 6, 3, 6, 6, 4, 5, 1, 2, 3, 6]), 6
    nats = model(7, end, block_size=8).nats(tokens)
    alone = model(7, end, block_size=8)
    parts = [[1, 2, 6], [3, 6], [6], [4, 5, 1, 2, 3, 6]]
    assert nats == pytest.approx(np.concatenate([alone.nats(np.array(p)) for p in parts]))
    for p in parts:
        by = [-np.log(by_hand(alone, [end, *p[:i]])[t]) for i, t in enumerate(p)]
        assert alone.nats(np.array(p)) == pytest.approx(by, abs=1e-5)


@pytest.mark.parametrize("end", [None, 6])
def test_the_distribution_after_a_prompt_takes_as_much_as_the_context_holds(end):
    transformer = model(9, end)  # a table padded to 9: the last two are no tokens
    prompt = [1, 2, 3, 4, 5, 0]
    assert transformer.next_probs(prompt) == pytest.approx(by_hand(transformer, prompt[-4:]))
    short = [end, 1] if end is not None else [1]
    assert transformer.next_probs([1]) == pytest.approx(by_hand(transformer, short))
    alike = np.full(7, 1 / 7) if end is None else by_hand(transformer, [end])
    assert transformer.next_probs(np.array([], int)) == pytest.approx(alike)


def test_a_smaller_table_than_the_vocabulary_is_refused():
    with pytest.raises(InputError, match="has 5 tokens, the text 7"):
        TransformerLM("GPT", GPT(GPTConfig(5, 4, 1, 1, 8)), 7)


def test_training_keeps_to_its_budget_and_learns():
    text = Text(np.tile([0, 1, 2, 3], 200), 4)
    heard = []
    done = train_transformer(text, TINY, 1.5, seed=1, listen=heard.append)
    assert 1 < done.steps <= done.planned and done.seconds < 6
    assert [e.event for e in heard].count("step") == done.steps
    assert score(done.model, text.tokens, 8).mean_nats < 0.5 * np.log(4)


def test_training_on_sentences_makes_the_context_as_long_as_the_longest():
    language = Language.of(PAIR)
    recipe = Preset("", "", {**TINY.model}, TINY.training)
    del recipe.model["block_size"]
    done = train_transformer(language.text, recipe, 9, most_steps=300)
    assert done.model.reach == 8 and done.model.end == language.end and done.steps <= 300
    assert language.leaked_mass(done.model) < 0.1


def test_a_text_shorter_than_the_context_is_refused():
    with pytest.raises(InputError, match="3 tokens, and a GPT with a context of 4 needs 5"):
        train_transformer(Text(np.array([0, 1, 0]), 2), TINY, 1)
