"""The gradient checker: what it accepts, what it finds, and how it says so."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tests.checking.failures import ROW, X, failure
from tinygrad_tf import GradcheckError, Tensor, gradcheck, ops
from tinygrad_tf.engine.table import RECORDS
from tinygrad_tf.errors import InputError


# --- what it accepts ------------------------------------------------------------------------------
def test_the_name_is_a_function_whatever_was_imported_before() -> None:
    import tinygrad_tf.checking.check

    assert callable(tinygrad_tf.gradcheck)
    assert tinygrad_tf.gradcheck is tinygrad_tf.checking.gradcheck is gradcheck
    assert tinygrad_tf.checking.GradcheckError is GradcheckError


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (RECORDS["exp"], (X,)),
        (RECORDS["layer_norm"], (X, ROW, None)),
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
    options = {"eps": 0.125} if f is RECORDS["layer_norm"] else {}
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


@pytest.mark.parametrize("result", [None, 2.0, np.ones(2)])
def test_what_returns_no_tensor_is_refused(result: Any) -> None:
    with pytest.raises(InputError, match="did not return a Tensor"):
        gradcheck(lambda x: result, X)


def test_one_entry_is_singular() -> None:
    assert ": 1 entry, " in str(gradcheck(lambda x: x * x, np.array([0.5])))
