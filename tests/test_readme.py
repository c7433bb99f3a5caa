"""The commands and the Python of the README run as they are written."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tinygrad_tf import corpus
from tinygrad_tf.models.presets import PRESETS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line]


def test_readme_has_its_two_set_up_commands_first() -> None:
    assert commands()[0] == "pip install . && tt train-gpt"
    assert commands()[1] == 'pip install -e ".[test]" && pytest -n auto'


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands()[1] in script


def test_every_preset_is_in_the_readme() -> None:
    for name in PRESETS:
        assert f"| `{name}` |" in README


def test_the_picture_is_there_and_needs_no_network() -> None:
    (path,) = re.findall(r"!\[.*?\]\((.*?)\)", README)
    picture = (ROOT / path).read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert set(re.findall(r"https?://[^\s\"')]+", picture)) <= {"http://www.w3.org/2000/svg"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a book and a list of names, as the README expects."""
    place = tmp_path_factory.mktemp("readme")
    stories = corpus.generate(chars=60_000, seed=3).stories
    (place / "book.txt").write_text("\n\n".join(stories) + "\n", encoding="utf-8")
    names = sorted({word for story in stories for word in re.findall(r"[a-z]{3,9}", story)})
    (place / "names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    return place


def run_in_shell(command: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in the shell, with or without `tt` on its path."""
    program = f'"{sys.executable}" -c "from cli.main import main; main()"'
    line = re.sub(r"^tt\b", lambda _: program, command)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    environment.pop("OMP_NUM_THREADS", None)
    return subprocess.run(
        line, shell=True, cwd=where, env=environment, capture_output=True, encoding="utf-8"
    )


@pytest.mark.slow
def test_every_command_of_the_readme_runs(bench: Path) -> None:
    run = [line.removeprefix("pip install . && ") for line in commands() if "pytest" not in line]
    assert len(run) >= 10
    for command in run:
        done = run_in_shell(command, bench)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert done.stdout or "--save" in command or "--dry-run" not in command, command
    check_main_run(bench / "runs" / "stories")
    assert (bench / "stories.svg").read_text(encoding="utf-8").startswith("<svg")


def check_main_run(run: Path) -> None:
    """Check what the README says about the run of its first command."""
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    done = events[-1]
    assert done["event"] == "done"
    assert done["val_bits_per_char"] <= 1.05 * done["floor_bits_per_char"]
    plan = next(e for e in events if e["event"] == "plan")
    first = next(e for e in events if e["event"] == "eval")
    assert first["step"] == 0
    assert first["val_loss"] == pytest.approx(math.log(plan["vocab_size"]), abs=0.1)
    assert plan["references"]["bigram"] / math.log(2) > 1.5 * done["floor_bits_per_char"]


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    program = "\n".join(blocks("python"))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    derivative, second, trained, shape = done.stdout.splitlines()
    assert float(derivative) == pytest.approx(2 / math.cosh(0.75) ** 2)
    assert float(second) == pytest.approx(3.0)
    loss, text = trained.split(" ", 1)
    assert float(loss) < 0.5
    assert text.startswith("the ")
    assert shape == "(1, 2, 4, 4)"
