"""Labelling texts with a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinygrad_tf.models.encoder import Encoder, EncoderConfig
from tinygrad_tf.tasks.classification import (
    LabellingTask,
    Scale,
    new_model,
    outputs,
    side_and_scale,
    text_limit,
)
from tinygrad_tf.tasks.task import OpenedRun
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer
from tinygrad_tf.text.tokenizers import Unknown


@dataclass(frozen=True)
class Labelled:
    """A text's labels with their probabilities, the likeliest first; or the number it is rated."""

    text: str
    labels: tuple[tuple[str, float], ...] = ()
    number: float | None = None


class TextClassifier:
    """A trained classifier, or regressor, with its tokenizer and labels."""

    def __init__(self, model: Encoder, side: TaskTokenizer, scale: Scale) -> None:
        self.model, self.side, self.scale = model, side, scale
        self.model.eval()

    @classmethod
    def load(cls, run_dir: str | Path, weights: str = "best") -> TextClassifier:
        """That of a run; weights: "best" by validation loss, or "last".

        Raises InputError where the directory is not a whole run of `tt train-classifier`.
        """
        run = OpenedRun.open(run_dir, LabellingTask.name)
        side, scale = side_and_scale(run.files)
        model = new_model(scale, EncoderConfig.from_dict(run.recipe.model))
        model.load_tensors(run.weights(weights))
        return cls(model, side, scale)

    def label(self, texts: Sequence[str], unknown: Unknown = "error") -> list[Labelled]:
        """What is said of each text; InputError for one that cannot be read."""
        limit = text_limit(self.model.config)
        answers = outputs(self.model, [self.side.encode(t, limit, unknown) for t in texts])
        if not self.scale.labels:
            numbers = self.scale.mean + self.scale.std * answers[:, 0]
            return [Labelled(t, number=float(x)) for t, x in zip(texts, numbers, strict=True)]
        probs = np.exp(answers - answers.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        found = []
        for text, row in zip(texts, probs, strict=True):
            order = np.argsort(-row, kind="stable")
            ranked = tuple((self.scale.labels[i], float(row[i])) for i in order)
            found.append(Labelled(text, ranked))
        return found
