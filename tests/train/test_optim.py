"""AdamW: known steps, groups, clipping, state."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import Linear, Parameter
from tinygrad_tf.train.optim import AdamW

RNG = np.random.default_rng(0)


def parameters() -> dict[str, Parameter]:
    """A vector between two matrices, and a scalar."""
    shapes = {"a": (3, 4), "b": (5,), "c": (2, 3, 2), "d": ()}
    rng = np.random.default_rng(1)
    return {n: Parameter(np.asarray(rng.normal(size=s), np.float32)) for n, s in shapes.items()}


def gradients(seed: int, params: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {n: np.asarray(rng.normal(size=p.shape), np.float32) for n, p in params.items()}


def copies(params: dict[str, Parameter]) -> dict[str, Any]:
    return {n: p.data.copy() for n, p in params.items()}


def test_the_first_step_moves_every_entry_by_lr() -> None:
    params = parameters()
    before, given_gradients = copies(params), gradients(0, params)
    AdamW(params, lr=0.01, weight_decay=0.0).step(given_gradients)
    for name, p in params.items():
        moved = p.data - before[name]
        np.testing.assert_allclose(moved, -0.01 * np.sign(given_gradients[name]), atol=1e-6)


def test_two_steps_by_hand() -> None:
    p = Parameter(np.array([[1.0]], np.float64))
    optimizer = AdamW([p], lr=0.1, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.5)
    weight, m, v = 1.0, 0.0, 0.0
    for t, g in enumerate((2.0, -1.0), start=1):
        optimizer.step({"0": np.array([[g]])})
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        weight *= 1 - 0.1 * 0.5
        weight -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.99**t)) + 1e-8)
        assert p.data.item() == pytest.approx(weight, rel=1e-12)


def test_only_matrices_decay() -> None:
    params = parameters()
    before = copies(params)
    zero = {n: np.zeros(p.shape, np.float32) for n, p in params.items()}
    AdamW(params, lr=0.1, weight_decay=0.5).step(zero)
    for name, p in params.items():
        expected = before[name] * (0.95 if p.ndim >= 2 else 1.0)
        np.testing.assert_allclose(p.data, expected, rtol=1e-6)


def test_every_parameter_is_in_exactly_one_group() -> None:
    params = parameters()
    optimizer = AdamW(params)
    assert sorted(optimizer.params) == sorted(params)
    ordered = list(optimizer.params.values())
    sizes = np.cumsum([p.size for p in ordered])
    decayed = [p for p, end in zip(ordered, sizes, strict=True) if end <= optimizer.decayed_size]
    assert all(p.ndim >= 2 for p in decayed)
    assert all(p.ndim < 2 for p in ordered[len(decayed) :])
    assert optimizer.decayed_size == sum(p.size for p in params.values() if p.ndim >= 2)


def test_groups_hold_across_the_blocks_of_a_large_array() -> None:
    """Sizes that are no multiple of a block: each entry still moves once, and decays or not."""
    layer = Linear(300, 257, rng=np.random.default_rng(0))
    assert layer.bias is not None
    layer.bias.data[:] = 1.0
    before = layer.weight.data.copy()
    ones = {n: np.ones(p.shape, np.float32) for n, p in layer.named_parameters().items()}
    AdamW(layer, lr=0.1, weight_decay=0.5).step(ones)
    np.testing.assert_allclose(layer.weight.data, before * 0.95 - 0.1, rtol=1e-5)
    np.testing.assert_allclose(layer.bias.data, 0.9, rtol=1e-6)


@given(st.floats(0.01, 100.0), st.integers(0, 50))
def test_clipping_scales_the_whole_gradient(max_norm: float, seed: int) -> None:
    clipped, scaled = parameters(), parameters()
    given_gradients = gradients(seed, clipped)
    norm = math.sqrt(sum(float(np.sum(g.astype(float) ** 2)) for g in given_gradients.values()))
    factor = min(1.0, max_norm / norm)
    by_clipping, by_hand = (AdamW(p, weight_decay=0.0) for p in (clipped, scaled))
    assert by_clipping.step(given_gradients, max_norm=max_norm) == pytest.approx(norm, rel=1e-5)
    by_hand.step({n: g * np.float32(factor) for n, g in given_gradients.items()})
    for name, moment in by_clipping.state_dict().items():
        np.testing.assert_allclose(moment, by_hand.state_dict()[name], rtol=1e-4, atol=1e-12)


def test_gradients_come_from_grad_where_none_are_given() -> None:
    first, second = parameters(), parameters()
    given_gradients = gradients(3, first)
    for name, p in first.items():
        p.grad = given_gradients[name]
    one, other = AdamW(first), AdamW(second)
    assert one.step() == other.step(given_gradients)
    assert all(np.array_equal(first[n].data, second[n].data) for n in first)
    one.zero_grad()
    assert all(p.grad is None for p in first.values())
    assert one.step() == 0.0  # none counts as 0
    for name, g in given_gradients.items():  # what was given is not written to
        np.testing.assert_array_equal(g, gradients(3, first)[name])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_changes_nothing(bad: float) -> None:
    params = parameters()
    optimizer = AdamW(params)
    optimizer.step(gradients(0, params))
    before, state = copies(params), {n: x.copy() for n, x in optimizer.state_dict().items()}
    wrong = gradients(1, params)
    wrong["c"][0, 0, 0] = bad
    assert not math.isfinite(optimizer.step(wrong, max_norm=1.0))
    assert optimizer.steps == 1
    assert all(np.array_equal(before[n], params[n].data) for n in params)
    assert all(np.array_equal(x, optimizer.state_dict()[n]) for n, x in state.items())


def test_the_state_goes_round_bit_for_bit() -> None:
    params, twins = parameters(), parameters()
    one, other = AdamW(params, lr=0.01), AdamW(twins, lr=0.01)
    for seed in range(3):
        one.step(gradients(seed, params), max_norm=1.0)
    for name, p in twins.items():
        p.data[...] = params[name].data
    other.load_state_dict({n: x.copy() for n, x in one.state_dict().items()}, one.steps)
    for seed in range(3, 6):
        one.step(gradients(seed, params), max_norm=1.0)
        other.step(gradients(seed, twins), max_norm=1.0)
    for name, p in params.items():
        assert p.data.tobytes() == twins[name].data.tobytes()
    for name, x in one.state_dict().items():
        assert x.tobytes() == other.state_dict()[name].tobytes()


def test_state_that_does_not_fit_is_refused() -> None:
    optimizer = AdamW(parameters())
    state = optimizer.state_dict()
    missing = {n: x for n, x in state.items() if n != "m.a"}
    misshapen = state | {"v.b": np.zeros(4)}
    for wrong, name in ((missing, r"m\.a"), (misshapen, r"v\.b"), (state | {"m.z": 0}, "extra")):
        with pytest.raises(InputError, match=name):
            optimizer.load_state_dict(wrong, 1)


def test_parameters_keep_their_values_shapes_and_identity() -> None:
    params = parameters()
    before = copies(params)
    AdamW(params)
    for name, p in params.items():
        assert type(p) is Parameter and p.requires_grad and p.dtype == np.float32
        np.testing.assert_array_equal(p.data, before[name])


def test_what_cannot_be_optimised_is_refused() -> None:
    with pytest.raises(InputError, match="no parameters"):
        AdamW([])
    with pytest.raises(InputError, match="dtypes"):
        AdamW([Parameter(np.ones(2, np.float32)), Parameter(np.ones(2))])


def test_mixed_dtypes_are_refused_in_any_order() -> None:
    with pytest.raises(InputError, match="dtypes"):
        AdamW([Parameter(np.ones(2)), Parameter(np.ones(2, np.float32))])


def test_a_parameter_given_twice_is_learned_once() -> None:
    p = Parameter(np.ones((2, 2), np.float32))
    p.grad = np.ones((2, 2))
    optimizer = AdamW([p, p], lr=0.1, weight_decay=0.0)
    optimizer.step()
    np.testing.assert_allclose(p.data, 0.9, rtol=1e-5)
    assert len(optimizer.params) == 1


def test_it_finds_a_minimum() -> None:
    goal = np.array([[3.0, -2.0]], np.float32)
    p = Parameter(np.zeros((1, 2), np.float32))
    optimizer = AdamW([p], lr=0.05, weight_decay=0.0)
    for _ in range(500):
        optimizer.step({"0": 2 * (p.data - goal)})
    np.testing.assert_allclose(p.data, goal, atol=1e-2)
