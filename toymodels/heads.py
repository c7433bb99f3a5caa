"""Attention with several heads, and the shape of everything on the way.

Vaswani et al. 2017, section 3.2.2, and source document S4: n words of a vocabulary of N, embedded
in d_model dimensions, h heads of d_k (queries, keys) and d_v (values). The weights are random: only
the shapes matter, and they are those of the computed arrays.
"""

import math
from dataclasses import dataclass

import numpy as np

from tinygrad_tf import Tensor, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.positions import sinusoidal_positions
from tinygrad_tf.text.held_out import random_generator
from toymodels.onehot import one_hot


@dataclass(frozen=True)
class Sizes:
    """The sizes, with those of the paper's base model; `sources` (n_s) is the length of the other
    sequence for cross-attention, None for attention to itself."""

    vocabulary: int
    length: int
    d_model: int = 512
    d_k: int = 64
    d_v: int = 64
    heads: int = 8
    d_ff: int = 2048
    sources: int | None = None

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if size is not None and size < 1:
                raise InputError(f"{name} is {size}", "give sizes from 1 up")


@dataclass(frozen=True)
class Stage:
    """An intermediate result: its name, its shape in symbols, and its shape in numbers."""

    name: str
    symbols: str
    shape: tuple[int, ...]
    is_weight: bool


@dataclass(frozen=True)
class Trace:
    """All stages in order; `heads` are the weights (n, n_s) of each head."""

    stages: tuple[Stage, ...]
    heads: tuple[Tensor, ...]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the stage of that name."""
        return next(stage.shape for stage in self.stages if stage.name == name)

    def parameters(self, *names: str) -> int:
        """Return the number of entries in the weights of those names."""
        return sum(math.prod(stage.shape) for stage in self.stages if stage.name in names)


class _Tracer:
    """A record of the shape of each result under its name, the first time that it comes."""

    def __init__(self, seed: int) -> None:
        self.stages: dict[str, Stage] = {}
        self.random = random_generator(seed)

    def note(self, name: str, symbols: str, x: Tensor, is_weight: bool = False) -> Tensor:
        self.stages.setdefault(name, Stage(name, symbols, x.shape, is_weight))
        return x

    def weight(self, name: str, symbols: str, *shape: int) -> Tensor:
        values = self.random.standard_normal(shape) / math.sqrt(shape[0])
        return self.note(name, symbols, Tensor(values), is_weight=True)


def trace_shapes(sizes: Sizes, seed: int = 0) -> Trace:
    """Run one block of attention and feed-forward, from one-hot words to probabilities."""
    t, s = _Tracer(seed), sizes
    n, vocabulary, width = s.length, s.vocabulary, s.d_model
    words = t.random.integers(0, vocabulary, n)
    x = t.note("one-hot input", "n N", Tensor(one_hot(words, vocabulary)))
    embedding = t.weight("embedding", "N d_model", vocabulary, width)
    positions = t.note("positions", "n d_model", Tensor(sinusoidal_positions(n, width)))
    x = t.note("embedded", "n d_model", x @ embedding + positions)
    other, m = x, "n"
    if s.sources is not None:
        other, m = Tensor(t.random.standard_normal((s.sources, width))), "n_s"
    outputs, weights = [], []
    for _ in range(s.heads):
        q = t.note("Q", "n d_k", x @ t.weight("W_q", "d_model d_k", width, s.d_k))
        k = t.note("K", f"{m} d_k", other @ t.weight("W_k", "d_model d_k", width, s.d_k))
        v = t.note("V", f"{m} d_v", other @ t.weight("W_v", "d_model d_v", width, s.d_v))
        scores = t.note("scores", f"n {m}", q @ k.T / math.sqrt(s.d_k))
        if s.sources is None:
            scores = scores + np.triu(np.full((n, n), -np.inf), 1)
        weights.append(t.note("weights", f"n {m}", ops.softmax(scores, axis=-1)))
        outputs.append(t.note("head output", "n d_v", weights[-1] @ v))
    joined = t.note("joined heads", "n h·d_v", ops.concatenate(outputs, axis=1))
    mixed = joined @ t.weight("W_O", "h·d_v d_model", s.heads * s.d_v, width)
    x = ops.layer_norm(x + t.note("attention output", "n d_model", mixed))
    hidden = x @ t.weight("W_1", "d_model d_ff", width, s.d_ff)
    hidden = ops.relu(hidden + t.weight("b_1", "d_ff", s.d_ff))
    back = t.note("hidden", "n d_ff", hidden) @ t.weight("W_2", "d_ff d_model", s.d_ff, width)
    x = t.note(
        "block output", "n d_model", ops.layer_norm(x + back + t.weight("b_2", "d_model", width))
    )
    out = t.weight("de-embedding", "d_model N", width, vocabulary)
    logits = t.note("logits", "n N", x @ out)
    t.note("probabilities", "n N", ops.softmax(logits, axis=-1))
    return Trace(tuple(t.stages.values()), tuple(weights))


def attention_parameters(sizes: Sizes) -> int:
    """Return the size of W_q, W_k, W_v of all heads and W_O, without bias, from the arrays."""
    trace = trace_shapes(sizes)
    return sizes.heads * trace.parameters("W_q", "W_k", "W_v") + trace.parameters("W_O")
