"""Drawings of graphs: every node and edge is there, with names, numbers and shapes."""

import errno
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tinygrad_tf import Tensor, Value, draw, no_grad, ops
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models import GPT, GPTConfig


@pytest.fixture
def neuron():
    w, x, b = Value(2.0), Value(-1.0), Value(0.5)
    y = (w * x + b).tanh()
    y.backward()
    return y, {"w": w, "x": x, "b": b}


def network():
    rng = np.random.default_rng(0)
    names = {
        "weight": Tensor(rng.normal(size=(3, 4)), requires_grad=True),
        "bias": Tensor(np.zeros(4), requires_grad=True),
    }
    x = Tensor(np.ones((2, 3)))
    return ops.relu(x @ names["weight"] + names["bias"]).sum(), names


# --- text -----------------------------------------------------------------------------------------
def test_a_value_as_a_tree(neuron):
    y, names = neuron
    assert draw(y, names).text().splitlines() == [
        "            value      gradient   local",
        "tanh        -0.905148  1",
        "└─ +        -1.5       0.180707   0.180707",
        "   ├─ *     -2         0.180707   1",
        "   │  ├─ w  2          -0.180707  -1",
        "   │  └─ x  -1         0.361413   2",
        "   └─ b     0.5        0.180707   1",
    ]
    text = draw(y, names).text(ascii=True)
    assert text.isascii() and "   |  `- x" in text and "   `- b" in text


def test_a_shared_node_has_its_inputs_once():
    x = Value(3.0)
    h = x * x
    lines = draw((h + 1) * h - h.exp(), {"x": x}).text().splitlines()
    assert sum("* #1" in line for line in lines) == 3
    assert sum("* #1 (above)" in line for line in lines) == 2
    assert sum("─ x " in line for line in lines) == 2, "both under the one h"


def test_a_constant_is_on_the_side_where_it_was_written():
    x = Value(2.0)
    values = {
        "* 3": x * 3, "3 *": 3 * x, "+ 3": x + 3, "3 +": 3 + x, "- 2": x - 2, "2 -": 2 - x,
        "/ 4": x / 4, "1 /": 1 / x, "** 2": x**2, "2 **": 2**x, "max 1": x.max(1), "-": -x,
    }  # fmt: skip
    for label, y in values.items():
        assert draw(y).boxes[0].title == label
    assert draw(x).boxes[0].title == "value"


def test_a_tensor_with_names_and_shapes():
    loss, names = network()
    text = draw(loss, names).text()
    assert re.search(r"^sum +\(\) +float64$", text, re.M)
    assert re.search(r"─ matmul +\(2, 4\) +float64$", text, re.M)
    assert re.search(r"─ weight +\(3, 4\) +float64$", text, re.M)
    assert "local" not in text and re.search(r"─ leaf +\(4,\)", draw(loss).text())


def test_a_model_by_its_parameters():
    model = GPT(GPTConfig(vocab_size=7, block_size=4, n_layer=1, n_head=2, n_embd=8))
    ids = np.zeros((2, 4), int)
    loss = ops.cross_entropy(model(ids), ids)
    drawing = draw(loss, model.named_parameters())
    titles = {box.title for box in drawing.boxes if box.is_leaf}
    assert titles == set(model.named_parameters()) and not drawing.notice
    ElementTree.fromstring(drawing.svg())


# --- large, freed, nothing ------------------------------------------------------------------------
def test_a_large_graph_is_cut_near_the_result_and_says_so():
    x = Value(1.0)
    y = x
    for _ in range(5000):
        y = y + x
    drawing = draw(y, max_nodes=10)
    assert len(drawing.boxes) == 10 and drawing.notice.startswith("4,991 more nodes are not drawn")
    for picture in (drawing.text(), drawing.dot(), drawing.svg(), drawing.html()):
        assert "4,991 more nodes" in picture
    assert "(1 more input)" in drawing.text()
    assert len(draw(y, max_nodes=10_000).boxes) == 5001


def test_a_long_chain_needs_no_recursion():
    y = Value(1.0)
    for _ in range(3000):
        y = y + 1
    drawing = draw(y, max_nodes=5000)
    assert drawing.text().count("\n") == 3001 and drawing.svg().count("<rect") == 3002


def test_many_paths_are_drawn_once():
    y = Value(1.0)
    for _ in range(60):
        y = y + y  # 2**60 paths
    drawing = draw(y)
    assert drawing.text().count("(above)") == 60 and drawing.svg().count("<path") == 120


def test_a_freed_graph_and_an_unrecorded_tensor_are_refused():
    loss, _ = network()
    loss.backward()
    with pytest.raises(InputError, match=r"freed by backward.*retain_graph=True"):
        draw(loss)
    with no_grad(), pytest.raises(InputError, match="nothing was recorded"):
        draw(network()[0])
    with pytest.raises(InputError, match="at least 1"):
        draw(Value(1.0), max_nodes=0)


def test_a_part_that_was_freed_is_marked():
    x = Tensor(2.0, requires_grad=True)
    h = x * x
    h.backward()
    assert "multiply (freed)" in draw(h + x).text()


def test_names_of_frozen_tensors_are_ignored():
    loss, names = network()
    assert draw(loss, {**names, "frozen": Tensor([1.0])}).text() == draw(loss, names).text()


# --- pictures -------------------------------------------------------------------------------------
def test_dot_has_every_node_and_edge(neuron):
    y, names = neuron
    dot = draw(y, names).dot()
    labels = dict(re.findall(r'^  (n\d+) \[label="([^"\\]*)', dot, re.M))
    edges = {
        (labels[a], labels[b], slope)
        for a, b, slope in re.findall(r'(n\d+) -> (n\d+) \[label="([^"]*)"\]', dot)
    }
    assert edges == {
        ("+", "tanh", "0.180707"), ("*", "+", "1"), ("b", "+", "1"),
        ("w", "*", "-1"), ("x", "*", "2"),
    }  # fmt: skip


def test_names_are_escaped_in_every_format():
    x = Value(1.0)
    drawing = draw(x * 2, {'<a href="x">&\n\x00\\"': x})
    root = ElementTree.fromstring(drawing.svg())
    assert any('<a href="x">&' in (node.text or "") for node in root.iter())
    assert "<a href" not in drawing.html() and "\x00" not in drawing.dot()
    assert r"\\\"" in drawing.dot()


def test_pictures_are_self_contained_and_stable(neuron, tmp_path):
    y, names = neuron
    for ending in ("svg", "html", "dot", "txt"):
        paths = [tmp_path / f"{n}.{ending}" for n in "ab"]
        for path in paths:
            draw(y, names).save(path)
        first, second = (path.read_text(encoding="utf-8") for path in paths)
        outside = first.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in outside and "tanh" in first and "0.361413" in first
        assert first.replace("<title>a<", "<title>b<") == second
    with pytest.raises(InputError, match=r"exists already.*force"):
        draw(y).save(tmp_path / "a.svg")
    draw(y).save(tmp_path / "a.svg", force=True)
    with pytest.raises(InputError, match=r"\.svg, \.html, \.dot, \.txt, not as \.png"):
        draw(y).save(tmp_path / "a.png")


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FailedError, match=r"cannot write .*a\.svg: the disk is full"):
        draw(Value(2.0) * 3).save(tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


def test_left_out_nodes_are_counted():
    assert draw(Value(2.0).tanh(), max_nodes=1).notice.startswith("1 more node is not drawn")
    assert draw(Value(2.0) * Value(3.0), max_nodes=1).notice.startswith("2 more nodes are not")
