"""A batch shared by threads: the same mathematics, the same bits every time."""

import numpy as np
import pytest

from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.train.batches import Batch
from tinygrad_tf.train.parallel import (
    Compute,
    blas_threads,
    default_threads,
    loss_and_gradients,
)
from tinygrad_tf.types import IGNORE

V, T = 13, 8


def make(dropout: float = 0.0) -> GPT:
    shape = {"block_size": T, "n_layer": 2, "n_head": 2, "n_embd": 16}
    return GPT(GPTConfig(vocab_size=V, dropout=dropout, **shape), seed=3)


def some_batch(rows: int, seed: int = 0) -> Batch:
    """Rows with different numbers of targets that count."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, V, (rows, T))
    targets[np.arange(T) >= rng.integers(1, T + 1, rows)[:, None]] = IGNORE
    return Batch(rng.integers(0, V, (rows, T)), targets)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 5, 7])
def test_shards_add_up_to_the_whole_batch(threads: int, rows: int) -> None:
    model, batch = make().astype(np.float64), some_batch(rows)
    loss, gradients = loss_and_gradients(model, batch)
    shared_loss, shared = Compute(threads).gradients(model, batch)
    assert shared_loss == pytest.approx(loss, rel=1e-12)
    assert shared.keys() == gradients.keys()
    for name, g in gradients.items():
        np.testing.assert_allclose(shared[name], g, rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_same_bits_every_time_also_with_dropout() -> None:
    def bits() -> bytes:
        model, compute = make(dropout=0.3), Compute(3)
        rounds = [compute.gradients(model, some_batch(7, seed)) for seed in range(5)]
        return b"".join(g.tobytes() for _, gradients in rounds for g in gradients.values())

    assert bits() == bits()


def test_each_shard_draws_dropout_masks_of_its_own() -> None:
    row = some_batch(1)
    twice = Batch(np.repeat(row.ids, 2, axis=0), np.repeat(row.targets, 2, axis=0))
    model = make(dropout=0.5)
    one_mask = {Compute(2).gradients(model, twice)[0] for _ in range(4)}
    assert len(one_mask) == 4  # the model's generator moved on each time


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_evaluation_is_dropout_free_and_equal_for_any_number_of_threads(threads: int) -> None:
    batches = [some_batch(3, seed) for seed in range(7)]
    model = make(dropout=0.5)
    expected = Compute(1).mean_loss(model, batches)
    assert Compute(threads).mean_loss(model, iter(batches)) == pytest.approx(expected, rel=1e-12)
    assert model.training


def test_a_fault_in_a_shard_is_raised() -> None:
    batch = Batch(np.full((4, T), V), np.zeros((4, T), np.int64))
    with pytest.raises(IndexError):
        Compute(2).gradients(make(), batch)


def test_the_threads_of_blas_are_put_back() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def counts() -> list[int]:
        return [
            x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"
        ]

    before = counts()
    with pytest.raises(ValueError, match="inside"), blas_threads(1):
        assert set(counts()) <= {1}
        raise ValueError("inside")
    assert counts() == before


def test_the_default_number_of_threads_heeds_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "no number")
    assert default_threads() >= 1
