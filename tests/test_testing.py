"""Drawn inputs keep their promises, and one line tests an op."""

import doctest
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import tinygrad_tf.testing
from tinygrad_tf import GradcheckError, ops
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import RECORDS
from tinygrad_tf.testing import (
    anything,
    arrays,
    away_from,
    axes,
    between,
    broadcastable,
    check_op,
    distinct,
    halfway,
    indices,
    matmul_shapes,
    op_test,
    open_unit,
    positive,
    shapes,
)

OPS = SimpleNamespace(**RECORDS)

few = settings(max_examples=30)


# --- domains --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("domain", "inside"),
    [
        (anything, lambda x: abs(x) <= 2),
        (positive, lambda x: (x >= 0.25) & (x <= 4)),
        (halfway, lambda x: (abs(x) < 2) & (x * 8 % 1 == 0.5)),
        (open_unit, lambda x: (x > 0) & (x < 1)),
        (between(-1.0, 1.0), lambda x: abs(x) < 1),
        (between(0.1, 0.3), lambda x: (x > 0.1) & (x < 0.3)),
        (away_from(0.0), lambda x: abs(x) >= 0.125),
        (away_from(-1.0, 1.0, gap=0.25), lambda x: abs(abs(x) - 1) >= 0.25),
        (distinct(0.5), lambda x: x * 2 % 1 == 0),
    ],
)
def test_a_domain_holds_only_what_it_says_and_float32_holds_it_exactly(
    domain: Any, inside: Any
) -> None:
    numbers = np.array(domain.numerators) / domain.denominator
    assert len(numbers) >= 4 and np.all(inside(numbers))
    assert np.array_equal(numbers, numbers.astype(np.float32)) and len(set(numbers)) == len(numbers)


@few
@given(x=arrays(shapes(min_dims=1), distinct(0.25)))
def test_distinct_numbers_keep_their_distance(x: Any) -> None:
    assert x.size < 2 or np.min(np.diff(np.sort(x.reshape(-1)))) >= 0.25


def test_domains_that_hold_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="too narrow"):
        between(0.5, 0.5)
    with pytest.raises(ValueError, match="no eighth"):
        away_from(0.0, gap=5.0)


def test_numbers_and_shapes_shrink_to_the_simplest() -> None:
    quick = settings(max_examples=300, database=None)
    assert find(arrays(shapes(), positive), lambda x: True, settings=quick).shape == ()
    assert find(arrays((2,), positive), lambda x: True, settings=quick).tolist() == [1.0, 1.0]
    smallest = find(arrays(shapes()), lambda x: x.size > 0 and x.max() > 0.3, settings=quick)
    assert smallest.shape == () and smallest == 0.375


@few
@given(data=st.data())
def test_scale_and_dtype(data: Any) -> None:
    x = data.draw(arrays((3,), positive, scale=1e3, dtype=np.float32))
    assert x.dtype == np.float32 and np.all(x >= 250)


# --- shapes, axes, indices ------------------------------------------------------------------------
@few
@given(data=st.data())
def test_drawn_shapes_fit_together(data: Any) -> None:
    np.broadcast_shapes(*data.draw(broadcastable(3)))
    a, b = data.draw(matmul_shapes())
    np.matmul(np.zeros(a), np.zeros(b))
    shape = data.draw(shapes())
    assert all(0 <= n <= 3 for n in shape) and len(shape) <= 3
    np.sum(np.zeros(shape), axis=data.draw(axes(len(shape))))
    np.zeros(shape)[data.draw(indices(shape))]


@pytest.mark.parametrize("wanted", [None, 0, -1, (), (-1, 0)])
def test_every_kind_of_axis_is_drawn(wanted: Any) -> None:
    find(axes(2), lambda axis: axis == wanted and type(axis) is type(wanted))
    if wanted is not None:
        assert find(axes(2, none=False), lambda axis: axis is not None) is not None


@pytest.mark.parametrize(
    "wanted",
    [
        lambda i: isinstance(i, tuple) and any(part is None for part in i),
        lambda i: isinstance(i, np.ndarray) and i.dtype == np.bool_ and not i.any(),
        lambda i: isinstance(i, tuple) and i and isinstance(i[0], np.ndarray)
        and len(set(i[0].flat)) < i[0].size,
    ],
    ids=["newaxis", "empty mask", "repeats"],
)  # fmt: skip
def test_every_kind_of_index_is_drawn(wanted: Any) -> None:
    find(indices((3, 2)), lambda index: bool(wanted(index)), settings=settings(max_examples=2000))


# --- whole tests ----------------------------------------------------------------------------------
softsign = Op(
    "softsign",
    lambda x: x / (1.0 + np.abs(x)),
    (lambda g, _y, x: g / (1.0 + np.abs(x)) ** 2,),
)

test_softsign = op_test(softsign, lambda x: x / (1.0 + np.abs(x)), away_from(0.0), max_examples=10)
test_maximum = op_test(OPS.maximum, np.maximum, (anything, halfway), max_examples=10)
test_matmul = op_test(ops.matmul, np.matmul, shapes=matmul_shapes(), max_examples=10)
test_divide = op_test(ops.divide, np.divide, (anything, positive), max_examples=10)
test_log = op_test(ops.log, np.log, positive, examples=[(np.array([1e-3, 1e3]),)], max_examples=5)
test_sum = op_test(
    ops.sum,
    np.sum,
    anything,
    shapes=shapes(),
    params=lambda x: st.fixed_dictionaries({"axis": axes(x.ndim), "keepdims": st.booleans()}),
    max_examples=15,
)
test_getitem = op_test(
    lambda x, index: ops.getitem(x, index),
    lambda x, index: x[index],
    [anything],
    params=lambda x: st.fixed_dictionaries({"index": indices(x.shape)}),
    max_examples=15,
)


def test_the_test_has_the_name_of_the_op() -> None:
    assert test_softsign.__name__ == "test_softsign" and "softsign" in str(test_softsign.__doc__)


def test_a_wrong_rule_a_wrong_value_and_a_wrong_example_are_found() -> None:
    halved = Op("halved", lambda x: x * x, (lambda g, _y, x: g * x,))
    with pytest.raises(GradcheckError, match="entries differ"):
        op_test(halved)()
    with pytest.raises(AssertionError):
        op_test(ops.exp, np.expm1)()

    # Wrong at ties alone, which halfway never makes; an example does.
    greedy = Op("greedy", lambda x: x * x, (lambda g, _y, x: g * x * (2.0 + (x == 7.0)),))
    op_test(greedy, max_examples=5)()
    with pytest.raises(GradcheckError):
        op_test(greedy, max_examples=5, examples=[(np.array([7.0]),)])()


def test_a_failure_arrives_small_and_with_the_call() -> None:
    doubled = Op("doubled", lambda x: x * 3.0, (lambda g, _y, _x: g * 2.0,))
    with pytest.raises(GradcheckError) as caught:
        op_test(doubled)()
    (x,) = caught.value.inputs
    assert x.size == 1 and any("doubled(np." in note for note in caught.value.__notes__)


def test_a_parameter_reaches_op_and_reference() -> None:
    @settings(max_examples=10)
    @given(st.data())
    def body(data: Any) -> None:
        report = check_op(
            OPS.softmax,
            lambda x, axis: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
            anything,
            data,
            shapes=shapes(min_dims=1, min_side=1),
            params=lambda x: st.fixed_dictionaries({"axis": st.integers(-x.ndim, x.ndim - 1)}),
        )
        assert report.worst_second is not None

    body()


def test_a_point_that_is_all_kink_does_not_count() -> None:
    seen = []

    @settings(max_examples=15)
    @given(st.data())
    def body(data: Any) -> None:
        report = check_op(ops.relu, lambda x: np.maximum(x, 0), anything, data)
        seen.append(report)

    body()
    assert seen and all(report.entries or not report.kinks for report in seen)
    assert any(report.kinks for report in seen)


def test_how_many_inputs_must_be_known() -> None:
    with pytest.raises(TypeError, match="how many inputs"):
        op_test(lambda *xs: xs[0])()
    op_test(lambda *xs: xs[0] * xs[1], None, [anything] * 2, max_examples=3)()


# --- the module -----------------------------------------------------------------------------------
def test_the_example_in_the_docstring_runs() -> None:
    assert doctest.testmod(tinygrad_tf.testing).attempted >= 6
    assert doctest.testmod(tinygrad_tf.testing).failed == 0


def test_without_hypothesis_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from tinygrad_tf import gradcheck, ops\n"
        "try: import tinygrad_tf.testing\n"
        "except ImportError as fault: print(fault)"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert "pip install" in done.stdout and "hypothesis" in done.stdout
