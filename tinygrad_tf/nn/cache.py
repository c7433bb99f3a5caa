"""The cache of generation: keys and values of the positions that a model has already read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.types import Array, Mask


class ProjectedMemory(NamedTuple):
    """The keys (B, S, H·d_k) and values (B, S, H·d_v) that one layer computes from the memory."""

    key: Tensor
    value: Tensor


class LayerCache:
    """The keys and values of one layer, in arrays for `capacity` positions allocated once.

    memory: in a decoder, the keys and values of the encoder's output, computed once.
    """

    def __init__(self, capacity: int, memory: ProjectedMemory | None = None) -> None:
        self.capacity, self.memory = capacity, memory
        self.length = 0
        self.arrays: tuple[Array, Array] | None = None

    def extend(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Append (B, T, ·) of new positions; returns those of all positions so far."""
        if self.arrays is None:
            key_shape, value_shape = ((x.shape[0], self.capacity, x.shape[2]) for x in (key, value))
            self.arrays = np.empty(key_shape, key.dtype), np.empty(value_shape, value.dtype)
        end = self.length + key.shape[1]
        for array, new in zip(self.arrays, (key, value), strict=True):
            array[:, self.length : end] = new
        self.length = end
        return self.arrays[0][:, :end], self.arrays[1][:, :end]

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if self.arrays is not None:
            key, value = self.arrays
            self.arrays = key[rows], value[rows]
        if self.memory is not None:
            self.memory = ProjectedMemory(*(Tensor(part.data[rows]) for part in self.memory))


class Cache:
    """The state of a model between steps of generation: one LayerCache per layer, and the ids.

    memory_mask (B, 1, 1, S): in a decoder, which positions of the memory are real.
    """

    def __init__(self, layers: list[LayerCache], memory_mask: Mask | None = None) -> None:
        self.layers, self.memory_mask = layers, memory_mask
        self.ids: Array | None = None

    @property
    def length(self) -> int:
        """The number of tokens that the model has read."""
        return 0 if self.ids is None else self.ids.shape[1]

    def append(self, ids: Array) -> Array:
        """Note that the model reads these ids (B, T); returns all ids that it has read."""
        self.ids = ids if self.ids is None else np.concatenate([self.ids, ids], axis=1)
        return self.ids

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if self.ids is None or np.array_equal(rows, np.arange(len(self.ids))):
            return
        self.ids = self.ids[rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[rows]
        for layer in self.layers:
            layer.select(rows)
