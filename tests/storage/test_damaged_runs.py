"""Damaged checkpoints and pointers: fallback, rebuilding, or a refusal that names the file."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.small_run import (
    check,
    check_tidy,
    contents,
    empty,
    flip,
    refuse_warning,
    save,
    truncate,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.lock import RunLock
from tinygrad_tf.storage.pointer import CHECKPOINT_FILES
from tinygrad_tf.storage.run_directory import RunDirectory


@pytest.mark.parametrize("damage", [flip, truncate, empty, Path.unlink])
@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_damage_falls_back_to_the_previous(
    run: RunDirectory, damage: Callable[[Path], None], name: str
) -> None:
    warned: list[str] = []
    run.on_warning = warned.append
    directories = [save(run, step) for step in (1, 2)]
    (run.path / name).unlink()
    damage(directories[1] / name)
    assert check(run) == 1
    assert len(warned) == 1
    assert str(directories[1] / name) in warned[0]
    assert "step 1 is used" in warned[0]

    save(run, 2)  # the damaged checkpoint is not what to fall back to
    assert run.checkpoint_steps() == {"latest": 2, "previous": 1}
    assert check(run) == 2
    run.on_warning = refuse_warning
    check_tidy(run)

    for path in run.path.glob(f"checkpoints/*/{name}"):
        damage(path)
    (run.path / name).unlink(missing_ok=True)
    with pytest.raises(InputError) as caught:
        RunDirectory.open(run.path).load_checkpoint()
    assert name in caught.value.what
    assert caught.value.exit_code == 2


def test_damage_through_the_flat_name_is_noticed(run: RunDirectory) -> None:
    save(run, 1)
    flip(run.path / "model.safetensors")
    with pytest.raises(InputError, match="altered or damaged"):
        RunDirectory.open(run.path).load_model()


def test_a_damaged_best_is_refused(run: RunDirectory) -> None:
    truncate(save(run, 1, best=True) / "model.safetensors")
    save(run, 2)
    with pytest.raises(InputError, match="000001"):
        run.load_checkpoint("best")
    assert check(run) == 2


def test_a_run_without_its_checkpoints_folder_still_loads(run: RunDirectory) -> None:
    save(run, 1)
    save(run, 2)
    shutil.rmtree(run.path / "checkpoints")
    assert check(RunDirectory.open(run.path, on_warning=refuse_warning)) == 2
    flip(run.path / "model.safetensors")
    with pytest.raises(InputError, match="altered"):
        run.load_model()


def test_a_copied_run_loads(run: RunDirectory, tmp_path: Path) -> None:
    save(run, 1, best=True)
    save(run, 2)
    shutil.copytree(run.path, tmp_path / "copy")
    copy = RunDirectory.open(tmp_path / "copy", on_warning=refuse_warning)
    assert check(copy) == 2
    check_tidy(copy)


def test_a_file_put_there_by_someone_is_kept_and_reported(run: RunDirectory) -> None:
    save(run, 1)
    flat = run.path / "model.safetensors"
    flat.unlink()
    flat.write_bytes(b"mine")
    warned: list[str] = []
    again = RunDirectory.open(run.path, on_warning=warned.append)
    assert flat.read_bytes() == b"mine"
    assert check(again) == 1
    assert len(warned) == 1
    assert "is not what the run saved" in warned[0]


POINTERS = {
    "not valid JSON": "{",
    "JSON object": "[]",
    "schema version": '{"schema": "1"}',
    "schema version 2, this program knows up to 1": '{"schema": 2, "odd": 1}',
    "names no latest": '{"schema": 1, "latest": null}',
    "'latest' does not name": '{"schema": 1, "latest": {"dir": "../000001", "sha256": {}}}',
    "'latest' does": '{"schema": 1, "latest": {"dir": "checkpoints/000001", "sha256": {}}}',
}


@pytest.mark.parametrize("fault", POINTERS)
def test_bad_pointer(run: RunDirectory, fault: str) -> None:
    save(run, 1)
    before = contents(run.path)
    (run.path / "latest.json").write_text(POINTERS[fault])
    warned: list[str] = []
    if "this program knows" in fault:
        with pytest.raises(InputError, match=fault):
            RunDirectory.open(run.path)
        assert (run.path / "checkpoints" / "000001").is_dir()
        return
    assert check(RunDirectory.open(run.path, on_warning=warned.append)) == 1
    assert len(warned) == 1
    assert "latest.json" in warned[0]
    assert fault in warned[0]
    assert contents(run.path) == before

    shutil.rmtree(run.path / "checkpoints")
    (run.path / "latest.json").write_text(POINTERS[fault])
    with pytest.raises(InputError) as caught:
        RunDirectory.open(run.path)
    assert "latest.json" in caught.value.what
    assert fault in caught.value.what


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
def test_a_lost_pointer_is_rebuilt(run: RunDirectory, damage: Callable[[Path], None]) -> None:
    for step in (1, 2, 3, 4):
        save(run, step, best=step == 2)
    before = contents(run.path)
    damage(run.path / "latest.json")
    warned: list[str] = []
    again = RunDirectory.open(run.path, on_warning=warned.append)
    assert again.checkpoint_steps() == {"latest": 4, "previous": 3, "best": 2}
    assert contents(run.path) == before
    (line,) = warned
    assert "\n" not in line
    assert line.endswith(
        "step 4 is the latest checkpoint, step 3 the one before, the best is step 2"
    )

    damage(run.path / "latest.json")
    with again.lock():  # as when training goes on with a run that is open already
        save(again, 5)
    again.on_warning = refuse_warning
    assert again.checkpoint_steps() == {"latest": 5, "previous": 4, "best": 2}
    assert len(warned) == 2
    check_tidy(again)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_only_whole_checkpoints_are_pointed_to_again(
    run: RunDirectory, damage: Callable[[Path], None], name: str
) -> None:
    directories = [save(run, step, best=step == 2) for step in (1, 2)]
    damage(directories[1] / name)
    (run.path / "latest.json").unlink()
    shutil.rmtree(run.path / "best")
    again = RunDirectory.open(run.path, on_warning=lambda _: None)
    assert again.checkpoint_steps() == {"latest": 1}
    assert check(again) == 1


def test_a_state_without_a_step_is_no_whole_checkpoint(run: RunDirectory) -> None:
    save(run, 1)
    run.save_checkpoint(2, {}, {}, {"step": "2"})
    (run.path / "latest.json").unlink()
    assert RunDirectory.open(run.path, on_warning=lambda _: None).checkpoint_steps() == {
        "latest": 1
    }


def test_the_last_of_a_step_saved_again_is_the_latest(run: RunDirectory) -> None:
    for _ in range(5):  # the names are used in turn
        directory = save(run, 5)
        time.sleep(0.02)
    (run.path / "latest.json").unlink()
    RunDirectory.open(run.path, on_warning=lambda _: None)
    kept = json.loads((run.path / "latest.json").read_text())
    assert run.path / kept["latest"]["dir"] == directory


def test_a_pointer_is_rebuilt_in_memory_while_another_process_writes(run: RunDirectory) -> None:
    save(run, 1)
    save(run, 2)
    (run.path / "latest.json").unlink()
    warned: list[str] = []
    with RunLock(run.path):
        reader = RunDirectory.open(run.path, on_warning=warned.append)
        assert check(reader) == 2
        assert not (run.path / "latest.json").exists()
    assert len(warned) == 1
    assert reader.checkpoint_steps() == {"latest": 2, "previous": 1}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "line 1 column 2"),
        ("[1]", "JSON object"),
        ('{"tt": {"schema_version": 9}}', "version 9"),
        ('{"tt": {"schema_version": "x"}}', "schema version"),
    ],
)
def test_bad_config(run: RunDirectory, text: str, fault: str) -> None:
    (run.path / "config.json").write_text(text)
    with pytest.raises(InputError) as caught:
        run.read_config()
    assert "config.json" in caught.value.what
    assert fault in caught.value.what
