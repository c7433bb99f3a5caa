"""The table of ops: what follows from one entry, and that Tensor declares what it receives."""

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinygrad_tf
from tinygrad_tf import Tensor, ops
from tinygrad_tf.engine import tensor
from tinygrad_tf.engine.graph import Op
from tinygrad_tf.engine.table import FUNCTIONS, NUMPY, RECORDS, register

PACKAGE = Path(tinygrad_tf.__file__).parent
ENTRY = '''

@primitive(lambda g, y, x: g * y / (3.0 * x), numpy=np.cbrt, method=True, domain="positive")
def cube_root(x: Any) -> Any:
    """Return the cube root of x."""
    return np.cbrt(x)
'''
USE = """
import numpy as np
from tinygrad_tf import Tensor, ops
from tinygrad_tf.checking.cases import check_table

x = Tensor([8.0, 27.0], requires_grad=True)
for y in (ops.cube_root(x), x.cube_root(), np.cbrt(x)):
    assert np.allclose(y.detach().numpy(), [2.0, 3.0]) and y.node.op.name == "cube_root"
assert "cube_root" in ops.__all__ and "cube root of x" in ops.cube_root.__doc__
row = next(row for row in check_table() if row.op == "cube_root")
assert row.proven and row.cases > 1
"""


def test_an_op_is_added_in_one_file(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "tinygrad_tf")
    room = tmp_path / "tinygrad_tf" / "engine" / "elementwise.py"
    room.write_text(room.read_text(encoding="utf-8") + ENTRY, encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr


def test_every_entry_is_a_documented_function_of_ops() -> None:
    for name, function in FUNCTIONS.items():
        assert getattr(ops, name) is function and name in ops.__all__
        assert inspect.getdoc(function) and inspect.signature(function).return_annotation
    assert set(NUMPY.values()) - set(FUNCTIONS.values()) == {NUMPY[np.linalg.norm]}


def declared() -> dict[str, Any]:
    """The methods and operators that the class Tensor declares for type checkers."""
    return {
        name: note for name, note in Tensor.__annotations__.items() if not name.startswith("_array")
    }


@pytest.mark.parametrize("name", declared())
def test_what_tensor_declares_comes_from_the_table(name: str) -> None:
    method = vars(Tensor)[name]
    protocol = getattr(tensor, declared()[name], None)
    if protocol is not None:  # a signature with arguments of its own
        _, *ours = inspect.signature(method).parameters.values()
        _, *shown = inspect.signature(protocol.__call__).parameters.values()
        assert len(ours) == len(shown)
        for mine, other in zip(ours, shown, strict=True):
            assert other.kind is other.POSITIONAL_ONLY or mine.name == other.name
            assert other.default in (mine.default, ...)


def test_every_method_of_the_table_is_declared() -> None:
    methods = {n for n, f in vars(Tensor).items() if any(f is own for own in FUNCTIONS.values())}
    assert methods <= set(declared())


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="already has an op 'exp'"):
        register(Op("exp", np.exp, RECORDS["exp"].rules))


def test_a_rule_that_does_not_fit_its_op_is_refused_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"write \(rule,\)"):
        Op("f", np.sin, lambda g, y, x: g)
    with pytest.raises(TypeError, match="write lambda g, y, x: "):
        Op("f", np.sin, (lambda g, x: g,))
    with pytest.raises(TypeError, match="1 rules, one per input, but was called with 2"):
        Op("f", np.add, (lambda g, y, a: g,))(Tensor(1.0, requires_grad=True), 2.0)
    twice = Op("f", np.sin, (lambda g, *rest: g * np.cos(rest[1]),))
    x = Tensor(0.5, requires_grad=True)
    twice(x).backward()
    assert x.grad == np.cos(0.5)


def test_the_engine_has_no_import_circle() -> None:
    files = {path.stem: path for path in (PACKAGE / "engine").glob("*.py")}
    below = {
        name: {
            part
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinygrad_tf")
            for full in [f"{node.module}.{alias.name}" for alias in node.names]
            for part in full.split(".")[2:3]
            if full.startswith("tinygrad_tf.engine.") and part in files
        }
        for name, path in files.items()
        if name != "__init__"
    }
    while below:
        free = {name for name, needed in below.items() if not needed & set(below)}
        assert free, f"these files import each other: {sorted(below)}"
        below = {name: needed for name, needed in below.items() if name not in free}
