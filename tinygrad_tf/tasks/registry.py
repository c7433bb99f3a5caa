"""The class that uses a trained run, by the name of its task; each is loaded when needed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train.integrity import task_name

# The task's name in config.json, and the module and class of its predictor.
PREDICTORS = {
    "gpt": ("generate", "TextGenerator"),
    "translate": ("tasks.translator", "Translator"),
    "classifier": ("tasks.text_classifier", "TextClassifier"),
    "fill": ("tasks.masked_lm", "MaskFiller"),
    "speech": ("tasks.transcriber", "Transcriber"),
    "instructions": ("tasks.instruction_model", "InstructionModel"),
}


def load_predictor(run_dir: str | Path, weights: str = "best", **settings: Any) -> Any:
    """Load the trained model of a run of any task: a TextGenerator, a Translator, ...

    weights: "best" by validation loss, or "last". Raises InputError where the directory is not a
    whole run, or its task is none of PREDICTORS.
    """
    block = RunDirectory.open(run_dir).read_config().get("tt")
    name = task_name(block) if isinstance(block, dict) else "gpt"
    if name not in PREDICTORS:
        raise InputError(
            f"{run_dir} is a run of the task {name!r}",
            f"this version knows {', '.join(PREDICTORS)}",
        )
    module, predictor = PREDICTORS[name]
    return getattr(import_module(f"tinygrad_tf.{module}"), predictor).load(
        run_dir, weights, **settings
    )
