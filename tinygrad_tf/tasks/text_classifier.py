"""Labelling texts with a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.models.encoder import Encoder, EncoderConfig
from tinygrad_tf.tasks.classification import (
    ClassificationTask,
    Scale,
    new_model,
    outputs,
    text_limit,
    tokenizer_and_scale,
)
from tinygrad_tf.tasks.predictor import Predictor
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer
from tinygrad_tf.text.tokenizers import Unknown
from tinygrad_tf.train.stored_run import StoredRun
from tinygrad_tf.train.task import Task


@dataclass(frozen=True)
class Prediction:
    """A text's labels with their probabilities, the likeliest first; or its predicted number."""

    text: str
    labels: tuple[tuple[str, float], ...] = ()
    number: float | None = None


class TextClassifier(Predictor):
    """A trained classifier, or regressor, with its tokenizer and labels."""

    task: ClassVar[type[Task]] = ClassificationTask
    model: Encoder

    def __init__(self, model: Encoder, tokenizer: TaskTokenizer, scale: Scale) -> None:
        super().__init__(model)
        self.tokenizer, self.scale = tokenizer, scale

    @classmethod
    def from_run(cls, run: StoredRun) -> TextClassifier:
        """Make the model, without its weights, and what belongs to it, of what a run has kept."""
        tokenizer, scale = tokenizer_and_scale(run.files)
        return cls(new_model(scale, EncoderConfig.from_dict(run.recipe.model)), tokenizer, scale)

    def label(self, texts: Sequence[str], unknown: Unknown = "error") -> list[Prediction]:
        """Predict the label, or number, of each text; InputError for one that cannot be read."""
        limit = text_limit(self.model.config)
        results = outputs(self.model, [self.tokenizer.encode(t, limit, unknown) for t in texts])
        if not self.scale.labels:
            numbers = self.scale.mean + self.scale.std * results[:, 0]
            return [Prediction(t, number=float(x)) for t, x in zip(texts, numbers, strict=True)]
        predictions = []
        for text, row in zip(texts, ops.softmax(results).data, strict=True):
            order = np.argsort(-row, kind="stable")
            ranked = tuple((self.scale.labels[i], float(row[i])) for i in order)
            predictions.append(Prediction(text, ranked))
        return predictions
