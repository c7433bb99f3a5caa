"""Options and presets become one recipe, which is read back from a run's config.json."""

import json
import math
from pathlib import Path

import pytest

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import EncoderConfig, GPTConfig
from tinygrad_tf.models.presets import PRESETS
from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.train.config import DEFAULT_SEED
from tinygrad_tf.train.recipe import TRAIN_FIELDS, Recipe, TrainOptions


def recipe(**options) -> Recipe:
    return LanguageModelTask.create(**options).recipe


def test_the_text_chooses_the_preset():
    corpus, book = (LanguageModelTask.create(texts) for texts in ((), (Path("book.txt"),)))
    assert (corpus.recipe.options["preset"], corpus.title) == ("default", "stories")
    assert (book.recipe.options["preset"], book.title) == ("nano-cpu", "book")
    assert [task.recipe.options["lines"] for task in (corpus, book)] == [True, False]
    assert Path(book.recipe.options["texts"][0]).is_absolute(), "a run is resumed from anywhere"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_taken_whole(name):
    training = PRESETS[name].training
    made = recipe(preset=name)
    assert made.model == PRESETS[name].model
    assert made.training == {n: training[n] for n in TRAIN_FIELDS if n in training}
    assert made.batch_size == training["batch_size"]


def test_options_win_over_the_preset_also_where_they_are_zero():
    options = {"bias": True, "dropout": 0.0, "weight_decay": 0.0, "warmup": 0, "n_layer": 3}
    made = recipe(preset="baby", seed=0, lines=False, **options)
    assert (made.model["bias"], made.model["dropout"], made.model["n_layer"]) == (True, 0, 3)
    assert (made.training["weight_decay"], made.training["warmup"]) == (0, 0)
    assert (made.seed, made.options["lines"], made.model["n_embd"]) == (0, False, 384)
    assert recipe().seed == DEFAULT_SEED == 1337


def test_the_cosine_ends_at_a_tenth_of_a_peak_that_was_chosen():
    chosen = recipe(preset="nano-cpu", learning_rate=0.02).training
    assert chosen["min_lr"] == pytest.approx(0.002)
    assert recipe(learning_rate=0.02, min_lr=0.01).training["min_lr"] == 0.01
    assert recipe(preset="nano-cpu").training["min_lr"] == 1e-4


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"preset": "nano"}, "'nano'.*nano-cpu"),
        ({"steps": 0}, "`steps` is 0"),
        ({"batch_size": 0}, "`batch_size` is 0"),
        ({"threads": 300}, "`threads` is 300"),
        ({"learning_rate": math.nan}, "`learning_rate` is nan"),
        ({"time_limit": -1.0}, "`time_limit` is -1.0"),
        ({"n_layers": 3}, "there is no setting n_layers; give fields of GPTConfig"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(bad, message):
    with pytest.raises(InputError, match=message):
        recipe(texts=(Path("does-not-exist"),), **bad)


def test_keywords_are_sorted_by_what_they_set():
    options = TrainOptions.sort(EncoderConfig, {"d_model": 8, "steps": 5, "seed": 2, "norm": None})
    assert (options.model, options.training, options.seed) == ({"d_model": 8}, {"steps": 5}, 2)
    every = {"n_layer": 1, "min_lr": 0.0, "batch_size": 3, "threads": 2}
    options = TrainOptions.sort(GPTConfig, every)
    assert (options.model, options.training) == ({"n_layer": 1}, {"min_lr": 0.0})
    assert (options.batch_size, options.threads) == (3, 2)


def test_a_recipe_comes_back_from_json_in_both_layouts():
    for made, is_flat in (
        (recipe(texts=(Path("a"), Path("b")), dropout=0.1, early_stop=3), True),
        (Recipe(1, 2, 3, {"d_model": 4}, {"steps": 5}, {"tokenizer": "word"}, "pairs"), False),
    ):
        record = json.loads(json.dumps(made.as_dict()))
        assert Recipe.from_dict(record) == made
        assert ("options" not in record and "tokenizer" in record) == is_flat


@pytest.mark.parametrize(
    "change",
    [{"title": "x", "extra": 1}, {"training": {"step": 1}}, {"training": {"steps": "all"}}],
)
def test_a_malformed_recipe_is_refused(change):
    with pytest.raises(InputError, match=r"config\.json is malformed"):
        Recipe.from_dict(recipe().as_dict() | change)
    record = recipe().as_dict()
    del record["seed"]
    with pytest.raises(InputError, match="seed"):
        Recipe.from_dict(record)
