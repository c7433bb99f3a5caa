"""Framing of targets for training: START before, END after, PAD to fill a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import Seq2SeqConfig
from tinygrad_tf.types import Array


def pad_sequences(sequences: Iterable[Sequence[int] | Array], pad_id: int) -> Array:
    """Return lists of ids as one array (B, T), filled with PAD at the end."""
    rows = [np.asarray(ids, np.int64) for ids in sequences]
    padded = np.full((len(rows), max(map(len, rows), default=0)), pad_id, np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def teacher_forcing(tgt: Any, config: Seq2SeqConfig) -> tuple[Array, Array]:
    """Return the decoder's input and its labels, each (B, T + 1).

    tgt (B, T) holds the bare tokens of each target, then PAD. The input of `De nada` is START De
    nada and its labels are De nada END: each label is the input of the next position. Raises
    InputError where tgt contains START or END, or a token after PAD.
    """
    ids = np.asarray(tgt)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise InputError(
            f"targets of shape {ids.shape} and dtype {ids.dtype}",
            "give whole numbers as (batch, time)",
        )
    real = ids != config.pad_id
    if np.any(real[:, 1:] & ~real[:, :-1]):
        raise InputError("a target has a token after PAD", "put PAD at the end only")
    if np.isin(ids, (config.start_id, config.end_id)).any():
        raise InputError(
            "a target contains START or END", "give the bare tokens: both are added in training"
        )
    start = np.full((len(ids), 1), config.start_id, ids.dtype)
    pad = np.full((len(ids), 1), config.pad_id, ids.dtype)
    labels = np.concatenate([ids, pad], axis=1)
    labels[np.arange(len(ids)), real.sum(axis=1)] = config.end_id
    return np.concatenate([start, ids], axis=1), labels
