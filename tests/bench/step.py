"""The time of one training step, beside PyTorch eager in the same run.

    python tests/bench/step.py --preset nano-cpu

Both do forward, backward, clipping and AdamW on the same shapes, in turns, on the same threads.
The ratio of the medians is printed; absolute times depend on the machine and its other work.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.presets import PRESETS
from tinygrad_tf.train.batches import Batch
from tinygrad_tf.train.memory import keep_freed_memory
from tinygrad_tf.train.optim import AdamW
from tinygrad_tf.train.parallel import Compute, blas_threads, default_threads


class TorchBlock(nn.Module):
    """A pre-norm block as PyTorch users write it, with its fused attention."""

    def __init__(self, c: GPTConfig) -> None:
        super().__init__()
        self.n_head = c.n_head
        self.ln_1 = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.ln_2 = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=c.bias)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        self.fc = nn.Linear(c.n_embd, 4 * c.n_embd, bias=c.bias)
        self.proj = nn.Linear(4 * c.n_embd, c.n_embd, bias=c.bias)
        self.approximate = "tanh" if c.activation == "gelu_tanh" else "none"
        self.is_relu = c.activation == "relu"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.n_head, -1).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(c, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        h = self.fc(self.ln_2(x))
        h = F.relu(h) if self.is_relu else F.gelu(h, approximate=self.approximate)
        return x + self.proj(h)


class TorchGPT(nn.Module):
    """A tied, pre-norm GPT."""

    def __init__(self, c: GPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.h = nn.Sequential(*(TorchBlock(c) for _ in range(c.n_layer)))
        self.ln_f = nn.LayerNorm(c.n_embd, bias=c.bias)

    def loss(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        logits = self.ln_f(self.h(x)) @ self.wte.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def our_step(c: GPTConfig, ids: np.ndarray, targets: np.ndarray) -> Callable[[], object]:
    model = GPT(c)
    optimizer = AdamW(model, 1e-3, (0.9, 0.99), weight_decay=0.1)
    batch, compute = Batch(ids, targets), Compute(default_threads())

    def step() -> None:
        # As the trainer does it: the batch is shared by threads, BLAS stays within each.
        with blas_threads(1 if compute.threads > 1 else default_threads()):
            optimizer.step(compute.gradients(model, batch)[1], max_norm=1.0)

    return step


def torch_step(c: GPTConfig, ids: np.ndarray, targets: np.ndarray) -> Callable[[], object]:
    torch.manual_seed(0)
    model = TorchGPT(c)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.99), weight_decay=0.1)
    x, y = torch.from_numpy(ids), torch.from_numpy(targets)

    def step() -> None:
        loss = model.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def times(steps: list[Callable[[], object]], rounds: int, repeat: int) -> list[list[float]]:
    """Milliseconds per step of each, measured in turns, so that drift hits all alike."""
    measured: list[list[float]] = [[] for _ in steps]
    for round_ in range(rounds + 1):
        for step, into in zip(steps, measured, strict=True):
            begun = time.perf_counter()
            for _ in range(repeat):
                step()
            if round_:  # the first round warms up
                into.append((time.perf_counter() - begun) / repeat * 1e3)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="nano-cpu", choices=PRESETS)
    parser.add_argument("--vocab-size", type=int, default=65)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeat", type=int, default=10)
    asked = parser.parse_args()
    keep_freed_memory()
    preset = PRESETS[asked.preset]
    config = GPTConfig(
        vocab_size=asked.vocab_size,
        **{"block_size": 64, **preset.model, "dropout": 0.0, "tie_weights": True},
    )
    batch_size = asked.batch_size or preset.training["batch_size"]
    rng = np.random.default_rng(0)
    ids = rng.integers(0, config.vocab_size, (batch_size, config.block_size + 1))
    ours, theirs = times(
        [
            our_step(config, ids[:, :-1].copy(), ids[:, 1:].copy()),
            torch_step(config, ids[:, :-1].copy(), ids[:, 1:].copy()),
        ],
        asked.rounds,
        asked.repeat,
    )
    a, b = statistics.median(ours), statistics.median(theirs)
    threads = torch.get_num_threads()
    print(f"{asked.preset}: batch {batch_size} x {config.block_size}, {threads} threads")
    print(
        f"tinygrad_tf {a:.2f} ms (min {min(ours):.2f})  PyTorch {b:.2f} ms (min {min(theirs):.2f})"
    )
    print(f"ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
