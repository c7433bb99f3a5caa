"""The kinds of task by name, and the classes that use their runs; each is loaded when needed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train.integrity import task_name
from tinygrad_tf.train.task import Task

# The name in config.json: where the Task is, and where the class that uses a run of it.
TASKS = {
    "gpt": ("tasks.language_model:LanguageModelTask", "generate:TextGenerator"),
    "translate": ("tasks.translation:TranslationTask", "tasks.translator:Translator"),
    "classifier": (
        "tasks.classification:ClassificationTask",
        "tasks.text_classifier:TextClassifier",
    ),
    "fill": ("tasks.masked_lm:MaskedLMTask", "tasks.masked_lm:MaskFiller"),
    "speech": ("tasks.speech:SpeechTask", "tasks.transcriber:Transcriber"),
    "instructions": (
        "tasks.instruction_tuning:InstructionTask",
        "tasks.instruction_model:InstructionModel",
    ),
}


def task_class(name: str) -> type[Task]:
    """Return the kind of task of that name; KeyError for another."""
    kind: type[Task] = _load(TASKS[name][0])
    return kind


def load_predictor(run_dir: str | Path, weights: str = "best", **settings: Any) -> Any:
    """Load the trained model of a run of any task: a TextGenerator, a Translator, ...

    weights: "best" by validation loss, or "last". Raises InputError where the directory is not a
    whole run.
    """
    block = RunDirectory.open(run_dir).read_config().get("tt")
    name = task_name(block) if isinstance(block, dict) else "gpt"
    return _load(TASKS[name][1]).load(run_dir, weights, **settings)


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"tinygrad_tf.{module}"), name)
