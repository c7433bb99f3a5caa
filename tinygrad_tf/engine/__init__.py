"""The engine: Tensor, the graph behind it, and the table of ops."""

from tinygrad_tf.engine import ops, tensor

__all__ = ["ops", "tensor"]
