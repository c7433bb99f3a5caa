"""Every record of the tables: its gradient, and its gradient's gradient."""

from inspect import signature
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from tests.engine.gradients import (
    eighths,
    first_order,
    leaves,
    second_order,
)
from tests.engine.op_cases import CASES, Case
from tinygrad_tf import Tensor, grad, gradcheck, ops
from tinygrad_tf.engine.graph import Fused
from tinygrad_tf.engine.table import RECORDS
from tinygrad_tf.types import Array

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
few = settings(max_examples=8)
many = settings(max_examples=16)
SEEDS = st.integers(0, 2**16)


def drawn(case: Case, data: Any, seed: int) -> tuple[Any, list[Array], Array]:
    """A function of arrays alone, its inputs and an upstream gradient."""
    inputs, options = data.draw(case.inputs)

    def f(*xs: Tensor) -> Tensor:
        return case.call(*xs, **options)

    up = eighths(seed, f(*map(Tensor, inputs)).shape)
    return f, inputs, up


def test_every_record_has_a_case() -> None:
    assert {x.name for x in set(RECORDS.values()) - {case.record for case in CASES}} == set()


def test_every_public_function_has_a_case() -> None:
    called: set[Any] = set()
    for case in CASES:
        called.add(case.call)
        if case.call.__module__ == Case.__module__:
            called |= {getattr(ops, name, None) for name in case.call.__code__.co_names}
    without = {name for name in ops.__all__ if getattr(ops, name) not in called}
    # These have no gradient, or no inputs that could have one.
    assert without == {"additive_mask", "argmax", "argmin", "argsort", "dropout_mask"}


# What the strategies must be able to draw, since the properties below hold only for what is drawn.
def is_empty(case: Case, xs: list[Array], options: dict[str, Any]) -> bool:
    return any(x.size == 0 for x in xs) or case.call(*map(Tensor, xs), **options).size == 0


def is_single(case: Case, xs: list[Array], options: dict[str, Any]) -> bool:
    return any(x.ndim == 0 for x in xs)


def counts_back(case: Case, xs: list[Array], options: dict[str, Any]) -> bool:
    axes = [v for key, v in options.items() if key.startswith("ax")]
    return any(a < 0 for v in axes for a in (v if isinstance(v, tuple) else (v,)) if a is not None)


def is_broadcast(case: Case, xs: list[Array], options: dict[str, Any]) -> bool:
    shape = case.call(*map(Tensor, xs), **options).shape
    return any(x.shape != shape for x in xs) and xs[0].size > 0


NEEDS_AN_AXIS = {
    *("prod_along", "cumsum", "cumprod", "std", "norm", "softmax", "log_softmax", "logsumexp"),
    *("einsum_outer", "dot", "outer", "swapaxes", "expand_dims", "split", "repeat", "roll"),
    *("roll_along", "triu", "tril", "take", "take_along_axis", "sort", "topk", "matmul"),
    *("concatenate", "getitem", "gather", "linear", "layer_norm", "rms_norm", "cross_entropy"),
    *("embedding", "attention", "self_attention"),
}
TAKES_AN_AXIS = {case.name for case in CASES if "axis" in signature(case.call).parameters}
TAKES_TWO = {
    *("add", "subtract", "multiply", "divide", "power", "arctan2", "maximum", "minimum", "clip"),
    *("where", "matmul", "einsum", "linear", "layer_norm", "rms_norm", "broadcast_to"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (is_empty, {case.name for case in CASES}),
        (is_single, {case.name for case in CASES} - NEEDS_AN_AXIS),
        (counts_back, TAKES_AN_AXIS - {"swapaxes", "moveaxis"} | {"transpose", "stack"}),
        (is_broadcast, TAKES_TWO),
    ],
)
def test_the_strategies_draw_every_kind_of_input(kind: Any, names: set[str]) -> None:
    def can_draw(case: Case) -> bool:
        try:
            find(case.inputs, lambda drawn: kind(case, *drawn), settings=SEARCH)
        except NoSuchExample:
            return False
        return True

    assert {c.name for c in CASES if c.name in names and not can_draw(c)} == set()


SEARCH = settings(max_examples=400, phases=[Phase.generate], database=None)


def check_gradients(case: Case, data: Any, seed: int) -> None:
    """First and second order, float32, memory layouts, mutation: all that `gradcheck` checks."""
    f, inputs, up = drawn(case, data, seed)
    if case.record is not None:
        assert f(*leaves(inputs)).node.op is case.record
    assert not gradcheck(f, *inputs, up=up, order=2).ill_conditioned


@every_case
@few
@given(data=st.data(), seed=SEEDS)
def test_gradients_equal_differences_and_obey_the_laws(case: Case, data: Any, seed: int) -> None:
    check_gradients(case, data, seed)


@pytest.mark.slow
@every_case
@many
@given(data=st.data(), seed=SEEDS)
def test_gradients_of_many_inputs(case: Case, data: Any, seed: int) -> None:
    check_gradients(case, data, seed)


@pytest.mark.slow
@every_case
@many
@given(data=st.data(), seed=SEEDS)
def test_gradients_own_their_memory(case: Case, data: Any, seed: int) -> None:
    f, inputs, up = drawn(case, data, seed)
    xs = leaves(inputs)
    grad(f(*xs), xs, upstream=up, retain_graph=True)
    f(*xs).backward(up)
    gradients = [x.grad for x in xs]
    for i, g in enumerate(gradients):
        assert type(g) is np.ndarray and g.flags.writeable and g.shape == inputs[i].shape
        for other in [up, *inputs, *gradients[:i]]:
            assert not np.shares_memory(g, other)


@pytest.mark.parametrize(
    "case", [c for c in CASES if isinstance(c.record, Fused)], ids=lambda case: case.name
)
@few
@given(data=st.data(), seed=SEEDS)
def test_fused_equals_composite(case: Case, data: Any, seed: int) -> None:
    f, inputs, up = drawn(case, data, seed)
    node = f(*leaves(inputs)).node
    # The constant inputs and the options are those that the node holds.
    places = [i for i, parent in enumerate(node.parents) if parent is not None]

    def composite(*xs: Tensor) -> Tensor:
        filled = list(node.inputs)
        for place, x in zip(places, xs, strict=True):
            filled[place] = x
        return case.record.composite(*filled, **node.params)

    value, gradients = first_order(f, inputs, up)
    plain_value, plain_gradients = first_order(composite, inputs, up)
    np.testing.assert_allclose(value, plain_value, rtol=1e-12, atol=1e-12)
    for mine, plain in zip(gradients, plain_gradients, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-12, atol=1e-12)


def compare_with_pytorch(case: Case, dtype: Any, tolerance: float, data: Any, seed: int) -> None:
    """Values, gradients and gradients of gradients."""
    torch = pytest.importorskip("torch")
    inputs, options = data.draw(case.inputs)
    inputs = [x.astype(dtype) for x in inputs]

    def f(*xs: Tensor) -> Tensor:
        return case.call(*xs, **options)

    up = eighths(seed, f(*map(Tensor, inputs)).shape).astype(dtype)
    along = [eighths(seed + i, x.shape).astype(dtype) for i, x in enumerate(inputs)]
    value, gradients = first_order(f, inputs, up)
    ours = [value, *gradients, *second_order(f, inputs, up, along)]

    theirs = [torch.tensor(x, requires_grad=True) for x in [*inputs, up]]
    y = case.torch(torch, *theirs[:-1], **options)
    first = torch.autograd.grad(
        y, theirs[:-1], theirs[-1], create_graph=True, materialize_grads=True
    )
    total = sum((g * torch.from_numpy(v)).sum() for g, v in zip(first, along, strict=True))
    total = total + 0.0 * sum(x.sum() for x in theirs)  # every input is part of it
    second = torch.autograd.grad(total, theirs)
    for mine, other in zip(ours, [y, *first, *second], strict=True):
        expected = other.numpy(force=True)
        size = 1.0 + np.max(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(mine, expected, rtol=0, atol=tolerance * size)


in_pytorch = pytest.mark.parametrize(
    "case", [c for c in CASES if c.torch is not None], ids=lambda case: case.name
)


@pytest.mark.reference
@in_pytorch
@settings(max_examples=4)
@given(data=st.data(), seed=SEEDS)
def test_equals_pytorch(case: Case, data: Any, seed: int) -> None:
    compare_with_pytorch(case, np.float64, 1e-10, data, seed)


@pytest.mark.slow
@pytest.mark.reference
@in_pytorch
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@few
@given(data=st.data(), seed=SEEDS)
def test_equals_pytorch_for_more_inputs(
    case: Case, dtype: Any, tolerance: float, data: Any, seed: int
) -> None:
    compare_with_pytorch(case, dtype, tolerance, data, seed)
