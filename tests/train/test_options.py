"""Options and presets become one recipe, which comes back from a run's config.json."""

import json
import math
from pathlib import Path

import pytest
from tinygrad_tf.train.options import MODEL_FIELDS, TRAIN_FIELDS, Recipe, TrainOptions

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.presets import PRESETS


def test_the_text_chooses_the_preset():
    corpus, book = TrainOptions().resolve(), TrainOptions(texts=(Path("book.txt"),)).resolve()
    assert (corpus.preset, corpus.lines, corpus.title()) == ("default", True, "stories")
    assert (book.preset, book.lines, book.title()) == ("nano-cpu", False, "book")
    assert Path(book.texts[0]).is_absolute(), "a run is resumed from anywhere"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_taken_whole(name):
    recipe = TrainOptions(preset=name).resolve()
    assert recipe.model == PRESETS[name].model
    asked = PRESETS[name].training
    assert recipe.training == {n: asked[n] for n in TRAIN_FIELDS if n in asked}
    assert recipe.batch_size == asked["batch_size"]


def test_what_is_asked_wins_also_where_it_is_nothing():
    asked = {"bias": True, "dropout": 0.0, "weight_decay": 0.0, "warmup": 0, "n_layer": 3}
    recipe = TrainOptions(preset="baby", seed=0, lines=False, **asked).resolve()
    assert (recipe.model["bias"], recipe.model["dropout"], recipe.model["n_layer"]) == (True, 0, 3)
    assert (recipe.training["weight_decay"], recipe.training["warmup"]) == (0, 0)
    assert (recipe.seed, recipe.lines) == (0, False)
    assert recipe.model["n_embd"] == 384


def test_the_cosine_ends_at_a_tenth_of_a_peak_that_was_asked():
    asked = TrainOptions(preset="nano-cpu", learning_rate=0.02).resolve().training
    assert asked["min_lr"] == pytest.approx(0.002)
    both = TrainOptions(preset="nano-cpu", learning_rate=0.02, min_lr=0.01).resolve().training
    assert both["min_lr"] == 0.01
    assert TrainOptions(preset="nano-cpu").resolve().training["min_lr"] == 1e-4


def test_an_unknown_preset_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"'nano'.*nano-cpu"):
        TrainOptions(preset="nano").resolve()


@pytest.mark.parametrize(
    "bad", [{"steps": 0}, {"batch_size": 0}, {"learning_rate": math.nan}, {"time_limit": -1.0}]
)
def test_bad_numbers_are_refused_before_anything_is_read(bad):
    (name,) = bad
    with pytest.raises(InputError, match=name):
        TrainOptions(texts=(Path("does-not-exist"),), **bad).resolve()


def test_every_option_of_the_model_and_the_training_can_be_asked():
    known = set(TrainOptions.__dataclass_fields__)
    assert set(TRAIN_FIELDS) <= known
    assert set(MODEL_FIELDS) <= known


def test_a_recipe_comes_back_from_json():
    recipe = TrainOptions(texts=(Path("a"), Path("b")), dropout=0.1, early_stop=3).resolve()
    assert Recipe.from_dict(json.loads(json.dumps(recipe.as_dict()))) == recipe


@pytest.mark.parametrize(
    "change",
    [{"surplus": 1}, {"texts": None}, {"training": {"step": 1}}, {"training": {"steps": "all"}}],
)
def test_a_malformed_recipe_is_refused(change):
    with pytest.raises(InputError, match=r"config\.json is malformed"):
        Recipe.from_dict(TrainOptions().resolve().as_dict() | change)
    given = TrainOptions().resolve().as_dict()
    del given["seed"]
    with pytest.raises(InputError, match="seed"):
        Recipe.from_dict(given)
