"""The floors of the house: who may import whom, read from the sources themselves."""

import ast
import graphlib
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path for top in ("tinygrad_tf", "toymodels", "cli") for path in (ROOT / top).rglob("*.py")
)
LONGEST_FILE = 400

# What each room of the library may import; "" is tinygrad_tf/__init__.py, which imports lazily.
BELOW = {
    "errors": set(),
    "types": set(),
    "scalar_math": {"errors"},
    "scalar": {"errors", "scalar_math"},
    "expression": {"errors", "scalar"},
    "graph_layout": set(),
    "drawing": {"errors", "scalar", "graph_layout", "engine", "storage"},
    "engine": {"errors"},
    "checking": {"errors", "engine", "checking"},
    "testing": {"engine", "checking"},
    "nn": {"errors", "engine"},
    "text": {"errors"},
    "corpus": {"errors", "text"},
    "audio": {"errors"},
    "storage": {"errors"},
    "models": {"errors", "engine", "nn", "storage"},
    "generate": {"errors", "storage", "text", "models"},
    "train": {"errors", "engine", "nn", "storage", "text", "corpus", "models", ""},
    "tasks": {
        *("errors", "engine", "nn", "storage", "text", "corpus", "audio", "models", "generate"),
        *("train", ""),
    },
    "": {"engine", "checking", "scalar", "drawing"},
}


def name_of(path: Path) -> str:
    """The module's dotted name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, at any depth, with what it takes from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    """The part of tinygrad_tf that a dotted name leads to."""
    second = module.split(".")[1:2]
    return second[0] if second and second[0] in BELOW else ""


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_run_downward_only(path):
    module = name_of(path)
    top, own = module.split(".")[0], room(module)
    if top == "tinygrad_tf" and module != "tinygrad_tf":
        assert own, f"{module} has no place in BELOW yet"
    for name in imports(path):
        target = name.split(".")[0]
        if target == "cli":
            assert top == "cli", f"{module} imports {name}"
        elif target == "toymodels":
            assert top in ("cli", "toymodels"), f"{module} imports {name}"
        elif target == "tinygrad_tf" and top == "tinygrad_tf":
            assert room(name) in BELOW[own] | {own, "types"}, f"{module} imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_only_the_command_line_needs_more_than_numpy(path):
    allowed = {"numpy", "tinygrad_tf", "toymodels", "cli"}
    if name_of(path).startswith("cli"):
        allowed |= {"click", "rich"}
    if name_of(path) == "tinygrad_tf.testing":
        allowed |= {"hypothesis"}
    used = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names)
    assert used <= allowed


def imported_files(path: Path) -> set[Path]:
    """The files of this project that a file imports anywhere in it, also for types alone."""
    files = set()
    for name in imports(path):
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            base = ROOT.joinpath(*parts[:end])
            file = next(
                (f for f in (base.with_suffix(".py"), base / "__init__.py") if f.is_file()), None
            )
            if file is not None:
                files.add(file)
                break
    return files - {path}


def test_no_import_runs_in_a_circle():
    graph = graphlib.TopologicalSorter({path: imported_files(path) for path in SOURCES})
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(name_of(path) for path in error.args[1]))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_file_is_too_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_public_names_exist(path):
    module = importlib.import_module(name_of(path))
    public = getattr(module, "__all__", [])
    assert len(set(public)) == len(public)
    for name in public:
        assert getattr(module, name) is not None


def test_an_unknown_public_name_is_an_attribute_error():
    for package in ("tinygrad_tf", "tinygrad_tf.models", "tinygrad_tf.train"):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            importlib.import_module(package).nothing  # noqa: B018


def loaded_after(code: str) -> set[str]:
    program = f"import sys; {code}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["tinygrad_tf", "tinygrad_tf.train", "cli.train_options"])
def test_what_help_needs_loads_without_numpy(module):
    loaded = loaded_after(f"import {module}")
    assert module in loaded and not {"numpy", "rich"} & loaded


def test_the_scalar_engine_and_its_drawings_load_without_numpy():
    code = (
        "from tinygrad_tf import Value, draw; import tinygrad_tf.expression, cli.commands.grad;"
        "draw(Value(1.0) * 2).svg(); from tinygrad_tf import draw; assert callable(draw)"
    )
    assert not {"numpy", "rich"} & loaded_after(code)


def test_the_natural_names_of_the_library():
    code = (
        "from tinygrad_tf import Tensor, Value, draw, no_grad, grad;"
        "from tinygrad_tf.models import GPT, GPTConfig;"
        "from tinygrad_tf.train import AdamW, Trainer"
    )
    assert not {"click", "rich"} & loaded_after(code)
