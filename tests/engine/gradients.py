"""Gradients of a function of several arrays, of first and second order."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_tf import Tensor, grad
from tinygrad_tf.types import Array

Function = Callable[..., Tensor]


def leaves(inputs: Sequence[Array]) -> list[Tensor]:
    """Tensors that require a gradient."""
    return [Tensor(x, requires_grad=True) for x in inputs]


def first_order(f: Function, inputs: Sequence[Array], up: Array) -> tuple[Array, list[Array]]:
    """The value of f, and the gradients of Σ up·f."""
    xs = leaves(inputs)
    y = f(*xs)
    return y.data, grad(y, xs, upstream=up)


def gradients(f: Any, *inputs: Any, up: Any = None, dtype: Any = np.float64) -> list[Array]:
    """The gradients of Σ up·f, with `up` all ones unless given."""
    xs = leaves([np.asarray(x, dtype) for x in inputs])
    y = f(*xs)
    return grad(y, xs, upstream=np.ones(y.shape) if up is None else np.asarray(up, dtype))


def second_order(
    f: Function, inputs: Sequence[Array], up: Array, along: Sequence[Array]
) -> list[Array]:
    """The gradients of Σ along·(gradient of Σ up·f), for the inputs and, last, for up."""
    xs = [*leaves(inputs), Tensor(up, requires_grad=True)]
    gradients = grad(f(*xs[:-1]), xs[:-1], upstream=xs[-1], create_graph=True)
    total = sum((g * v).sum() for g, v in zip(gradients, along, strict=True))
    return grad(total, xs)


def eighths(seed: int, shape: tuple[int, ...]) -> Array:
    """Signed random numbers that float32 holds exactly."""
    return np.asarray(np.random.default_rng(seed).integers(-16, 17, shape) / 8.0)
