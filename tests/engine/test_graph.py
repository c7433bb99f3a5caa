"""The walk back: what is kept, freed, refused and shared, and what threads see of one another."""

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, enable_grad, grad, no_grad, ops
from tinygrad_tf.engine.graph import Node
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.train import AdamW
from tinygrad_tf.types import Array


def leaf(*values: Any, dtype: Any = np.float64) -> Tensor:
    """A Tensor that requires a gradient."""
    return Tensor(np.array(values[0] if len(values) == 1 else values, dtype), requires_grad=True)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Memory must go back without the collector of cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# --- walking once, walking again ------------------------------------------------------------------
def test_a_retained_graph_can_be_walked_again_and_accumulates() -> None:
    x = leaf(2.0)
    h = x * x
    y = h * h
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad == 64.0 and type(x.grad) is np.ndarray


def test_a_freed_graph_says_so() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        grad(y, x)
    assert x.grad == 4.0


def test_a_graph_that_reaches_a_freed_part_leaves_gradients_alone() -> None:
    x, z = leaf(2.0), leaf(5.0)
    h = x * x
    h.backward()
    x.grad = None
    with pytest.raises(RuntimeError):
        (h * z).backward()
    assert x.grad is None and z.grad is None


def test_freeing_lets_go_of_what_was_kept() -> None:
    y = ops.exp(leaf(1.0, 2.0)) * 2.0
    node = y.node
    y.sum().backward()
    assert node is not None and node.inputs is None and node.output is None and not node.extras


def test_a_shared_part_is_walked_once() -> None:
    x = leaf(3.0)
    h = x * 2.0
    for _ in range(40):
        h = h + h  # walked path by path this would take 2**40 steps
    h.backward()
    assert x.grad == 2.0**41


def test_reuse_and_several_outputs() -> None:
    x = leaf(1.0, 2.0)
    a, b = x[:1], x[1:]
    (a * 3.0 + b * 5.0 + ops.sum(x)).sum().backward()
    np.testing.assert_array_equal(x.grad, [4.0, 6.0])


# --- roots and upstream ---------------------------------------------------------------------------
def test_a_root_is_one_number() -> None:
    x = leaf([1.0, 1.0])
    with pytest.raises(ValueError, match=r"shape \(2,\).*sum"):
        (x * 2.0).backward()
    with pytest.raises(ValueError, match="sum"):
        grad(x * 2.0, x)
    one = leaf([[1.0]])
    (one * 2.0).backward()
    np.testing.assert_array_equal(one.grad, [[2.0]])


def test_upstream_has_the_shape_of_the_root() -> None:
    x = leaf([1.0, 2.0])
    for wrong in (np.ones((2, 1)), np.ones(3), 1.0):
        with pytest.raises(ValueError, match="upstream has shape"):
            (x * 2.0).backward(wrong)
    (x * 2.0).backward([1, 10])
    np.testing.assert_array_equal(x.grad, [2.0, 20.0])


def test_nothing_recorded_is_an_error() -> None:
    x = Tensor([1.0])
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        (x * 2.0).backward()
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        grad(leaf(1.0) * 2.0, x)


def test_a_leaf_is_its_own_gradient() -> None:
    x = leaf(2.0)
    x.backward()
    assert x.grad == 1.0
    assert grad(x, x) == 1.0


# --- grad -----------------------------------------------------------------------------------------
def test_grad_keeps_structure_and_touches_nothing() -> None:
    x, y, apart = leaf(2.0), leaf(3.0), leaf([1.0, 2.0])
    loss = x * x * y
    assert grad(loss, x, retain_graph=True) == 12.0
    listed = grad(loss, [x, y, apart], retain_graph=True)
    assert isinstance(listed, list) and listed[:2] == [12.0, 4.0]
    np.testing.assert_array_equal(listed[2], [0.0, 0.0])
    named = grad(loss, {"y": y, "x": x, "apart": apart})
    assert list(named) == ["y", "x", "apart"] and named["y"] == 4.0
    assert x.grad is None and y.grad is None and apart.grad is None


def test_grad_of_an_intermediate_result() -> None:
    x = leaf(2.0)
    h = x * x
    assert grad(h * h, [h, x]) == [8.0, 32.0]


def test_unreached_inputs_get_zero_of_their_dtype() -> None:
    apart = leaf([1.0, 2.0], dtype=np.float32)
    for create in (False, True):
        zero = grad(leaf(1.0) * 2.0, apart, create_graph=create)
        data = zero.data if isinstance(zero, Tensor) else zero
        assert data.dtype == np.float32 and not data.any()


def test_derivatives_of_derivatives() -> None:
    x = leaf(2.0)
    first = grad(x**4, x, create_graph=True)
    second = grad(first, x, create_graph=True)
    third = grad(second, x, create_graph=True)
    assert [d.item() for d in (first, second, third)] == [32.0, 48.0, 48.0]
    assert grad(third, x) == 24.0


def test_create_graph_inside_no_grad_records() -> None:
    x = leaf(2.0)
    y = x**3
    with no_grad():
        first = grad(y, x, create_graph=True)
    assert grad(first, x) == 12.0


# --- what is recorded -----------------------------------------------------------------------------
def test_no_grad_and_its_end() -> None:
    x = leaf(1.0)
    with no_grad():
        assert not (x * 2.0).requires_grad
        with enable_grad():
            assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    assert (x * 2.0).requires_grad
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert (x * 2.0).requires_grad


def test_no_grad_as_decorator() -> None:
    @no_grad()
    def double(x: Tensor) -> Tensor:
        return x * 2.0

    x = leaf(1.0)
    assert not double(x).requires_grad and not double(x).requires_grad
    assert (x * 2.0).requires_grad


def test_a_context_may_be_entered_again() -> None:
    quiet = no_grad()
    x = Tensor(1.0, requires_grad=True)
    for _ in range(2):
        with quiet, quiet:
            assert not (x * 2.0).requires_grad
        assert (x * 2.0).requires_grad


def test_no_grad_holds_for_its_thread_only() -> None:
    x, inside, done = leaf(1.0), threading.Event(), threading.Event()

    def elsewhere() -> None:
        with no_grad():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    assert inside.wait(10)
    try:
        assert (x * 2.0).requires_grad
    finally:
        done.set()
        thread.join()


def test_threads_differentiate_shared_leaves_alike() -> None:
    rng = np.random.default_rng(0)
    w = Tensor(rng.normal(size=(8, 8)), requires_grad=True)
    shards = rng.normal(size=(8, 4, 8))

    def work(shard: Array) -> Array:
        loss = ops.sum(ops.softmax(ops.gelu(shard @ w) @ w)[:, 0])
        return grad(loss, w)

    alone = [work(shard) for shard in shards]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            for mine, other in zip(alone, pool.map(work, shards), strict=True):
                np.testing.assert_array_equal(mine, other)
    assert w.grad is None


def test_retain_grad_and_detach() -> None:
    x = leaf(3.0)
    h = (x * x).retain_grad()
    (h * 2.0 + h.detach() * 100.0).backward()
    assert h.grad == 2.0 and x.grad == 12.0
    assert not h.detach().requires_grad and np.shares_memory(h.detach().data, h.data)
    with pytest.raises(RuntimeError):
        Tensor(1.0).retain_grad()


def test_the_gradient_of_an_intermediate_is_not_kept_unasked() -> None:
    x = leaf(3.0)
    h = x * x
    (h * 2.0).backward()
    assert h.grad is None


# --- ownership ------------------------------------------------------------------------------------
def test_no_two_gradients_share_memory() -> None:
    a, b, c = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([[5.0, 6.0]])
    up = np.ones(2)
    h = (a + b).retain_grad()
    (h + c.reshape(2)).backward(up)
    arrays = [a.grad, b.grad, c.grad, h.grad, up]
    for i, one in enumerate(arrays):
        for other in arrays[:i]:
            assert not np.shares_memory(one, other)
    a.grad += 1.0
    np.testing.assert_array_equal(b.grad, [1.0, 1.0])
    np.testing.assert_array_equal(up, [1.0, 1.0])


def test_accumulation_does_not_write_into_a_gradient_that_was_handed_out() -> None:
    x = leaf([1.0, 2.0])
    (x * 2.0).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    np.testing.assert_array_equal(first, [2.0, 2.0])
    np.testing.assert_array_equal(x.grad, [5.0, 5.0])


def test_gradients_can_be_set_and_cleared() -> None:
    x = leaf([1.0, 2.0], dtype=np.float32)
    x.grad = [1, 2]
    assert x.grad is not None and x.grad.dtype == np.float32
    with pytest.raises(ValueError, match="shape"):
        x.grad = np.ones(3)
    x.grad = None
    frozen = Tensor([1.0])
    frozen.grad = None  # nothing to forget
    with pytest.raises(AttributeError):
        frozen.grad = [1.0]


# --- depth and memory -----------------------------------------------------------------------------
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("walked", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_chain_of_100_000(walked: bool) -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 0.0
    if walked:
        y.backward()
        assert x.grad == 1.0
    del y


def step(w: Tensor, x: Array) -> Tensor:
    """A loss that passes through plain and fused ops."""
    h = ops.layer_norm(ops.gelu(ops.linear(x, w)))
    h = ops.attention(h, h, h, 2, causal=True)
    return ops.cross_entropy(h[0], [0, 1, 2])


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("end", ["backward", "grad", "second order", "never walked", "refused"])
def test_memory_returns_after_every_step(end: str) -> None:
    w = Tensor(np.random.default_rng(0).normal(size=(4, 4)), requires_grad=True)
    x = np.random.default_rng(1).normal(size=(1, 3, 4))

    def once() -> None:
        loss = step(w, x)
        if end == "backward":
            w.grad = None
            loss.backward()
        elif end == "grad":
            grad(loss, w)
        elif end == "second order":
            grad(ops.sum(grad(loss, w, create_graph=True) ** 2), w)
        elif end == "refused":
            with pytest.raises(ValueError, match="upstream"):
                loss.backward(np.ones(3))

    for _ in range(3):
        once()
    tracemalloc.start()
    try:
        once()
        before = held()
        for _ in range(20):
            once()
        assert held() == before
    finally:
        tracemalloc.stop()


def held() -> tuple[int, int]:
    """Count the living nodes, and the bytes of the arrays made since tracing began."""
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces
    nodes = sum(type(thing) is Node for thing in gc.get_objects())
    return nodes, sum(trace.size for trace in traces)


def test_one_input_asked_for_twice_gets_two_arrays() -> None:
    x = Tensor(np.ones(3), requires_grad=True)
    first, second = grad((x * 2.0).sum(), [x, x])
    first[:] = 7.0
    assert second.tolist() == [2.0, 2.0, 2.0]


def test_equal_gradients_share_no_memory_under_create_graph() -> None:
    p, q = (Tensor(np.ones(3), requires_grad=True) for _ in range(2))
    for_p, for_q = grad((p + q).sum(), [p, q], create_graph=True)
    assert not np.shares_memory(for_p.data, for_q.data)


@pytest.mark.slow
def test_a_thousand_training_steps_hold_what_ten_hold(no_collector: None) -> None:
    model = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=8, block_size=8, vocab_size=5))
    optimizer, ids = AdamW(model), np.arange(16).reshape(2, 8) % 5

    def train(steps: int) -> None:
        for _ in range(steps):
            optimizer.step(grad(model.loss(ids, ids), model.named_parameters()))

    tracemalloc.start()
    try:
        train(10)
        after_ten, objects = held(), len(gc.get_objects())
        train(990)
        assert held() == after_ten
        assert len(gc.get_objects()) - objects < 100  # not one object in ten steps is left behind
    finally:
        tracemalloc.stop()
