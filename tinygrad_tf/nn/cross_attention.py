"""Attention from one sequence to another, and what a decoder layer keeps of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.nn.attention import LayerCache, MultiHeadAttention
from tinygrad_tf.types import Array


class ProjectedMemory(NamedTuple):
    """The keys (B, S, H·d_k) and values (B, S, H·d_v) that one layer makes of the memory."""

    key: Tensor
    value: Tensor


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder (Vaswani et al. 2017, 3.2.3).

    The memory may be given as `project` made it, so that decoding step by step makes it once.
    """

    def project(self, memory: Tensor) -> ProjectedMemory:
        """The keys and values of the memory (B, S, C)."""
        k = self.key_width
        weight, bias = self.c_attn.weight, self.c_attn.bias
        both = ops.linear(memory, weight[:, k:], None if bias is None else bias[k:])
        return ProjectedMemory(both[..., :k], both[..., k:])

    def _project(
        self, x: Tensor, memory: Tensor | ProjectedMemory | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(memory, ProjectedMemory):
            return super()._project(x, memory)
        k = self.key_width
        weight, bias = self.c_attn.weight, self.c_attn.bias
        query = ops.linear(x, weight[:, :k], None if bias is None else bias[:k])
        return query, memory.key, memory.value


@dataclass
class DecoderLayerCache:
    """What one decoder layer keeps between steps: its own keys and values, and the memory's."""

    own: LayerCache
    memory: ProjectedMemory

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if self.own.arrays is not None:
            key, value = self.own.arrays
            self.own.arrays = key[rows], value[rows]
        self.memory = ProjectedMemory(*(Tensor(part.data[rows]) for part in self.memory))
