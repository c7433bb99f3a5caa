"""Value beside micrograd: an MLP(3, 16, 16, 1) forward and backward, in turns in one run.

    pip install micrograd
    python tests/bench/scalar.py

Printed are the ratios of the medians: with each neuron one `dot`, as Value means it to be
written, and with the very lines of micrograd's own MLP.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tinygrad_tf.scalar import Value, dot

SIZES = (3, 16, 16, 1)
INPUT = (2.0, 3.0, -1.0)

Neuron = tuple[list[Any], Any]
Network = list[list[Neuron]]
Step = Callable[[], tuple[float, list[float]]]


def network(make: Callable[[float], Any], seed: int = 0) -> Network:
    """Layers of (weights, bias), the same numbers for every `make`."""
    rng = random.Random(seed)
    return [
        [([make(rng.uniform(-1, 1)) for _ in range(n)], make(0.1)) for _ in range(m)]
        for n, m in pairwise(SIZES)
    ]


def by_sum(weights: list[Any], bias: Any, x: list[Any]) -> Any:
    """A neuron as micrograd writes it."""
    return sum((w * xi for w, xi in zip(weights, x, strict=True)), bias)


def by_dot(weights: list[Any], bias: Any, x: list[Any]) -> Any:
    """A neuron in one step."""
    return dot(weights, x, bias)


def step(make: Callable[[float], Any], neuron: Callable[..., Any]) -> Step:
    """Make a step: reset gradients, forward, backward; it returns the result and all gradients."""
    layers = network(make)
    parameters = [p for layer in layers for weights, bias in layer for p in (*weights, bias)]

    def run() -> tuple[float, list[float]]:
        for p in parameters:
            p.grad = 0.0
        x: list[Any] = list(INPUT)
        for layer in layers[:-1]:
            x = [neuron(weights, bias, x).relu() for weights, bias in layer]
        (last,) = (neuron(weights, bias, x) for weights, bias in layers[-1])
        last.backward()
        return last.data, [p.grad for p in parameters]

    return run


def medians(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Milliseconds a step, measured in turns, so that drift hits all alike."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for round_ in range(rounds + rounds // 10):
        for name, run in steps.items():
            begun = time.perf_counter()
            run()
            if round_ >= rounds // 10:  # the first ones warm up
                taken[name].append((time.perf_counter() - begun) * 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}


def compare(peer: Callable[[float], Any], rounds: int) -> dict[str, float]:
    """Median times of micrograd's Value and of ours, which must agree on every gradient."""
    steps = {
        "micrograd": step(peer, by_sum),
        "Value, dot": step(Value, by_dot),
        "Value, same lines": step(Value, by_sum),
    }
    (right, gradients), *others = [run() for run in steps.values()]
    for result, ours in others:
        pairs = zip([right, *gradients], [result, *ours], strict=True)
        if any(abs(a - b) > 1e-9 * max(1.0, abs(a)) for a, b in pairs):
            raise ValueError("the engines disagree; their times mean nothing")
    return medians(steps, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    try:
        from micrograd.engine import Value as Peer
    except ImportError:
        print("micrograd is not here: pip install micrograd")
        return
    times = compare(Peer, arguments.rounds)
    for name, ms in times.items():
        print(f"{name:18} {ms:6.3f} ms   {times['micrograd'] / ms:5.2f} x micrograd")


if __name__ == "__main__":
    main()
