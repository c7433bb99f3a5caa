"""The way in: help, exit codes, and every fault in one line."""

import errno
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cli.main
from cli.group import SECTIONS
from tinygrad_tf.errors import FailedError, InputError

ROOT = Path(__file__).resolve().parents[2]

COUNT = '''
"""`tt count`: count the characters of a text."""

import click

from cli.console import print_json
from cli.options import GroupedCommand


@click.command("count", cls=GroupedCommand, examples=("tt count kite",))
@click.argument("text")
def command(text: str) -> None:
    """Count the characters of TEXT."""
    print_json({"characters": len(text)})
'''


def shell(code: str, *arguments: str, **settings) -> subprocess.CompletedProcess[bytes]:
    """Run `tt` in a process of its own; `code` is run before it."""
    script = f"import sys; {code}\nfrom cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, **settings
    )


def test_tt_alone_prints_the_grouped_help(tt):
    bare, asked = tt(), tt("--help")
    assert bare.code == asked.code == 0
    assert bare.out == asked.out
    places = [bare.out.index(f"\n{section}:") for section in ("Learn", "Train", "Use", "Inspect")]
    assert places == sorted(places)
    for name in ("corpus", "train-gpt", "generate", "inspect", "completion"):
        assert sum(line.strip().startswith(name) for line in bare.out.splitlines()) == 1


def test_every_listed_command_exists_and_bears_its_name():
    import click

    with click.Context(cli.main.tt) as ctx:
        for name in cli.main.tt.list_commands(ctx):
            command = cli.main.tt.get_command(ctx, name)
            assert command is not None and command.name == name and command.help
    listed = {name.replace("-", "_") for commands in SECTIONS.values() for name in commands}
    modules = {path.stem for path in (ROOT / "cli" / "commands").glob("*.py")}
    assert modules - {"__init__"} == listed, "a command is its file and its line in cli/group.py"


def test_a_command_is_a_file_and_a_line(tt, monkeypatch):
    """The example of CONTRIBUTING: the file cli/commands/count.py and its line in SECTIONS."""
    module = ModuleType("cli.commands.count")
    exec(COUNT, module.__dict__)
    monkeypatch.setitem(sys.modules, "cli.commands.count", module)
    monkeypatch.setitem(SECTIONS["Inspect"], "count", "Count the characters of a text")
    assert re.search(r"count +Count the characters of a text", tt("--help").out)
    assert tt("count", "kite").out == '{"characters": 4}\n'
    help_text = tt("count", "--help").out
    assert (
        "Count the characters of TEXT." in help_text and "Examples:\n  tt count kite" in help_text
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["train-gpt", "--help"]])
def test_help_imports_neither_numpy_nor_rich(arguments):
    code = (
        "import atexit; atexit.register(lambda: print("
        "[m for m in ('numpy', 'rich') if m in sys.modules], file=sys.stderr))"
    )
    done = shell(code, *arguments)
    assert (done.returncode, done.stderr.strip()) == (0, b"[]")
    assert done.stdout


def test_version_names_what_a_report_needs(tt):
    assert "Python 3." in tt("--version").out and "NumPy" in tt("--version").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generat"], "no such command: generat; did you mean generate?"),
        (["train-gpt", "--stepz", "3"], "did you mean --steps?"),
        (["train-gpt", "--steps", "0"], "0 is not in the range x>=1"),
        (["train-gpt", "--lr", "nan"], "nan is not a finite number"),
        (["train-gpt", "--lr", "-1"], "-1.0 is not in the range x>0"),
        (["train-gpt", "--dropout", "1"], "1.0 is not in the range 0<=x<1"),
        (["train-gpt", "--weight-decay", "inf"], "inf is not a finite number"),
        (["train-gpt", "--time-limit", "soon"], "'soon' is not a time; write 90, 90s, 2m or 1h"),
        (["train-gpt", "--json", "--quiet"], "--json and --quiet cannot go together"),
        (["train-gpt", "--resume", "r", "--n-layer", "2"], "--n-layer cannot be changed"),
        (["train-gpt", "--resume", "r", "text.txt"], "TEXT cannot be changed"),
        (["generate"], "missing argument 'RUN'"),
        (["generate", "r", "--temperature", "-0.1"], "is not in the range x>=0"),
        (["generate", "r", "--top-p", "NaN"], "NaN is not a finite number"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(tt, arguments, said):
    outcome = tt(*arguments)
    assert outcome.code == 2 and outcome.out == ""
    assert outcome.err.startswith("tt: error: ") and outcome.err.count("\n") == 1
    assert said in outcome.err


def test_a_file_where_a_command_belongs_is_understood(tt, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("text", encoding="utf-8")
    assert f"did you mean tt train-gpt {book}?" in tt(str(book)).err


@pytest.fixture
def failing(monkeypatch, tt):
    """Run `tt corpus` with a command that raises."""

    def call(error: BaseException, *options: str):
        import cli.commands.corpus as corpus

        def fail(**_: object) -> None:
            raise error

        monkeypatch.setattr(corpus.command, "callback", fail)
        return tt(*options, "corpus")

    return call


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("there is no x", "type y"), 2, "there is no x; type y"),
        (FailedError("the disk is full"), 1, "the disk is full"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError("8 GiB"), 1, "out of memory (8 GiB); try a smaller --batch-size"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), 1, "a/b: Permission denied"),
        (ZeroDivisionError("by zero"), 1, "unexpected ZeroDivisionError: by zero; run"),
        (ValueError("a\n\x1b[31mb"), 1, "unexpected ValueError: a\\n\\x1b[31mb; run"),
    ],
)
def test_every_fault_is_one_line_with_its_exit_code(failing, error, code, line):
    outcome = failing(error)
    assert outcome.code == code and outcome.out == ""
    assert outcome.err.strip().startswith(f"tt: error: {line}")
    assert outcome.err.strip().count("\n") == 0
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(("name", "red"), [("X", True), ("NO_COLOR", False)])
def test_only_the_head_of_an_error_is_red_and_only_where_wanted(tt, monkeypatch, name, red):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("WT_SESSION", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, "1")
    tt("generat")
    head = "\x1b[31mtt: error:\x1b[0m" if red else "tt: error:"
    assert screen.getvalue().startswith(head + " no such command")


def test_debug_shows_the_traceback(failing):
    outcome = failing(ZeroDivisionError("by zero"), "--debug")
    assert outcome.code == 1 and "Traceback" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("tt: error: unexpected ZeroDivisionError")


@pytest.mark.parametrize(("length", "times"), [(9999, 99), (1, 99_999)])
def test_a_reader_that_leaves_is_no_fault(length, times):
    code = (
        "import cli.commands.corpus as c; from cli.console import write_text\n"
        f"piece = 'line\\n' * {length}\n"
        f"c.command.callback = lambda **_: [write_text(piece) for _ in range({times})]"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nfrom cli.main import main; main()", "corpus"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().strip() == b"line"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == cli.main.CLOSED_PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_under_stdout_is_one_line():
    with Path("/dev/full").open("wb") as full:
        script = "from cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", script, "--help"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"tt: error: No space left") and done.stderr.count(b"\n") == 1


def test_an_ascii_terminal_never_breaks_a_message():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = shell("", "größe", env=environment)
    assert done.returncode == 2
    assert b"gr\\xf6\\xdfe" in done.stderr and b"Traceback" not in done.stderr


def test_a_warning_of_the_library_is_one_line():
    code = (
        "import warnings, cli.commands.corpus as c\n"
        "c.command.callback = lambda **_: warnings.warn('the newest is damaged\\x1b')"
    )
    done = shell(code, "corpus")
    assert done.returncode == 0
    assert done.stderr == b"tt: warning: the newest is damaged\\x1b\n"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(tt, name):
    assert "_TT_COMPLETE" in tt("completion", name).out
