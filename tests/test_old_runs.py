"""Runs written by version 0.1.0 open for their commands, with the same output, and resume.

The data beside `old_runs/make_old_runs.py` were made by that script. Texts and whole numbers must
be the same; other numbers may differ by 1e-4, since machines add in different orders.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cli.main import run as tt
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks import load_predictor

OLD_RUNS = Path(__file__).parent / "old_runs"
EXPECTED = json.loads((OLD_RUNS / "expected.json").read_text())


def check_same(expected: Any, actual: Any, place: str) -> None:
    """Check every field of the old output; fields that are new are allowed."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), place
        assert expected.keys() <= actual.keys(), place
        for key, value in expected.items():
            check_same(value, actual[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), place
        for number, value in enumerate(expected):
            check_same(value, actual[number], f"{place}[{number}]")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-4, abs=1e-4), place
    else:
        assert actual == expected, place


def call(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Run a command that must succeed; return its objects, of a training the results alone."""
    capsys.readouterr()
    code = tt(arguments)
    output = capsys.readouterr()
    assert code == 0, output.err
    objects = [json.loads(line) for line in output.out.splitlines()]
    return [x for x in objects if x.get("event", "eval") in ("eval", "done")]


def unpack(kind: str, folder: Path) -> Path:
    """Unpack an old run into runs/KIND and return its directory."""
    with zipfile.ZipFile(OLD_RUNS / f"{kind}.zip") as archive:
        archive.extractall(folder / "runs" / kind)
    return folder / "runs" / kind


@pytest.mark.parametrize(
    ("kind", "predictor"),
    [
        ("gpt", "TextGenerator"),
        ("translate", "Translator"),
        ("classifier", "TextClassifier"),
        ("regression", "TextClassifier"),
        ("fill", "MaskFiller"),
        ("speech", "Transcriber"),
        ("instructions", "InstructionModel"),
    ],
)
def test_one_loader_opens_a_run_of_every_task(kind: str, predictor: str, tmp_path: Path) -> None:
    run = unpack(kind, tmp_path)
    loaded = load_predictor(run, weights="last")
    assert type(loaded).__name__ == predictor and not loaded.model.training
    with pytest.raises(InputError, match="choose last or best"):
        load_predictor(run, weights="middle")


def test_the_loader_refuses_a_task_that_it_does_not_know(tmp_path: Path) -> None:
    run = unpack("fill", tmp_path)
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["tt"]["task"] = "juggle"
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match="a run of the task 'juggle'; this version knows gpt"):
        load_predictor(run)


@pytest.mark.parametrize("kind", EXPECTED)
def test_an_old_run_is_used_and_resumed(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    unpack(kind, tmp_path)
    shutil.copy(OLD_RUNS / "said.wav", tmp_path)
    for part in [*EXPECTED[kind]["use"], EXPECTED[kind]["resume"]]:
        output = call(part["command"], capsys)
        check_same(part["output"], output, " ".join(part["command"]))
