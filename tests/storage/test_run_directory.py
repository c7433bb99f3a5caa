"""Run directories: bit-exact, and careful with the files that are there."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.storage.small_run import (
    CONFIG,
    check,
    check_tidy,
    contents,
    model_at,
    refuse_warning,
    save,
)
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.storage import load_safetensors, strict_json
from tinygrad_tf.storage.lock import LOCK_NAME, RunLock
from tinygrad_tf.storage.run_directory import RunDirectory

# Saving and loading


def test_round_trip_bit_for_bit(run: RunDirectory) -> None:
    for step in (0, 100, 200, 1_234_567):
        directory = save(run, step)
        assert directory.name == f"{step:06d}"
        assert check(RunDirectory.open(run.path)) == step
        assert load_safetensors(run.path / "model.safetensors")["step"] == step
        check_tidy(run)
    assert run.checkpoint_steps() == {"latest": 1_234_567, "previous": 200}
    assert run.load_model()["step"] == 1_234_567
    assert run.read_config() == CONFIG


def test_saves_are_byte_identical(run: RunDirectory, tmp_path: Path) -> None:
    other = RunDirectory.create(tmp_path / "two")
    other.write_config(CONFIG)
    for each in (run, other):
        for step in (1, 2):
            save(each, step, best=step == 1)
    assert contents(run.path) == contents(other.path)


def test_the_best_is_kept_until_a_better_one(run: RunDirectory) -> None:
    (run.path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="no checkpoint yet"):
        run.load_checkpoint("best")
    for step, best, expected in [(1, False, None), (2, True, 2), (3, False, 2), (4, False, 2),
                                 (5, False, 2), (6, True, 6), (7, False, 6)]:  # fmt: skip
        save(run, step, best=best)
        if expected is None:
            with pytest.raises(InputError, match="marked best"):
                run.load_checkpoint("best")
        else:
            assert check(run, "best") == expected
            names = {path.name for path in (run.path / "best").iterdir()}
            assert names == {"config.json", "model.safetensors", "tokenizer.json"}
        assert check(run) == step
        check_tidy(run)


def test_same_step_again(run: RunDirectory) -> None:
    for _ in range(4):
        save(run, 5, best=True)
        assert check(RunDirectory.open(run.path)) == 5
        check_tidy(run)
    run.save_checkpoint(5, {"step": np.array([9])}, {}, {})
    assert run.load_model()["step"] == 9
    assert run.checkpoint_steps() == {"latest": 5, "previous": 5, "best": 5}


@pytest.mark.parametrize("links_work", [True, False])
def test_other_names_with_and_without_links(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, links_work: bool
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "links do not work here")

    if not links_work:
        monkeypatch.setattr(os, "link", no_link)
    for step in (1, 2, 3):
        directory = save(run, step, best=step == 2)
        same = (run.path / "model.safetensors").samefile(directory / "model.safetensors")
        assert same == links_work
        again = RunDirectory.open(run.path, on_warning=refuse_warning)
        assert check(again) == step
        check_tidy(again)


def test_no_checkpoint_yet(run: RunDirectory) -> None:
    again = RunDirectory.open(run.path)
    assert again.checkpoint_steps() == {}
    for load in (again.load_checkpoint, again.load_model):
        with pytest.raises(InputError, match="no checkpoint yet"):
            load()


def test_state_that_json_cannot_hold(run: RunDirectory) -> None:
    save(run, 1)
    for state in ({"loss": float("nan")}, {"rng": np.zeros(2)}):
        with pytest.raises(InputError, match="JSON"):
            run.save_checkpoint(2, {}, {}, state)
    with pytest.raises(InputError, match="-3"):
        run.save_checkpoint(-3, {}, {}, {})
    assert check(run) == 1
    check_tidy(run)


@pytest.mark.reference
def test_flat_names_are_read_by_the_reference_package(run: RunDirectory) -> None:
    reference = pytest.importorskip("safetensors.numpy")
    save(run, 3)
    theirs = reference.load_file(run.path / "model.safetensors")
    assert theirs["wte.weight"].tobytes() == model_at(3)["wte.weight"].tobytes()


# Making and opening


def test_a_new_run_wants_its_own_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match="a file is in its way"):
            RunDirectory.create(path, force=True)
    (tmp_path / "empty").mkdir()
    RunDirectory.create(tmp_path / "empty")
    RunDirectory.create(tmp_path / "empty")  # a crash just after the first is no obstacle


def test_an_existing_run_is_replaced_only_by_force(run: RunDirectory) -> None:
    save(run, 1, best=True)
    run.append_metrics({"step": 1})
    (run.path / "notes.txt").write_text("mine")
    (run.path / "checkpoints" / "mine").write_text("mine")
    before = contents(run.path)
    with pytest.raises(InputError, match=r"not empty; .*`force=True`.*`resume="):
        RunDirectory.create(run.path)
    assert contents(run.path) == before
    RunDirectory.create(run.path, force=True)
    assert contents(run.path) == {
        LOCK_NAME: b"",
        "notes.txt": b"mine",
        str(Path("checkpoints", "mine")): b"mine",
    }


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "model.safetensors"])
def test_what_is_no_run_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"model_type": "gpt2"}')
    with pytest.raises(InputError, match="left alone"):
        RunDirectory.create(tmp_path, force=True)
    assert contents(tmp_path) == {name: b'{"model_type": "gpt2"}'}


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, fault in [
        ("missing", "does not exist"),
        ("file", "not a directory"),
        ("empty", "neither"),
    ]:
        with pytest.raises(InputError, match=fault):
            RunDirectory.open(tmp_path / name)
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_model_directory_opens(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    shutil.copy(Path(save(RunDirectory.create(tmp_path / "run"), 3), "model.safetensors"), tmp_path)
    before = contents(tmp_path)
    assert RunDirectory.open(tmp_path).load_model()["step"] == 3
    assert contents(tmp_path) == before


# Metrics


def test_metrics(run: RunDirectory) -> None:
    assert run.read_metrics() == []
    run.truncate_metrics(0)
    run.append_metrics({"run": "é"})
    for step in range(5):
        odd = {"loss": np.float32("nan"), "more": [np.int64(3), -np.inf]}
        run.append_metrics({"step": step, **odd})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "los')
    lines = [{"step": step, "loss": None, "more": [3, None]} for step in range(5)]
    assert run.read_metrics() == [{"run": "é"}, *lines]
    run.truncate_metrics(2)
    run.append_metrics({"step": 3})
    assert run.read_metrics() == [{"run": "é"}, *lines[:3], {"step": 3}]


def test_a_damaged_line_of_metrics_is_named(run: RunDirectory) -> None:
    (run.path / "metrics.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    for read in (run.read_metrics, lambda: run.truncate_metrics(1)):
        with pytest.raises(InputError, match=r"metrics\.jsonl, line 2"):
            read()


# Two processes


def test_two_writers(run: RunDirectory) -> None:
    save(run, 1)
    other = RunDirectory.open(run.path)
    with run.lock():
        with run.lock():
            save(run, 2)
        for action in (
            lambda: save(other, 3),
            lambda: other.lock(wait=0).__enter__(),
            lambda: RunDirectory.create(run.path, force=True),
        ):
            with pytest.raises(FailedError, match=f"process {os.getpid()}"):
                action()
    save(other, 3)
    assert check(run) == 3


def test_a_reader_leaves_a_writers_files_alone(run: RunDirectory) -> None:
    save(run, 1)
    half = run.path / "checkpoints" / "000002.tmp-1-00000000"
    half.mkdir()
    (half / "model.safetensors").write_text("half")
    with RunLock(run.path):
        assert check(RunDirectory.open(run.path)) == 1
        assert half.exists()
    assert check(RunDirectory.open(run.path)) == 1
    assert not half.exists()


def test_a_reader_whose_checkpoint_is_removed_meanwhile(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(run, 1, best=True)
    reader = RunDirectory.open(run.path, on_warning=refuse_warning)
    real = strict_json.read_json

    def late(path: Path, **options: Any) -> Any:
        if path.name == "trainer_state.json" and run.checkpoint_steps()["latest"] < 4:
            for step in (2, 3, 4):
                save(run, step, best=True)
        return real(path, **options)

    monkeypatch.setattr(strict_json, "read_json", late)
    assert check(reader) == 4
