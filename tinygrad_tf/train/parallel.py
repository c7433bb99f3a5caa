"""The batch of a step split among threads: NumPy releases Python's lock while it computes.

Each thread differentiates its own rows, with one BLAS thread; the shares are added in a fixed
order. So besides the matrix products, which BLAS would spread over the cores anyway, everything
between them is spread too. The number of shards, not of cores, decides the last bits of a sum:
a run keeps the number that it began with.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tinygrad_tf.engine.graph import no_grad
from tinygrad_tf.engine.mutation import mutation_checks_off
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.engine.transforms import grad
from tinygrad_tf.nn.layers import dropout_from
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.train.batches import Examples

Gradients = dict[str, Any]
MOST_THREADS = 8
# Numbers that are not finite are looked for, and end a run: NumPy need not warn of them too.
QUIETLY = np.errstate(over="ignore", invalid="ignore")


class Learner(Protocol):
    """The part of a model that a trainer uses: a Module with a loss and a source of dropout."""

    training: bool
    dropout_rng: np.random.Generator

    @property
    def loss(self) -> Callable[..., Tensor]:
        """Compute the mean loss over targets of `Examples.arguments`, one number."""
        ...

    def named_parameters(self) -> dict[str, Parameter]:
        """See `Module`."""
        ...

    def file_tensors(self) -> dict[str, Any]:
        """See `Module`."""
        ...

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """See `Module`."""
        ...

    def train(self, mode: bool = True) -> Module:
        """See `Module`."""
        ...

    def eval(self) -> Module:
        """See `Module`."""
        ...


@mutation_checks_off()
def loss_and_gradients(model: Learner, batch: Examples) -> tuple[float, Gradients]:
    """Return the mean loss of a batch per target, and its gradient for every parameter."""
    loss = model.loss(*batch.arguments)
    return loss.item(), grad(loss, model.named_parameters())


class Compute:
    """Computes losses and gradients of batches in `threads` threads at once."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, "shard") if threads > 1 else None

    def gradients(self, model: Learner, batch: Examples) -> tuple[float, Gradients]:
        """Return what `loss_and_gradients` does; dropout masks are drawn anew for each shard."""
        if self._pool is None:
            return loss_and_gradients(model, batch)
        parts = _shards(batch, self.threads)
        total = max(1, sum(part.count for part in parts))
        # Drawn whether or not there is dropout to use them: it must not change what follows.
        seeds = model.dropout_rng.integers(2**63, size=len(parts))

        @mutation_checks_off()
        @QUIETLY
        def one(i: int) -> tuple[float, Gradients]:
            share = parts[i].count / total
            with dropout_from(np.random.default_rng(seeds[i])):
                loss = model.loss(*parts[i].arguments) * share
                return loss.item(), grad(loss, model.named_parameters())

        results = list(self._pool.map(one, range(len(parts))))
        loss, gradients = results[0]
        for more, shares in results[1:]:
            loss += more
            for name, share in shares.items():
                gradients[name] += share
        return loss, gradients

    def mean_loss(self, model: Learner, batches: Iterable[Examples]) -> float:
        """Return the loss without dropout, in nats per target over all batches together."""

        @no_grad()
        @QUIETLY
        def nats(batch: Examples) -> tuple[float, int]:
            return model.loss(*batch.arguments).item() * batch.count, batch.count

        training, waiting = model.training, iter(batches)
        parts: list[tuple[float, int]] = []
        model.eval()
        try:
            # A few at a time: the batches of a large split do not fit into memory together.
            while some := list(itertools.islice(waiting, self.threads)):
                parts += map(nats, some) if self._pool is None else self._pool.map(nats, some)
        finally:
            model.train(training)
        return math.fsum(part for part, _ in parts) / max(1, sum(count for _, count in parts))


def _shards(batch: Examples, count: int) -> list[Examples]:
    """Split the examples of a batch into `count` parts as equal as can be, without empty ones."""
    total = len(batch.arguments[0])
    return [batch.take(rows) for rows in np.array_split(np.arange(total), min(count, total))]


def default_threads() -> int:
    """Return a sensible number of threads: the cores of this process, if BLAS can share them."""
    if _blas_control() is None:
        return 1
    values = [os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")]
    limits = [int(number) for number in values if number.isdigit() and int(number) > 0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min([cores or 1, MOST_THREADS, *limits])


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Set the number of threads of the BLAS under NumPy within this context, if possible."""
    control = _blas_control()
    if control is None:
        yield
        return
    get, set_ = control
    before = get()
    set_(count)
    try:
        yield
    finally:
        set_(before)


@cache
def _blas_control() -> tuple[Any, Any] | None:
    """OpenBLAS's own functions to get and set its threads, from the library that NumPy brought."""
    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for pattern in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads"):
                names = [pattern.format(verb) for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    return getattr(library, names[0]), getattr(library, names[1])
    return None
