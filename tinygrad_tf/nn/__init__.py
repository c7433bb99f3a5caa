"""Layers: modules with named parameters."""

from tinygrad_tf.nn.attention import LayerCache, MultiHeadAttention
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.nn.layers import Dropout, Embedding, FeedForward, LayerNorm, Linear
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.nn.positions import sinusoidal_positions

__all__ = [
    "Block",
    "Dropout",
    "Embedding",
    "FeedForward",
    "LayerCache",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "Parameter",
    "record",
    "sinusoidal_positions",
]
