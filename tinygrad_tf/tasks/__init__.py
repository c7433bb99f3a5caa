"""Learning from examples: translation, labels, gaps, speech, instructions, soft prompts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.tasks.asker import Asker
    from tinygrad_tf.tasks.filling import Filler
    from tinygrad_tf.tasks.labeller import Labeller
    from tinygrad_tf.tasks.run import TaskRun
    from tinygrad_tf.tasks.task import Task, TaskOptions
    from tinygrad_tf.tasks.transcriber import Transcriber
    from tinygrad_tf.tasks.translator import Translator

__all__ = [
    "Asker",
    "Filler",
    "Labeller",
    "Task",
    "TaskOptions",
    "TaskRun",
    "Transcriber",
    "Translator",
]

_HOMES = {
    "Asker": "asker",
    "Filler": "filling",
    "Labeller": "labeller",
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
