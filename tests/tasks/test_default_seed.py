"""The default split and draw of every task: those of the one default seed."""

import numpy as np
import pytest

from tests.tasks import tiny_tasks
from tinygrad_tf.tasks.coreference import CoreferenceTask
from tinygrad_tf.tasks.instruction_tuning import InstructionTask
from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.tasks.speech import SpeechTask
from tinygrad_tf.train.config import DEFAULT_SEED

MAKERS = tiny_tasks.MAKERS | {
    "speech": lambda folder, **changes: SpeechTask.create(utterances=12, speakers=4, **changes),
    "instructions": lambda folder, **changes: InstructionTask.create(
        questions=20, held_out=4, n_layer=1, n_embd=8, **changes
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_default_split_is_that_of_1337(tmp_path, kind):
    seeds = {"seed": None}, {"seed": DEFAULT_SEED}, {"seed": 3}
    default, chosen, other = (MAKERS[kind](tmp_path, **seed) for seed in seeds)
    assert default.recipe.seed == DEFAULT_SEED == 1337
    assert default.files == chosen.files
    assert default.files != other.files


def test_the_default_split_of_a_language_model_is_that_of_1337(tmp_path):
    text = tmp_path / "lines.txt"
    text.write_text("".join(f"line {n}\n" for n in range(60)), encoding="utf-8")
    splits = []
    for number, seed in enumerate((None, DEFAULT_SEED, 3)):
        task = LanguageModelTask.create((text,), lines=True, seed=seed)
        folder = tmp_path / str(number)
        folder.mkdir()
        task.build_data(folder)
        splits.append(task.val.tokens.tolist())
    assert splits[0] == splits[1] != splits[2]


def test_the_default_model_of_coreference_is_that_of_1337():
    default, chosen = CoreferenceTask.create(), CoreferenceTask.create(seed=DEFAULT_SEED)
    for ours, theirs in zip(default.model.parameters(), chosen.model.parameters(), strict=True):
        np.testing.assert_array_equal(ours.data, theirs.data)
