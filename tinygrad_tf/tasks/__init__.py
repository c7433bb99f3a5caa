"""Tasks to train, each with the class that uses a trained run of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.tasks.classification import ClassificationTask
    from tinygrad_tf.tasks.instruction_model import InstructionModel
    from tinygrad_tf.tasks.instruction_tuning import InstructionTask
    from tinygrad_tf.tasks.language_model import LanguageModelTask
    from tinygrad_tf.tasks.masked_lm import MaskedLMTask, MaskFiller
    from tinygrad_tf.tasks.registry import load_predictor
    from tinygrad_tf.tasks.speech import SpeechTask
    from tinygrad_tf.tasks.text_classifier import TextClassifier
    from tinygrad_tf.tasks.transcriber import Transcriber
    from tinygrad_tf.tasks.translation import TranslationTask
    from tinygrad_tf.tasks.translator import Translator

_HOMES = {
    "ClassificationTask": "classification",
    "InstructionModel": "instruction_model",
    "InstructionTask": "instruction_tuning",
    "LanguageModelTask": "language_model",
    "MaskFiller": "masked_lm",
    "MaskedLMTask": "masked_lm",
    "SpeechTask": "speech",
    "TextClassifier": "text_classifier",
    "Transcriber": "transcriber",
    "TranslationTask": "translation",
    "Translator": "translator",
    "load_predictor": "registry",
}
__all__ = [
    "ClassificationTask",
    "InstructionModel",
    "InstructionTask",
    "LanguageModelTask",
    "MaskFiller",
    "MaskedLMTask",
    "SpeechTask",
    "TextClassifier",
    "Transcriber",
    "TranslationTask",
    "Translator",
    "load_predictor",
]


def __getattr__(name: str) -> Any:
    # Only what is needed is loaded.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tinygrad_tf.tasks.{_HOMES[name]}"), name)
