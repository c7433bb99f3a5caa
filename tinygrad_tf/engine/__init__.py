"""The engine: Tensor, the graph behind it, and the table of rules."""

# First of all: the others are built on it, and it ends by importing them.
import tinygrad_tf.engine.tensor  # noqa: F401
from tinygrad_tf.engine import ops, tensor

__all__ = ["ops", "tensor"]
