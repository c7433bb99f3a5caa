"""What the embedded defaults must reach, each trained once as a user would."""

import time

import pytest

from tinygrad_tf.tasks.classification import ClassificationTask
from tinygrad_tf.tasks.coreference import CoreferenceModel
from tinygrad_tf.tasks.masked_lm import MaskedLMTask, MaskFiller
from tinygrad_tf.tasks.translation import TranslationTask
from tinygrad_tf.tasks.translator import Translator
from tinygrad_tf.train.config import DEFAULT_SEED
from tinygrad_tf.train.run import Run

pytestmark = pytest.mark.slow


def figures(task, path):
    return list(Run.create(task, path).run())[-1].figures


def test_translation_of_held_out_combinations(tmp_path):
    begun = time.process_time()
    found = figures(TranslationTask.create(), tmp_path / "run")
    assert time.process_time() - begun < 180
    assert found["examples"] == 500 and found["exact_match"] >= 0.98
    assert found["token_accuracy"] > 0.98 and found["bleu"] > 98 and found["chrf"] > 98

    translator = Translator.load(tmp_path / "run")
    pairs = {
        "You are welcome": "De nada",
        "The ball is blue": "La bola es azul",
        "My name is Ketan": "Mi nombre es Ketan",
        "the blue ball": "la pelota azul",
    }
    translations = translator.translate(list(pairs))
    assert [one.text for one in translations] == list(pairs.values())
    for some, one in zip(translator.beam(list(pairs), beam=4), translations, strict=True):
        assert some[0].text == one.text

    # In the last layer, heads averaged, each word looks most at the word that it translates.
    aligned = {"The ball is blue": [0, 1, 2, 3], "the blue ball": [0, 2, 1]}
    for (text, wanted), one in zip(
        aligned.items(), (translations[1], translations[3]), strict=True
    ):
        weights = translator.attention(text, one).weights[:-1]  # without END, which means no word
        assert weights.argmax(axis=1).tolist() == wanted
        assert weights.max(axis=1).min() > 0.4


def test_opinions_that_word_order_decides(tmp_path):
    found = figures(ClassificationTask.create(), tmp_path / "run")
    assert found["examples"] == 500 and found["accuracy"] >= 0.97
    assert found["bag_of_words"] < 0.75


def test_hidden_words_are_guessed_from_both_sides(tmp_path):
    task = MaskedLMTask.create()
    guess = task.references()
    found = figures(task, tmp_path / "run")
    assert found["perplexity"] < 4 < 20 < 2.718 ** guess["unigram"]
    filler = MaskFiller.load(tmp_path / "run")
    drinks = {"milk", "water", "juice", "tea"}
    ranked = filler.fill("the cat drank the _ because it was sweet").answers[0]
    assert sum(prob for word, prob in ranked if word in drinks) > 0.5
    assert filler.fill("the cat _ hungry because it was sweet", 1).answers


@pytest.mark.parametrize("seed", [0, DEFAULT_SEED])
def test_it_is_the_right_noun(seed):
    demo = CoreferenceModel(seed=seed)
    for _ in demo.run():
        pass
    judged = demo.judge()
    assert judged.sentences == 500 and judged.accuracy >= 0.98
    assert judged.above_half >= 0.98 and judged.weight > 0.5 and judged.layer == 1
