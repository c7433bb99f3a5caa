"""The gradient checker: what it accepts, what it finds, and how it says so."""

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import GradcheckError, Tensor, gradcheck, ops
from tinygrad_tf.checking.cases import cases, check_record, check_table
from tinygrad_tf.checking.differences import slope, step_for
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import RECORDS
from tinygrad_tf.errors import InputError

OPS = SimpleNamespace(**RECORDS)

X = np.array([[0.5, -1.25, 2.0], [0.25, 1.5, -0.75]])
ROW = np.array([1.5, -0.5, 0.25])


def failure(*arguments: Any, **options: Any) -> GradcheckError:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(*arguments, **options)
    return caught.value


# --- what it accepts ------------------------------------------------------------------------------
def test_the_name_is_a_function_whatever_was_imported_before() -> None:
    import tinygrad_tf.checking.check

    assert callable(tinygrad_tf.gradcheck)
    assert tinygrad_tf.gradcheck is tinygrad_tf.checking.gradcheck is gradcheck
    assert tinygrad_tf.checking.GradcheckError is GradcheckError


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (OPS.exp, (X,)),
        (OPS.layer_norm, (X, ROW, None)),
        (ops.matmul, (X, X.T)),
        (ops.power, (abs(X), 3)),
        (lambda x: ops.tanh(x) * 2.0, (0.5,)),
        (lambda x: x.sum(), (Tensor(X),)),
        (lambda x, axis: ops.softmax(x, axis), (X, 0)),
        (lambda x: x[np.array([0, 0, 1])], (X,)),
        (lambda x: x * 3.0, (np.zeros((0, 2)),)),
        (lambda x: Tensor(np.ones(2, x.dtype)), (X,)),
    ],
)
@pytest.mark.parametrize("method", ["central", "complex", "directional"])
def test_right_gradients_pass(f: Any, inputs: tuple[Any, ...], method: str) -> None:
    options = {"eps": 0.125} if f is OPS.layer_norm else {}
    call = (lambda *xs: Tensor.record(f, *xs, **options)) if options else f
    report = gradcheck(call, *inputs, method=method, order=2)
    assert report.worst < 1e-8 and report.worst_second is not None and report.worst_second < 1e-7
    assert not report.ill_conditioned and not report.kinks
    assert "passed" in str(report)


def test_numpy_with_a_backward_by_hand() -> None:
    assert gradcheck(np.sin, X, backward=lambda g, x: g * np.cos(x)).entries == X.size
    gradcheck(np.multiply, X, 2.5, backward=lambda g, x, y: (g * y, np.sum(g * x)))
    ids = np.array([1, 1, 0])

    def take(g: Any, x: Any, i: Any) -> Any:
        out = np.zeros_like(x)
        np.add.at(out, i, g)
        return out

    gradcheck(lambda x, i: x[i], X, ids, backward=take)
    # One gradient per argument is as good: None for what has none.
    gradcheck(lambda x, i: x[i], X, ids, backward=lambda g, x, i: (take(g, x, i), None))


def test_everything_given_stays_as_it_was() -> None:
    x, up = X.copy(), np.ones_like(X)
    gradcheck(ops.exp, x, up=up, order=2)
    assert np.array_equal(x, X) and np.all(up == 1.0)


@pytest.mark.parametrize(
    ("arguments", "options", "what"),
    [
        ((ops.exp, [1.0, 2.0]), {}, "none of the inputs"),
        ((ops.exp, np.arange(3)), {}, "none of the inputs"),
        ((3, X), {}, "int is not a function"),
        ((ops.exp, X), {"method": "forward"}, "`method` is 'forward'"),
        ((ops.exp, X), {"order": 3}, "`order` is 3"),
        ((ops.exp, X), {"on_kink": "pass"}, "`on_kink` is 'pass'"),
        (
            (ops.exp, X),
            {"up": ROW},
            r"`up` has shape \(3,\), but the output of f has shape \(2, 3\)",
        ),
        ((lambda x: ops.split(x, 2), X), {}, "returned a list"),
        ((np.sin, X), {"backward": lambda g, x: g, "order": 2}, "no second order"),
        ((ops.log, np.array([1.0, 0.0])), {}, r"log is -inf at output \(1,\)"),
    ],
)
def test_what_makes_no_sense_is_an_input_error(
    arguments: Any, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(InputError, match=what) as caught:
        gradcheck(*arguments, **options)
    assert caught.value.next


# --- the message ----------------------------------------------------------------------------------
def test_the_message_says_what_where_how_much_and_how_to_see_it_again() -> None:
    def repeat(x: Any) -> Any:
        return np.repeat(x, 2, axis=-1)

    def backward(g: Any, x: Any) -> Any:
        return g.reshape(2, 2, 2).sum(1)  # as if it were axis -2

    error = failure(
        repeat, np.ones((2, 2)), up=np.arange(1.0, 9.0).reshape(2, 4), backward=backward
    )
    assert str(error).splitlines() == [
        "gradcheck failed: repeat, argument 0 (x, shape (2, 2), float64): "
        "4 of 4 entries differ, method=central eps=6.1e-06",
        "  d loss / d x[0, 0]   analytic 4.000000   numeric 3.000000   abs 1.0e+00  rel 3.3e-01",
        "  d loss / d x[0, 1]   analytic 6.000000   numeric 7.000000   abs 1.0e+00  rel 1.4e-01",
        "  d loss / d x[1, 0]   analytic 12.00000   numeric 11.00000   abs 1.0e+00  rel 9.1e-02",
        "  d loss / d x[1, 1]   analytic 14.00000   numeric 15.00000   abs 1.0e+00  rel 6.7e-02",
        "  pattern: totals agree (36 = 36), positions differ "
        "-> right tensor, wrong axis or element order",
        "  reproduce: gradcheck(repeat, np.array([[1.0, 1.0], [1.0, 1.0]]), "
        "up=np.arange(1.0, 9.0).reshape(2, 4))",
    ]
    assert (error.kind, error.function, error.argument) == ("value", "repeat", 0)
    assert [e.index for e in error.entries] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert np.array_equal(error.inputs[0], np.ones((2, 2))) and error.exit_code == 1


def test_only_the_worst_are_shown_and_large_arrays_are_not_printed() -> None:
    x = np.linspace(0.5, 2.0, 100)
    error = failure(np.square, x, backward=lambda g, x: g * x)
    lines = str(error).splitlines()
    assert sum(line.startswith("  d loss") for line in lines) == 5 and "worst 5 shown" in lines[1]
    sizes = [e.absolute for e in error.entries]
    assert len(sizes) == 100 and sizes == sorted(sizes, reverse=True)
    assert "array of shape (100,)" in error.reproduce and len(str(error)) < 1200


def test_the_error_can_be_copied_and_pickled() -> None:
    error = failure(np.square, X, backward=lambda g, x: g * x)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(again) == str(error) and again.entries == error.entries


SQUARE = np.array([[0.5, -1.25], [0.25, 1.5]])
OTHER = np.array([[1.0, 0.5], [-0.75, 2.0]])
GRID = np.array([[0.5, -1.25, 2.0], [0.25, 1.5, -0.75], [1.0, -0.5, 0.125]])


@pytest.mark.parametrize(
    ("f", "backward", "inputs", "pattern"),
    [
        (np.sin, lambda g, x: -g * np.cos(x), (X,), "sign flipped"),
        (np.square, lambda g, x: g * x, (X,), "analytic = 0.5 x numeric -> a factor is dropped"),
        (
            lambda x: np.sum(x, axis=1),
            lambda g, x: np.repeat(g[:, None], 3, 1) / 3,
            (X,),
            "0.333333 x numeric -> 3 is the length",
        ),
        (np.matmul, lambda g, x, y: (g @ y.T, g.T @ x), (SQUARE, OTHER), "transposed"),
        (np.matmul, lambda g, x, y: (g @ y.T, g.T @ x), (X, X.T[:, :1].copy()), "transposed"),
        (np.multiply, lambda g, x, y: (g * y, g * x), (X, ROW), "summed over axis 0 it is right"),
        (np.multiply, lambda g, x, y: (g * x, g * y), (X, -2 * X[::-1]), "are exchanged"),
        (np.multiply, lambda g, x, y: (g * 0, g * x), (X, 2 * X), "the path to this argument"),
        (np.abs, lambda g, x: g * (x > 0), (X,), "the others agree -> a missed path"),
        (lambda x: np.maximum(x, 0), lambda g, x: g * 1.0, (X,), "a mask is missing"),
        (lambda x: x[::-1] * 1.0, lambda g, x: g * 1.0, (X,), "reversed along axis 0"),
        (lambda x: np.roll(x, 1), lambda g, x: g * 1.0, (GRID[0],), "shifted by one along axis 0"),
        (np.exp, lambda g, x: g * np.exp(x.astype(np.float32)), (X,), "float32 rounding"),
        (np.exp, lambda g, x: g * 0 + np.exp(x), (X,), "g is not multiplied in"),
        (np.exp, lambda g, x: g * g * np.exp(x), (X,), "|g| or g²"),
        (lambda x: GRID @ x, lambda g, x: GRID @ g, (ROW,), "the Jacobian is transposed"),
        (np.log, lambda g, x: g * np.log(-x), (abs(X),), "nan or infinite"),
        (
            np.exp,
            lambda g, x: g * np.exp(x) + np.array([0.0, 0.0, 0.3]),
            (GRID,),
            "only index 2 of axis 1 differs",
        ),
    ],
)
def test_the_diagnosis(f: Any, backward: Any, inputs: Any, pattern: str) -> None:
    assert pattern in failure(f, *inputs, backward=backward).pattern


# --- points where differences are hard ------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "slopes"),
    [
        (lambda x: np.maximum(x, 0.0), "slope 0 from below, 1 from above"),
        (np.abs, "slope -1 from below, 1 from above"),
        (np.sqrt, "not finite just beside it"),
    ],
)
def test_a_kink_is_named_or_skipped(f: Any, slopes: str) -> None:
    point = np.array([1.0, 2.0, 0.0])
    up = np.ones(3)
    slope_there = {np.abs: np.sign, np.sqrt: lambda x: 0.5 / np.sqrt(x)}.get(f, lambda x: x > 0)

    def backward(g: Any, x: Any) -> Any:
        with np.errstate(all="ignore"):
            return g * slope_there(x)

    error = failure(f, point, up=up, backward=backward)
    assert (
        error.kind == "kink" and "at argument 0 index (2,)" in str(error) and slopes in str(error)
    )
    report = gradcheck(f, point, up=up, backward=backward, on_kink="skip")
    assert report.entries == 2 and len(report.kinks) == 1 and "index (2,)" in str(report)


@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_a_jump_is_a_kink_wherever_its_middle_lies(at_zero: float) -> None:
    def step(x: Any) -> Any:
        return np.heaviside(x, at_zero)

    error = failure(step, np.array([1.0, 0.0]), backward=lambda g, x: g * 0.0)
    assert error.kind == "kink" and "index (1,)" in str(error)
    assert gradcheck(step, np.array([1.0, 1e-7]), backward=lambda g, x: g * 0.0).entries == 2


def test_the_second_order_skips_the_kinks_of_the_first() -> None:
    report = gradcheck(lambda x: ops.maximum(x, 0.5), np.array([0.5, 1.0]), on_kink="skip", order=2)
    assert len(report.kinks) == 2 and not report.ill_conditioned


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-6, -1e-6, 1e-7, -1e-7])
def test_a_kink_beside_the_point_is_no_kink(distance: float) -> None:
    assert not gradcheck(ops.relu, np.array([distance])).kinks
    wrong = failure(np.abs, np.array([distance]), backward=lambda g, x: -g * np.sign(x))
    assert wrong.kind == "value" and wrong.pattern == "sign flipped"


@pytest.mark.parametrize(
    ("f", "slope_of", "at"),
    [
        (lambda x: x + 1e8, lambda x: 1.0, 1.25),
        (lambda x: 1 / x, lambda x: -1 / x**2, 1e-6),
        (lambda x: np.exp(20 * x), lambda x: 20 * np.exp(20 * x), 1.1),
        (lambda x: np.sqrt(x), lambda x: 0.5 / np.sqrt(x), 1e-9),
        (lambda x: 1e6 * np.sin(x), lambda x: 1e6 * np.cos(x), 0.3),
        (lambda x: np.cos(3e4 * x), lambda x: -3e4 * np.sin(3e4 * x), 0.7),
    ],
)
def test_steep_flat_and_large_functions_pass_and_their_mutants_fail(
    f: Any, slope_of: Any, at: float
) -> None:
    point = np.array([at])
    gradcheck(f, point, backward=lambda g, x: g * slope_of(x), float32=False)
    wrong = failure(f, point, backward=lambda g, x: g * 1.01 * slope_of(x), float32=False)
    assert wrong.kind == "value"


def test_digits_that_rounding_took_are_not_held_against_a_gradient() -> None:
    def lifted(x: Any) -> Any:
        return 1e8 + np.sin(x)

    point = np.linspace(0.0, 1.0, 40)
    gradcheck(lifted, point, backward=lambda g, x: g * np.cos(x), float32=False)
    wrong = failure(lifted, point, backward=lambda g, x: g * 1.1 * np.cos(x), float32=False)
    assert wrong.kind == "value"


def test_what_no_step_decides_is_reported_and_not_a_failure() -> None:
    def jagged(x: Any) -> Any:
        return np.sin(1e9 * x)

    report = gradcheck(
        jagged, np.array([0.3]), backward=lambda g, x: g * 1e9 * np.cos(1e9 * x), float32=False
    )
    assert len(report.ill_conditioned) == 1 and "x[0]: no step decides" in str(report)


def test_the_error_of_a_slope_bounds_its_distance_from_the_truth() -> None:
    for f, truth in ((np.exp, np.exp), (np.sin, np.cos), (lambda x: x**5, lambda x: 5 * x**4)):
        for x in (0.1, 1.0, 1.7):
            found = slope(lambda t, f=f, x=x: f(x + t), f(x), np.array(1.0), step_for(6e-6, x))
            assert abs(found.value - truth(x)) <= 4 * found.error and found.error < 1e-6


def test_the_complex_step_is_exact_and_says_where_it_cannot_be() -> None:
    assert gradcheck(ops.exp, X, method="complex").worst < 1e-15
    for f, why in ((ops.absolute, "real numbers"), (lambda x: ops.exp(ops.absolute(x)), "real")):
        report = gradcheck(f, X, method="complex")
        assert report.method == "central" and why in report.notes[0]

    def conjugated(x: Any) -> Any:
        return np.conj(x) * x

    report = gradcheck(conjugated, X, backward=lambda g, x: g * 2 * x, method="complex")
    assert "not analytic" in report.notes[0]
    assert failure(np.exp, X, backward=lambda g, x: g * x, method="complex").kind == "value"


def test_a_random_direction_is_bisected_to_the_entry() -> None:
    x = np.linspace(-2.0, 2.0, 300).reshape(3, 100)

    def backward(g: Any, x: Any) -> Any:
        out = g * np.cos(x)
        out[2, 37] *= 1.5
        return out

    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return np.sin(x)

    error = failure(counted, x, backward=backward, method="directional")
    assert [e.index for e in error.entries] == [(2, 37)] and len(calls) < 400
    assert np.isclose(error.entries[0].analytic, 1.5 * error.entries[0].numeric)


# --- the table ------------------------------------------------------------------------------------
def test_every_record_is_proven_at_points_of_its_own() -> None:
    rows = list(check_table())
    assert [row.op for row in rows] == [record.name for record in RECORDS.values()]
    assert [row.op for row in rows if not row.proven] == []
    assert all(row.report.entries and row.report.worst_second is not None for row in rows)
    assert max(row.report.worst for row in rows) < 1e-8
    assert not any(row.report.kinks or row.report.ill_conditioned for row in rows)


def test_a_record_without_points_is_not_proven() -> None:
    odd = Op("odd_one", lambda x, *, turns: x * turns, (lambda g, _y, _x, *, turns: g * turns,))
    assert not cases(odd) and not check_record(odd).proven


def test_an_op_without_parameters_needs_no_line_in_the_table() -> None:
    cube = Op("cube", lambda x: x * x * x, (lambda g, _y, x: g * 3.0 * x * x,))
    wrong = Op("cube", lambda x: x * x * x, (lambda g, _y, x: g * 3.0 * x,))
    assert check_record(cube).proven
    row = check_record(wrong)
    assert not row.proven and {f.kind for f in row.failures} == {"value"}


@pytest.mark.parametrize("result", [None, 2.0, np.ones(2)])
def test_what_returns_no_tensor_is_refused(result: Any) -> None:
    with pytest.raises(InputError, match="did not return a Tensor"):
        gradcheck(lambda x: result, X)


def test_one_entry_is_singular() -> None:
    assert ": 1 entry, " in str(gradcheck(lambda x: x * x, np.array([0.5])))
