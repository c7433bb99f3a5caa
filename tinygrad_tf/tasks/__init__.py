"""Learning from examples: translation, labels, gaps, speech, instructions, soft prompts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.tasks.instruction_model import InstructionModel
    from tinygrad_tf.tasks.masked_lm import Filler
    from tinygrad_tf.tasks.run import TaskRun
    from tinygrad_tf.tasks.task import Task, TaskOptions
    from tinygrad_tf.tasks.text_classifier import TextClassifier
    from tinygrad_tf.tasks.transcriber import Transcriber
    from tinygrad_tf.tasks.translator import Translator

__all__ = [
    "Filler",
    "InstructionModel",
    "Task",
    "TaskOptions",
    "TaskRun",
    "TextClassifier",
    "Transcriber",
    "Translator",
]

_HOMES = {
    "InstructionModel": "instruction_model",
    "Filler": "masked_lm",
    "TextClassifier": "text_classifier",
    "Task": "task",
    "TaskOptions": "task",
    "TaskRun": "run",
    "Transcriber": "transcriber",
    "Translator": "translator",
}


def __getattr__(name: str) -> Any:
    # Only what is asked for is loaded.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tinygrad_tf.tasks.{_HOMES[name]}"), name)
