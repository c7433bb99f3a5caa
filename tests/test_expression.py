"""Expressions: the grammar is Python's, faults name the column, and differences prove gradients."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.expression import FUNCTIONS, LONGEST, assignments, numeric_slope, parse


def value(text, **values):
    return parse(text).evaluate(values)[0].data


# --- what it means --------------------------------------------------------------------------------
def test_the_graph_and_its_leaves():
    expression = parse("tanh(w*x + b)")
    assert expression.names == ("w", "x", "b")
    result, leaves = expression.evaluate({"w": 2, "x": -1, "b": 0.5})
    result.backward()
    slope = 1 - math.tanh(-1.5) ** 2
    assert result.data == math.tanh(-1.5)
    assert {name: leaf.grad for name, leaf in leaves.items()} == {
        "w": -slope,
        "x": 2 * slope,
        "b": slope,
    }


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("-x**2", -9.0), ("2**-x", 0.125), ("2**-x*4", 0.5), ("2**2**x", 256.0), ("x-1-1", 1.0),
        ("12/x/2", 2.0), ("--x", 3.0), ("-+-x", 3.0), ("x*-2", -6.0), ("(x)", 3.0),
        ("max(2, x)", 3.0), ("max(x, 2)", 3.0), ("max(7, 2) + 0*x", 7.0), (" x\n+\t.5e1 ", 8.0),
        ("exp(log(x))", 3.0), ("relu(-x)", 0.0), ("sigmoid(x-3)", 0.5), ("sin(x-3)", 0.0),
        ("cos(x-3)", 1.0), ("max(max(1, 2), max(x, 1)) - (1)", 2.0),
    ],
)  # fmt: skip
def test_known_values(text, right):
    assert value(text, x=3) == pytest.approx(right, rel=1e-15)


TEXTS = st.recursive(
    st.sampled_from(["x", "y", "2.0", "3.", ".5", "1e0"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", " * ", "/", "**"]), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
        | inner.map("+ {}".format)
    ),
    max_leaves=12,
)


@given(TEXTS, st.integers(1, 3), st.integers(1, 3))
def test_precedence_is_pythons(text, x, y):
    names = {"x": float(x), "y": float(y)}
    expression = parse(text)
    used = {name: names[name] for name in expression.names}
    try:
        right = eval(text, {}, names)
    except ArithmeticError:
        return
    if isinstance(right, complex) or not math.isfinite(right):
        return
    try:
        got = expression.evaluate(used)[0].data
    except InputError as error:
        # A number on the way can be complex in Python, or infinite in its own slopes.
        assert "not a real number" in str(error) or "not finite" in str(error)
        return
    assert got == pytest.approx(right, rel=1e-12)


# --- what is refused ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the expression is empty"),
        ("   ", "the expression is empty"),
        ("tanh(w", "the parenthesis at column 5 is not closed; add )"),
        ("max(w, (w)", "the parenthesis at column 4 is not closed"),
        ("((w)", "the parenthesis at column 1 is not closed"),
        ("w)", "the ) at column 2 closes nothing"),
        ("w*", "the expression ends after '*' at column 2"),
        ("*w", "missing before '*' at column 1"),
        ("w + * 2", "missing before '*' at column 5"),
        ("()", "missing before ')' at column 2"),
        ("w x", "an operator is missing before 'x' at column 3; write * before x"),
        ("2w", "an operator is missing before 'w' at column 2"),
        ("w(2)", "there is no function w (column 1)"),
        ("2(w)", "an operator is missing before '(' at column 2"),
        ("tan(w)", "there is no function tan (column 1); did you mean tanh?"),
        ("1 + sigmod(w)", "there is no function sigmod (column 5); did you mean sigmoid?"),
        ("foo(w)", "there are exp, log"),
        ("exp + 1", "exp at column 1 is a function; write exp(...)"),
        ("exp()", "missing before ')' at column 5"),
        ("exp(1, w)", "exp at column 1 takes 1 operand, not 2"),
        ("max(w)", "max at column 1 takes 2 operands, not 1"),
        ("max(w,)", "missing before ')' at column 7"),
        ("0,5*w", "the comma at column 2 is in no function; write 0.5, not 0,5"),
        ("(w, 2)", "the comma at column 3 is in no function"),
        ("w^2", "'^' at column 2 means nothing here; write ** for a power"),
        ("w = 2", "'=' at column 3 means nothing here"),
        ("w.real", "'.' at column 2 means nothing here"),
        ("__import__('os')", "at column 12 means nothing here"),
        ("w[0]", "'[' at column 2 means nothing here"),
        ("1e999*w", "1e999 at column 1 is too large a number"),
    ],
)
def test_bad_grammar_names_the_column(text, message):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("log(w)", {"w": -1}, "log(-1) is not a real number (at column 1)"),
        ("2 + 1/(w - 1)", {"w": 1}, "1 / 0 is a division by zero (at column 6)"),
        ("2 + 1/0 + w", {"w": 1}, "1 / 0 is a division by zero (at column 6)"),
        ("w**0.5", {"w": -2}, "(-2) ** 0.5 is not a real number (at column 2)"),
        ("(-2)**0.5*w", {"w": 1}, "(-2) ** 0.5 is not a real number (at column 5)"),
        ("exp(w)", {"w": 1000}, "exp at column 1 is not finite: inf; choose smaller values"),
        ("w*w", {"w": 1e200}, "* at column 2 is not finite"),
        ("0**w", {"w": -1}, "** at column 2 is not finite"),
        ("w", {"w": math.nan}, "w = nan is not a finite number"),
        ("w + v", {"w": 1}, "no value for v; add v=1"),
        ("w + v", {"w": 1, "u": 2}, "no value for v, but u is not in the expression"),
        ("weight", {"weight": 1, "wieght": 2}, "did you mean weight?"),
        ("w", {"w": 1, "zzz": 2}, "zzz is not in the expression, which has w; leave out zzz"),
        ("2", {"w": 1}, "which has no names"),
    ],
)
def test_values_that_cannot_be_used_are_named(text, values, message):
    with pytest.raises(InputError) as caught:
        parse(text).evaluate(values)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_assignments():
    assert assignments(["w=2", "x = -1e-3", "β=.5"]) == {"w": 2.0, "x": -1e-3, "β": 0.5}
    for wrong, message in [
        (["w"], "'w' gives no name a value; write w=2"),
        (["=2"], "gives no name a value"),
        (["w=two"], "'two' is not a number"),
        (["w="], "'' is not a number"),
        (["w=1", "w=2"], "w is given twice"),
    ]:
        with pytest.raises(InputError, match=message):
            assignments(wrong)


@given(st.text(alphabet="xy12.e+-*/(), maxlogβ^=_'\"\\\x00\n", max_size=30))
def test_any_text_is_understood_or_refused(text):
    try:
        expression = parse(text)
        expression.evaluate(dict.fromkeys(expression.names, 1.25))
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    ["(" * 9000 + "x" + ")" * 9000, "-" * 9999 + "x", "x**" * 6000 + "x", "x+" * 9000 + "x",
     "sin(" * 3999 + "x" + ")" * 3999],
)  # fmt: skip
def test_depth_is_no_danger(text):
    result, leaves = parse(text).evaluate({"x": 1.0})
    result.backward()
    assert math.isfinite(leaves["x"].grad)


@pytest.mark.parametrize("text", ["(" * 19_000, "max(" * 4000, "1e" * 9000, "x" * 10**6])
def test_what_is_huge_and_wrong_is_refused_at_once(text):
    begun = time.monotonic()
    with pytest.raises(InputError) as caught:
        parse(text)
    assert time.monotonic() - begun < 5
    if len(text) > LONGEST:
        assert "1,000,000 characters" in str(caught.value) and len(str(caught.value)) < 200


# --- the numeric check ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("tanh(w*x + b)", {"w": 2, "x": -1, "b": 0.5}),
        ("log(x)", {"x": 1e-9}),
        ("x**0.5", {"x": 1e-8}),
        ("exp(20*x)", {"x": 1}),
        ("1e10 + x", {"x": 1}),
        ("sigmoid(x)*sin(y) - cos(x/y)", {"x": 0.3, "y": -2}),
        ("x**y + 2**y", {"x": 1.5, "y": 2.5}),
        ("x*x", {"x": 1e100}),
        ("x*x*x", {"x": 0}),
        ("relu(x)", {"x": 1e-7}),  # a kink is near, but not here
        ("relu(x)", {"x": 1e-3}),
        ("max(x, 2)", {"x": 2.000001}),
        *((f"{name}(x)", {"x": 0.7}) for name, (arity, _) in FUNCTIONS.items() if arity == 1),
    ],
)
def test_differences_agree_with_the_gradient_and_not_with_another(text, values):
    expression = parse(text)
    result, leaves = expression.evaluate(values)
    result.backward()
    for name, leaf in leaves.items():
        slope = numeric_slope(expression, values, name)
        assert slope.agrees(leaf.grad) is True
        assert slope.value == pytest.approx(leaf.grad, rel=1e-4, abs=1e-9)
        for wrong in (-leaf.grad, 2 * leaf.grad, leaf.grad + 1 + abs(leaf.grad)):
            if wrong != leaf.grad:
                assert slope.agrees(wrong) is False


@pytest.mark.parametrize(("text", "sides"), [("relu(x)", (0, 1)), ("max(-x, 2*x)", (-1, 2))])
def test_a_kink_has_two_slopes(text, sides):
    slope = numeric_slope(parse(text), {"x": 0}, "x")
    assert slope.kink == pytest.approx(sides, abs=1e-6) and slope.agrees(0.5) is None


def test_at_the_edge_differences_cannot_tell():
    slope = numeric_slope(parse("x**0.5"), {"x": 0}, "x")
    assert slope.value is None and slope.agrees(math.inf) is None
