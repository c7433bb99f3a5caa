"""`tt grad`: the tree, its JSON, its pictures, and faults in one line."""

import io
import json
import math
import sys
import xml.etree.ElementTree as ElementTree

import pytest

NEURON = ("grad", "tanh(w*x + b)", "w=2", "x=-1", "b=0.5")


def test_the_tree_with_values_gradients_and_the_check_beside_the_leaves(tt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    outcome = tt(*NEURON)
    assert outcome.code == 0 and outcome.err == ""
    lines = outcome.out.splitlines()
    cells = {line.strip(" │├└─|`-").split()[0]: line.split() for line in lines[1:]}
    assert lines[0].split() == ["value", "gradient", "local", "numeric"]
    assert cells["tanh"] == ["tanh", "-0.905148", "1"]
    assert cells["*"][-3:] == ["-2", "0.180707", "1"]
    assert cells["w"][-5:] == ["2", "-0.180707", "-1", "-0.180707", "agrees"]
    assert cells["x"][-5:] == ["-1", "0.361413", "2", "0.361413", "agrees"]
    assert cells["b"][-5:] == ["0.5", "0.180707", "1", "0.180707", "agrees"]
    assert len(lines) == 7


def test_shared_nodes_are_shown_once(tt):
    out = tt("grad", "x*x + x", "x=3").out
    assert out.count("(above)") == 2 and out.count("agrees") == 1
    assert "7 agrees" in out


def test_json_is_one_object_with_everything(tt):
    told = json.loads(tt(*NEURON, "--json").out)
    slope = 1 - math.tanh(-1.5) ** 2
    assert told["value"] == math.tanh(-1.5)
    assert told["gradients"] == {"w": -slope, "x": 2 * slope, "b": slope}
    assert told["numeric"].keys() == told["gradients"].keys()
    for name, found in told["numeric"].items():
        assert found["agrees"] is True and found["kink"] is None
        assert abs(found["value"] - told["gradients"][name]) <= found["error"] < 1e-6
    nodes = {node["id"]: node for node in told["nodes"]}
    assert len(nodes) == 6 and nodes[0]["op"] == "tanh" and nodes[0]["gradient"] == 1.0
    for node in nodes.values():
        assert (node["name"] is None) != (node["op"] is None)
    # Every gradient is the sum over its users of theirs times the local derivative.
    for number, node in nodes.items():
        shares = [
            user["gradient"] * edge["local"]
            for user in nodes.values()
            for edge in user["inputs"]
            if edge["id"] == number
        ]
        assert node["gradient"] == pytest.approx(sum(shares) if number else 1.0)


def test_what_is_infinite_is_null_in_json(tt):
    told = json.loads(tt("grad", "x**0.5", "x=0", "--json").out)
    assert told["gradients"]["x"] is None and told["numeric"]["x"]["value"] is None


def test_a_kink_is_said(tt):
    assert "kink: 0 left, 1 right" in tt("grad", "relu(x)", "x=0").out
    assert "no value nearby" in tt("grad", "x**0.5", "x=0").out


@pytest.mark.parametrize("ending", ["svg", "html", "dot", "txt"])
def test_it_can_be_saved(tt, tmp_path, ending):
    path = tmp_path / f"graph.{ending}"
    outcome = tt(*NEURON, "--save", str(path))
    assert outcome.code == 0 and outcome.err == f"saved {path}\n"
    text = path.read_text(encoding="utf-8")
    assert "tanh" in text and "0.361413 agrees" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    if ending == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    again = tt(*NEURON, "--save", str(path))
    assert again.code == 2 and "exists already" in again.err and again.out == ""
    assert tt(*NEURON, "--save", str(path), "--force").code == 0
    assert path.read_text(encoding="utf-8") == text


def test_a_screen_without_the_glyphs_gets_ascii(tt, monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", screen)
    assert tt(*NEURON).code == 0
    screen.seek(0)
    assert "`- +" in screen.read()


@pytest.mark.parametrize(
    ("arguments", "right"),
    [(["-x**2", "x=3"], -6), (["--x", "x=3"], 1), (["-h*x", "x=3", "h=2"], -2), (["x", "x=1"], 1)],
)
def test_an_expression_may_begin_with_a_sign(tt, arguments, right):
    outcome = tt("grad", *arguments, "--json")
    assert outcome.code == 0 and json.loads(outcome.out)["gradients"]["x"] == right


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "missing argument 'EXPRESSION'"),
        (["tanh(w"], "the parenthesis at column 5 is not closed"),
        (["tan(w)", "w=1"], "did you mean tanh?"),
        (["w*x", "w=1"], "no value for x; add x=1"),
        (["w", "w=1", "z=2"], "z is not in the expression"),
        (["w", "w=one"], "'one' is not a number"),
        (["w", "w=nan"], "not a finite number"),
        (["w", "5"], "'5' gives no name a value"),
        (["log(w)", "w=-1"], "log(-1) is not a real number (at column 1)"),
        (["1/w", "w=0"], "division by zero (at column 2)"),
        (["2*3"], "2*3 is 6 and has no names"),
        (["w", "w=1", "--jsn"], "no such option '--jsn'; did you mean --json?"),
        (["--jsn", "w", "w=1"], "did you mean --json?"),
        (["w", "w=1", "--save", "g.png"], "graphs are saved as .svg, .html, .dot, .txt"),
        (["w", "w=1", "--max-nodes", "0"], "is not in the range"),
        (["a\x1b[31m", "a=1"], "'\\x1b' at column 2"),
        (["(" * 30_000], "30,000 characters"),
    ],
)
def test_faults_are_one_line_and_exit_code_2(tt, arguments, said):
    outcome = tt("grad", *arguments)
    assert outcome.code == 2 and outcome.out == ""
    assert outcome.err.startswith("tt: error: ") and outcome.err.count("\n") == 1
    assert said in outcome.err and "\x1b" not in outcome.err


def test_a_deep_expression_is_cut_with_a_notice(tt):
    outcome = tt("grad", "sin(" * 1000 + "x" + ")" * 1000, "x=1")
    assert outcome.code == 0 and outcome.out.endswith(
        "801 more nodes are not drawn; max_nodes is 200\n"
    )


@pytest.mark.slow
def test_json_has_every_gradient_of_a_large_graph(tt):
    names = [f"x{i}" for i in range(400)]
    outcome = tt("grad", "+".join(names), *(f"{name}=1" for name in names), "--json")
    told = json.loads(outcome.out)
    assert told["gradients"] == dict.fromkeys(names, 1.0) and len(told["nodes"]) == 799
    assert 0 < len(told["numeric"]) < 200


def test_h_alone_asks_for_help(tt):
    asked = tt("grad", "-h")
    assert (asked.code, asked.out) == (0, tt("grad", "--help").out)
    assert "-1" in tt("grad", "-h", "h=2").out.split()
