"""Predictions from the words of a text without their order, which an encoder has to surpass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.transforms import grad
from tinygrad_tf.nn.module import Parameter
from tinygrad_tf.train.optim import AdamW
from tinygrad_tf.types import Array

STEPS = 300
RIDGE = 1.0
MOST_COUNTS = 20_000_000


def counts(sources: Sequence[Array], vocab_size: int) -> Array | None:
    """Count each token in each source, (N, V); return None where the table would be too large."""
    if len(sources) * vocab_size > MOST_COUNTS:
        return None
    table = np.zeros((len(sources), vocab_size), np.float32)
    for row, ids in zip(table, sources, strict=True):
        np.add.at(row, ids, 1.0)
    return table


def predict_classes(train: Array, labels: Array, held_out: Array, n_classes: int) -> Array:
    """Predict the classes of held-out counts by logistic regression on the training counts."""
    weight = Parameter(np.zeros((train.shape[1], n_classes), np.float32))
    bias = Parameter(np.zeros(n_classes, np.float32))
    parameters = {"weight": weight, "bias": bias}
    optimizer = AdamW(parameters, lr=0.05, weight_decay=0.0)
    for _ in range(STEPS):
        loss = ops.cross_entropy(ops.linear(train, weight, bias), labels)
        optimizer.step(grad(loss, parameters))
    chosen: Array = (held_out @ weight.data + bias.data).argmax(axis=1)
    return chosen


def predict_numbers(train: Array, numbers: Array, held_out: Array) -> Array:
    """Predict the numbers of held-out counts by ridge regression."""
    centre, mean = train.mean(axis=0), numbers.mean()
    x = (train - centre).astype(np.float64)
    normal = x.T @ x + RIDGE * np.eye(x.shape[1])
    predicted: Array = (held_out - centre) @ np.linalg.solve(normal, x.T @ (numbers - mean)) + mean
    return predicted
