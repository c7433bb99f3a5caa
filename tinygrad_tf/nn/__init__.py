"""Layers: modules with named parameters, and the cache of generation."""

from tinygrad_tf.nn.attention import MultiHeadAttention
from tinygrad_tf.nn.block import Block
from tinygrad_tf.nn.cache import Cache, LayerCache
from tinygrad_tf.nn.hooks import record
from tinygrad_tf.nn.layers import Dropout, Embedding, FeedForward, LayerNorm, Linear
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.nn.positions import sinusoidal_positions

__all__ = [
    "Block",
    "Cache",
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
