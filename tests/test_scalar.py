"""Value: known numbers, conventions, and equality with a twin by plain recursion."""

import gc
import math
import operator
import weakref

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests import twins
from tests.twins import Twin
from tinygrad_tf import Tensor, Value
from tinygrad_tf.errors import InputError
from tinygrad_tf.scalar import dot

EIGHTHS = st.integers(-24, 24).map(lambda n: n / 8)


def slopes(f, *numbers):
    """The gradients of f, a function of Values, at numbers."""
    leaves = [Value(x) for x in numbers]
    f(*leaves).backward()
    return [leaf.grad for leaf in leaves]


# --- known numbers --------------------------------------------------------------------------------
def test_a_long_expression_with_much_reuse():
    # The expression that micrograd's documentation is known by, and the numbers it states.
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert f"{g.data:.4f} {a.grad:.4f} {b.grad:.4f}" == "24.7041 138.8338 645.5773"


def test_a_value_waits_for_all_its_users():
    x = Value(1.0)
    h = 2 * x
    y = h + 3 * h
    y.backward()
    assert (x.grad, h.grad) == (8.0, 4.0)
    x = Value(1.0)
    h = 2 * x
    k = 3 * h
    (k + h).backward()
    assert (x.grad, h.grad, k.grad) == (8.0, 4.0, 1.0)


def test_a_second_backward_adds_the_same_again():
    x = Value(2.0)
    h = x * x
    y = h * h
    y.backward()
    y.backward()
    assert (x.grad, h.grad, y.grad) == (64.0, 16.0, 2.0)


def test_two_results_add_up_in_what_they_share():
    x = Value(3.0)
    h = x * x
    (2 * h).backward()
    (5 * h).backward()
    assert (x.grad, h.grad) == (42.0, 7.0)


def test_equal_numbers_are_not_the_same_leaf():
    x, y = Value(2.0), Value(2.0)
    (x * y * y).backward()
    assert (x.grad, y.grad) == (4.0, 8.0)
    assert x not in [y] and x != y and len({x, y}) == 2


def test_a_shared_value_is_visited_once():
    x = Value(1.0)
    h = x
    for _ in range(60):
        h = h + h
    h.backward()
    assert x.grad == 2.0**60


def test_sum_starts_from_a_plain_zero():
    x = Value(3.0)
    sum([x, x * 2, 5]).backward()
    assert x.grad == 3.0


@pytest.mark.parametrize(
    ("f", "numbers", "right"),
    [
        (lambda x: x * x + x, (3,), [7.0]),
        (lambda x: x, (2,), [1.0]),
        # a constant on either side
        (lambda x: 5 + x, (2,), [1.0]),
        (lambda x: 5 * x, (2,), [5.0]),
        (lambda x: 5 - x, (2,), [-1.0]),
        (lambda x: 6 / x, (2,), [-1.5]),
        (lambda x: 2**x, (2,), [4 * math.log(2)]),
        (lambda x: x / 4, (2,), [0.25]),
        (lambda x: x - 4, (2,), [1.0]),
        (lambda x: x**3, (2,), [12.0]),
        (lambda x: -x, (2,), [-1.0]),
        # a tie is shared; the slope of relu at 0 is 0
        (lambda a, b: a.max(b), (1, 1), [0.5, 0.5]),
        (lambda a: a.max(a), (1,), [1.0]),
        (lambda a: a.max(1), (1,), [0.5]),
        (lambda a, b: a.max(b), (1, 2), [0.0, 1.0]),
        (Value.relu, (0,), [0.0]),
        # powers of 0 by the exponent, and powers by their base
        (lambda p: 0**p, (2,), [0.0]),
        (lambda p: 0**p, (0,), [0.0]),
        (lambda p: 0**p, (-1,), [-math.inf]),
        (lambda x, p: x**p, (0, 2), [0.0, 0.0]),
        (lambda x, p: x**p, (0, 0), [0.0, 0.0]),
        (lambda x, p: x**p, (0, 1), [1.0, 0.0]),
        (lambda x, p: x**p, (0, 0.5), [math.inf, 0.0]),
        (lambda x: x**3, (-2,), [12.0]),
        (lambda x: x**0, (-2,), [0.0]),
        # the square of the divisor would underflow
        (lambda x, y: x / y, (1e-200, 1e-200), [1e200, -1e200]),
        (Value.log, (0.5,), [2.0]),
        (Value.sin, (0.75,), [math.cos(0.75)]),
        (Value.cos, (0.75,), [-math.sin(0.75)]),
    ],
)
def test_slopes(f, numbers, right):
    assert slopes(f, *numbers) == pytest.approx(right, rel=1e-15)


def test_dot_is_the_sum_of_products():
    w, x, b = [Value(2.0), Value(-3.0)], [Value(5.0), 7.0], Value(0.5)
    y = dot(w, x, b)
    y.backward()
    assert y.data == -10.5 and len(y.edges) == 4
    assert [v.grad for v in (*w, x[0], b)] == [5.0, 7.0, 2.0, 1.0]
    assert slopes(lambda x: dot([x, x], [x, 3], 1), 4) == [11.0]
    with pytest.raises(ValueError, match="shorter"):
        dot(w, [1.0])


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), True])
@pytest.mark.parametrize("apply", [operator.add, operator.mul, operator.sub, operator.truediv])
def test_numpy_scalars_on_either_side(apply, number):
    x = Value(3.0)
    for y in (apply(number, x), apply(x, number)):
        assert type(y) is Value and type(y.data) is float
        y.backward()
    assert type(x.grad) is float


@pytest.mark.parametrize("other", ["2", None, 1j, np.ones(2), [1.0], Tensor(2.0)])
@pytest.mark.parametrize("apply", [operator.add, operator.mul, operator.pow, Value.max])
def test_other_types_are_refused(apply, other):
    with pytest.raises(TypeError, match="numbers and Values"):
        apply(Value(1.0), other)


def test_an_array_on_the_left_is_refused():
    for apply in (operator.add, operator.mul, operator.sub):
        with pytest.raises(TypeError, match="not of a ndarray"):
            apply(np.ones(2), Value(1.0))


def test_nan_propagates():
    assert math.isnan(Value(math.nan).max(1).data) and math.isnan(Value(1).max(math.nan).data)
    assert math.isnan(Value(math.nan).relu().data)


def test_other_types_make_no_leaf():
    for wrong in ("2", None, Value(2.0)):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            Value(wrong)


def test_saturated_functions_do_not_overflow_and_have_slope_0():
    for x in (1000.0, -1000.0, math.inf, -math.inf):
        assert slopes(Value.tanh, x) == [0.0] == slopes(Value.sigmoid, x)
        assert Value(x).tanh().data == math.copysign(1, x)
        assert Value(x).sigmoid().data == (x > 0)
    assert Value(-40.0).sigmoid().data == pytest.approx(math.exp(-40), rel=1e-15)


def test_too_large_is_infinite():
    assert Value(1000.0).exp().data == math.inf == (Value(1e200) ** 2).data
    assert (Value(-1e200) ** 3).data == -math.inf and (Value(-1e200) ** 4).data == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Value(-1.0).log(), r"log\(-1\) is not a real number"),
        (lambda: Value(0.0).log(), r"log\(0\) is not a real number"),
        (lambda: Value(1.0) / Value(0.0), "1 / 0 is a division by zero"),
        (lambda: Value(1.0) / 0, "division by zero"),
        (lambda: 3 / Value(0.0), "3 / 0 is a division by zero"),
        (lambda: Value(-8.0) ** 0.5, r"\(-8\) \*\* 0.5 is not a real number"),
        (lambda: (-8) ** Value(1 / 3), "is not a real number"),
        (lambda: Value(math.inf).sin(), r"sin\(inf\)"),
    ],
)
def test_an_undefined_result_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# --- depth and memory -----------------------------------------------------------------------------
def test_a_chain_of_100_000_runs_and_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = Value(1.0)
        y = x
        for _ in range(100_000):
            y = y + 0.0
        y.backward()
        assert x.grad == 1.0
        del y
        assert gc.collect() == 0, "there were cycles"
    finally:
        gc.enable()


def test_a_graph_is_freed_with_its_result():
    class Seen(Value):
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        x = Seen(2.0)
        y = ((x * x).tanh() + x.exp() / 3).max(x)
        y.backward()
        gone = weakref.ref(x)
        del x
        assert gone() is not None
        del y
        assert gone() is None
    finally:
        gc.enable()


# --- the twin -------------------------------------------------------------------------------------
class BesideItsTwin(RuleBasedStateMachine):
    """Random graphs with reuse, repeated backward and gradients reset to 0."""

    @initialize(numbers=st.lists(EIGHTHS, min_size=1, max_size=3))
    def begin(self, numbers):
        self.pairs = [(Value(x), Twin(x)) for x in numbers]

    def _keep(self, value, twin):
        if abs(twin.data) < 100:
            assert value.data == pytest.approx(twin.data, rel=1e-12, abs=1e-12)
            self.pairs.append((value, twin))

    def _pick(self, data):
        return self.pairs[data.draw(st.integers(0, len(self.pairs) - 1))]

    @rule(x=EIGHTHS)
    def leaf(self, x):
        self.pairs.append((Value(x), Twin(x)))

    @rule(data=st.data(), name=st.sampled_from(sorted(twins.UNARY)))
    def unary(self, data, name):
        value, twin = self._pick(data)
        if twin.data < 5:
            self._keep(getattr(value, name)(), twins.unary(name, twin))

    @rule(data=st.data(), name=st.sampled_from(sorted(twins.BINARY)), constant=st.none() | EIGHTHS)
    def binary(self, data, name, constant):
        a, twin_a = self._pick(data)
        b, twin_b = self._pick(data) if constant is None else (constant, Twin(constant))
        if name == "/" and abs(twin_b.data) < 0.1:
            return
        value = a.max(b) if name == "max" else OPERATORS[name](a, b)
        self._keep(value, twins.binary(name, twin_a, twin_b))

    @rule(data=st.data(), name=st.sampled_from("+-*/"), constant=EIGHTHS)
    def reflected(self, data, name, constant):
        b, twin_b = self._pick(data)
        if name != "/" or abs(twin_b.data) >= 0.1:
            value = OPERATORS[name](constant, b)
            self._keep(value, twins.binary(name, Twin(constant), twin_b))

    @rule(data=st.data(), times=st.integers(1, 2))
    def backward(self, data, times):
        value, twin = self._pick(data)
        for _ in range(times):
            value.backward()
            for _, other in self.pairs:
                twin.add_slope(other)

    @precondition(lambda self: any(value.grad for value, _ in self.pairs))
    @rule()
    def zero_grad(self):
        for value, twin in self.pairs:
            value.grad = twin.grad = twin.size = 0.0

    @invariant()
    def every_gradient_is_the_same(self):
        for value, twin in getattr(self, "pairs", []):
            assert twin.agrees(value.grad), (value, twin.grad)


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
TestBesideItsTwin = BesideItsTwin.TestCase
TestBesideItsTwin.settings = settings(max_examples=150, stateful_step_count=25)
