"""`tt gradcheck`: the table, and functions of the user's own."""

import json
import sys

import pytest

from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import RECORDS

MODULE = """
import numpy as np
from tinygrad_tf import Tensor, ops
from tinygrad_tf.engine.graph import Op

def forward(x):
    return x / (1.0 + np.abs(x))

softsign = Op("softsign", forward, (lambda g, _y, x: g / (1.0 + np.abs(x)) ** 2,))
flipped = Op("flipped", forward, (lambda g, _y, x: -g / (1.0 + np.abs(x)) ** 2,))
slope = 3

def layer(x, weight, bias=0.5):
    return ops.tanh(x @ weight + bias)

def wave(x):
    return np.sin(x)

def wave_backward(g, x):
    return g * np.cos(x)

def log(x):
    return ops.log(x)

def stop(x):
    raise KeyboardInterrupt

def leave(x):
    raise SystemExit(0)

def chatty(x):
    print("hello")
    return ops.tanh(x)

def chatty_wrong(x):
    print("hello")
    return Tensor.record(flipped, x)

def forgetful(x):
    ops.tanh(x)

def size(x):
    return abs(x)

def number(x):
    return 2.0

def array(x):
    return np.sin(x.data)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a module of the user's."""
    (tmp_path / "their_ops.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "their_fault.py").write_text("x = 1 / 0\n", encoding="utf-8")
    (tmp_path / "their_import.py").write_text("import not_installed_at_all\n", encoding="utf-8")
    (tmp_path / "their_script.py").write_text("raise SystemExit(5)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    assert sys.path == before, "the path of imports is given back"
    for name in [name for name in sys.modules if name.startswith("their_")]:
        del sys.modules[name]


@pytest.mark.slow
def test_the_table_is_tab_separated_and_holds_every_op(tt):
    outcome = tt("gradcheck")
    assert (outcome.code, outcome.err) == (0, "")
    heading, *rows = (line.split("\t") for line in outcome.out.splitlines())
    assert heading == ["op", "cases", "entries", "order 1", "order 2", "verdict"]
    assert [row[0] for row in rows] == [record.name for record in RECORDS.values()]
    assert all(float(row[3]) < 1e-8 and float(row[4]) < 1e-7 and row[5] == "ok" for row in rows)


def test_a_wrong_op_of_the_table_is_named_and_explained(tt, monkeypatch):
    wrong = Op("wrong_one", lambda x: x * x, (lambda g, _y, x: g * -2.0 * x,))
    lost = Op("lost_one", lambda x, *, n: x * n, (lambda g, _y, _x, *, n: g * n,))
    monkeypatch.setattr("tinygrad_tf.checking.cases.RECORDS", {"wrong": wrong, "lost": lost})
    outcome = tt("gradcheck")
    assert outcome.code == 1 and outcome.err.count("\n") == 1
    assert "2 of 2 operations are not proven: wrong_one, lost_one" in outcome.err
    assert "WRONG" in outcome.out and "NO CASE" in outcome.out
    assert "pattern: sign flipped" in outcome.out and "lost_one has no case" in outcome.out
    told = json.loads(tt("gradcheck", "--json").out)
    assert told["ok"] is False and told["ops"][0]["failures"][0]["pattern"] == "sign flipped"


def test_a_kink_names_the_option_that_skips_it(tt, here):
    outcome = tt("gradcheck", "their_ops:size", "--range", "-1e-9", "1e-9")
    assert outcome.code == 1 and "--on-kink skip" in outcome.out and "`" not in outcome.out


def test_a_function_of_yours_passes(tt, here):
    outcome = tt("gradcheck", "their_ops:softsign")
    assert outcome.code == 0 and "gradcheck passed: softsign" in outcome.out
    told = json.loads(tt("gradcheck", "their_ops:softsign", "--json").out)
    assert told["ok"] is True and 0 <= told["worst_error"]["order_2"] < 1e-8
    shapes = ("--shape", "2,3", "--shape", "(3,2)")
    assert tt("gradcheck", "their_ops:layer", *shapes, "--method", "complex").code == 0
    by_hand = ("their_ops:wave", "--backward", "wave_backward", "--range", "3", "4")
    assert tt("gradcheck", *by_hand).code == 0
    assert tt("gradcheck", "their_ops:log", "--range", "0", "1", "--shape", "()").code == 0


def test_a_wrong_one_exits_1_with_the_diagnosis(tt, here):
    outcome = tt("gradcheck", "their_ops:flipped")
    assert outcome.code == 1 and outcome.err.count("\n") == 1 and "sign flipped" in outcome.err
    assert outcome.out.startswith("gradcheck failed: flipped, argument 0 (x, shape (2, 3)")
    assert "  pattern: sign flipped\n  reproduce: gradcheck(flipped, np.array(" in outcome.out
    told = json.loads(tt("gradcheck", "their_ops:flipped", "--json").out)
    assert (told["ok"], told["kind"], len(told["entries"])) == (False, "value", 6)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["their_ops"], "does not name a function"),
        (["their_ops:"], "does not name a function"),
        (["their_ops.py:wave"], "is a file, not a module"),
        (["nowhere_at_all:wave"], "no module 'nowhere_at_all'"),
        (["their_ops:softsing"], "did you mean softsign?"),
        (["their_ops:slope"], "not a function"),
        (["their_fault:x"], "importing their_fault raised ZeroDivisionError"),
        (["their_import:x"], "not_installed_at_all"),
        (["their_script:x"], "raised SystemExit"),
        (["their_ops:layer"], "raised ValueError"),
        (["their_ops:layer", "--shape", "2,3"], "takes 2 arrays"),
        (["their_ops:wave", "--shape", "2;3"], "is not a shape"),
        (["their_ops:log", "--shape", "2,,3"], "is not a shape"),
        (["their_ops:log", "--shape", "(2"], "is not a shape"),
        (["their_ops:log", "--shape", "0"], "nothing to check"),
        (["their_ops:log", "--shape", "20000"], "too many entries: 20,000, the limit is 10,000"),
        (["their_ops:log", "--shape", "99999999999,99999999999"], "too many entries"),
        (["their_ops:forgetful"], "forgetful did not return a Tensor, but None"),
        (["their_ops:number"], "number did not return a Tensor, but a value of type float"),
        (["their_ops:array"], "array did not return a Tensor, but a value of type ndarray"),
        (["their_ops:wave", "--backward", "nothing"], "no function 'nothing'"),
        (["their_ops:wave", "--backward", "wave_backward", "--order", "2"], "no second order"),
        (["their_ops:log"], "log is nan at output"),
        (["their_ops:wave", "--range", "2", "1"], "holds no numbers"),
        (["--shape", "2"], "--shape is for a function of yours"),
        (["--on-kink", "skip"], "--on-kink is for a function of yours"),
    ],
)
def test_bad_input_exits_2_in_one_line(tt, here, arguments, what):
    outcome = tt("gradcheck", *arguments)
    assert outcome.code == 2, outcome.err
    assert what in outcome.err and outcome.err.count("\n") == 1 and outcome.out == ""


def test_an_interrupt_is_an_interrupt(tt, here):
    outcome = tt("gradcheck", "their_ops:stop")
    assert (outcome.code, outcome.out) == (130, "")


def test_a_function_that_leaves_is_told_in_one_line(tt, here):
    outcome = tt("gradcheck", "their_ops:leave")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "their_ops:leave raised SystemExit(0)" in outcome.err


@pytest.mark.parametrize(("name", "code"), [("chatty", 0), ("chatty_wrong", 1)])
def test_what_your_function_prints_goes_to_stderr(tt, here, name, code):
    outcome = tt("gradcheck", f"their_ops:{name}", "--json")
    assert outcome.code == code and json.loads(outcome.out)["ok"] is (code == 0)
    assert "hello" in outcome.err


@pytest.mark.parametrize("shape", ["3", "3,", "(3,)", "( 1, 3 )", "()"])
def test_shapes_are_written_as_python_does(tt, here, shape):
    assert tt("gradcheck", "their_ops:softsign", "--shape", shape).code == 0


def test_large_inputs_go_by_directions(tt, here):
    arguments = ("their_ops:softsign", "--shape", "20000")
    assert "--method directional" in tt("gradcheck", *arguments).err
    assert tt("gradcheck", *arguments, "--method", "directional").code == 0
