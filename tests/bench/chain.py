"""A short chain of small arrays beside PyTorch's: what a recorded operation itself costs.

    pip install torch
    python tests/bench/chain.py

relu(x @ w + b).sum().backward() at 16x16 in float32, both libraries in turns in one run, with one
thread. Printed is the median of the ratios of turns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from tinygrad_tf import Tensor, ops

TURNS, STEPS = 30, 300


def microseconds(step: Callable[[], None]) -> float:
    """The time of a step, of many in a row."""
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - start) / STEPS * 1e6


def main() -> None:
    """Print both times and their ratio."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((16, 16), (16, 16), (16,))]
    x, w, b = (Tensor(a, requires_grad=i > 0) for i, a in enumerate(arrays))
    tx, tw, tb = (torch.tensor(a, requires_grad=i > 0) for i, a in enumerate(arrays))

    def ours() -> None:
        ops.relu(x @ w + b).sum().backward()

    def theirs() -> None:
        torch.relu(tx @ tw + tb).sum().backward()

    turns = [(microseconds(ours), microseconds(theirs)) for _ in range(TURNS)]
    ratio = statistics.median(mine / other for mine, other in turns)
    mine, other = (statistics.median(turn[i] for turn in turns) for i in (0, 1))
    print(f"tinygrad_tf {mine:.1f} us   PyTorch {other:.1f} us   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
