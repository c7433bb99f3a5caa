"""The library does not know the command line, and every docstring begins with a plain sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = sorted(
    path for top in ("tinygrad_tf", "toymodels") for path in (ROOT / top).rglob("*.py")
)
SOURCES = sorted([*LIBRARY, *(ROOT / "cli").rglob("*.py")])
# A sentence that begins so has no subject and no verb of its own.
FRAGMENT = re.compile(r"(What|How|Whether|Those|That|Where|Which|When|Who|All that|Nothing) ")
COMMAND_LINE = re.compile(r"(?<![\w`-])--[a-z][a-z-]+|\btt [a-z]+|`tt`")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def definitions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a body and of its classes, not those inside of functions."""
    for node in body:
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
        if any(mark == "overload" or mark.endswith(".setter") for mark in marks):
            continue  # documented where the function or the property is
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from definitions(node.body)


def docstrings(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every definition of a file by name, with its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield "the module", ast.get_docstring(tree)
    for node in definitions(tree.body):
        yield node.name, ast.get_docstring(node)


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_the_library_names_no_option_and_no_command(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        assert not COMMAND_LINE.search(line), f"line {number}: {line.strip()}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_docstring_begins_with_a_whole_sentence(path):
    for name, text in docstrings(path):
        assert text is None or not FRAGMENT.match(text), f"{name}: {text.splitlines()[0]}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_public_names_have_docstrings(path):
    for name, text in docstrings(path):
        assert text or name.startswith("_") or not path.stat().st_size, f"{name} has none"
