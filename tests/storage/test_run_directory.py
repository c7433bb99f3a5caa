"""Run directories: bit-exact, whole after a crash at any instant, careful with what is there."""

import errno
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinygrad_tf.errors import FailedError, InputError, TinygradError
from tinygrad_tf.storage import atomic, load_safetensors, strict_json
from tinygrad_tf.storage.lock import LOCK_NAME, RunLock
from tinygrad_tf.storage.pointer import CHECKPOINT_FILES
from tinygrad_tf.storage.run_directory import RunDirectory, Which

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
CONFIG = {"model_type": "gpt2", "n_embd": 4, "tt": {"schema_version": 1}}


def model_at(step: int, size: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    weights = rng.standard_normal(size, np.float32)
    weights[:3] = np.array([np.nan, -0.0, 1e-42])
    return {"wte.weight": weights.reshape(2, -1), "step": np.array([step], np.float32)}


def save(run: RunDirectory, step: int, *, best: bool = False, size: int = 6) -> Path:
    model = model_at(step, size)
    optimizer = {f"{moment}.{name}": 2 * w for moment in "mv" for name, w in model.items()}
    state = {"step": step, "rng": {"state": 2**127 + step}, "loss": 0.1 + step}
    return run.save_checkpoint(step, model, optimizer, state, best=best)


def check(run: RunDirectory, which: Which = "latest") -> int:
    """Check that a checkpoint is of one step, bit for bit, and return the step."""
    model, optimizer, state = run.load_checkpoint(which)
    step = state["step"]
    assert state == {"step": step, "rng": {"state": 2**127 + step}, "loss": 0.1 + step}
    expected = model_at(step, model["wte.weight"].size)
    assert list(model) == list(expected)
    for name, weight in expected.items():
        assert model[name].dtype == np.float32
        assert model[name].tobytes() == weight.tobytes()
        for moment in "mv":
            assert optimizer[f"{moment}.{name}"].tobytes() == (2 * weight).tobytes()
    return int(step)


def check_tidy(run: RunDirectory) -> None:
    """Check that nothing half written is left, and that all names show what they should."""
    assert not [path for path in run.path.rglob("*") if ".tmp-" in path.name]
    steps = run.checkpoint_steps()
    if not steps:
        return
    kept = json.loads((run.path / "latest.json").read_text())
    dirs = {kept[role]["dir"] for role in ("latest", "previous", "best") if kept[role]}
    assert {f"checkpoints/{p.name}" for p in (run.path / "checkpoints").iterdir()} == dirs
    for name in CHECKPOINT_FILES:
        flat, source = run.path / name, run.path / kept["latest"]["dir"] / name
        assert flat.read_bytes() == source.read_bytes()
    if "best" in steps:
        best = RunDirectory.open(run.path / "best", on_warning=refuse_warning)
        assert best.load_model()["step"] == steps["best"]


def refuse_warning(message: str) -> None:
    raise AssertionError(message)


def contents(directory: Path) -> dict[str, bytes]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "runs" / "one", on_warning=refuse_warning)
    run.write_config(CONFIG)
    return run


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


# Damage


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 1
    path.write_bytes(raw)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


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


def in_child(action: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> int:
    """Run an action in a forked process: 0 done, 1 a fault told, 3 a bug, or its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the BLAS
        pid = os.fork()
    if pid == 0:
        status = 3
        try:
            prepare()
            action()
            status = 0
        except TinygradError as error:
            status = 1 if error.what and error.next else 3
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_fork
def test_no_permission(run: RunDirectory) -> None:
    save(run, 1)
    parent = run.path.parent
    parent.chmod(0o555)
    run.path.chmod(0o555)
    drop = (lambda: os.setuid(65534)) if os.getuid() == 0 else lambda: None
    try:
        assert in_child(lambda: RunDirectory.create(parent / "two"), drop) == 1
        assert in_child(lambda: save(run, 2), drop) == 1
    finally:
        parent.chmod(0o755)
        run.path.chmod(0o755)
    assert check(run) == 1


@needs_fork
def test_file_size_limit(run: RunDirectory) -> None:
    resource = pytest.importorskip("resource")
    save(run, 1)
    before = contents(run.path)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    assert in_child(lambda: save(run, 2, size=10_000), limit) == 1
    assert contents(run.path) == before


def test_full_disk_says_what_is_intact(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    save(run, 400)
    before = contents(run.path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(FailedError) as caught:
        patch.setattr(os, "fsync", full)
        save(run, 500)
    assert "checkpoints/000500: the disk is full" in caught.value.what.replace("\\", "/")
    assert "step 400 is intact" in caught.value.what
    path = shlex.quote(run.path.as_posix())
    assert caught.value.next == (f"free some space, then go on with `resume={path}`")
    assert caught.value.exit_code == 1
    assert contents(run.path) == before


def test_full_disk_at_the_first_checkpoint_and_at_the_pointer(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    for free, told in ((0, "checkpoints/000001: the disk is full (nothing had been saved yet)"),
                       (5, "latest.json: the disk is full")):  # fmt: skip
        left = [free]

        def fsync(descriptor: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(descriptor)

        with monkeypatch.context() as patch, pytest.raises(FailedError) as caught:
            patch.setattr(os, "fsync", fsync)
            save(run, 1)
        assert told in caught.value.what.replace("\\", "/")
        assert "then go on with `resume=" in caught.value.next


@pytest.mark.parametrize("name", [*CHECKPOINT_FILES, "best/model.safetensors", "best/config.json"])
def test_a_directory_in_the_way(run: RunDirectory, name: str) -> None:
    save(run, 1, best=True)
    (run.path / name).unlink()
    (run.path / name).mkdir()
    with pytest.raises(FailedError) as caught:
        save(run, 2, best=True)
    assert caught.value.what == (
        f"cannot write {run.path / name}: a directory has that name "
        "(the checkpoint of step 2 is saved)"
    )
    assert caught.value.next.startswith("move it away, then go on with `resume=")
    (run.path / name).rmdir()
    again = RunDirectory.open(run.path, on_warning=refuse_warning)
    assert check(again) == 2
    check_tidy(again)


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


# A crash or a fault at every single call to the file system

CALLS = {
    "open",
    "write",
    "os.fsync",
    "os.link",
    "os.listdir",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.scandir",
    "os.truncate",
}


class FaultAtCall:
    """Makes a process `act` at its call to the file system of that number, once or from then on."""

    def __init__(self, number: int, act: Callable[[], object], once: bool) -> None:
        self.number, self.act, self.once = number, act, once
        self.count = 0

    def __call__(self) -> None:
        # Nothing here outlives the machine, so forcing it to the disk can be left out.
        os.fsync = lambda fd: sys.audit("os.fsync", fd)
        sys.addaudithook(self.hook)
        sys.setprofile(self.profile)

    def profile(self, _: object, event: str, function: object) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in ("write", "flush"):
            self.hook("write")

    def hook(self, event: str, _: object = None) -> None:
        if event in CALLS:
            self.count += 1
            if self.count == self.number or (self.count > self.number and not self.once):
                self.act()


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


FAULTS = {
    "dies": (lambda: os._exit(9), True),
    "one call fails": (full, True),
    "all calls fail": (full, False),
}


def copy_run(source: Path, target: Path) -> RunDirectory:
    """Copy a run so that what is one file with two names stays one."""
    seen: dict[int, str] = {}

    def copy(old: str, new: str) -> None:
        first = seen.setdefault(Path(old).stat().st_ino, new)
        if first == new:
            shutil.copy2(old, new)
        else:
            atomic.link_atomically(Path(first), Path(new))

    shutil.copytree(source, target, copy_function=copy)
    return RunDirectory(target, on_warning=lambda _: None)


def try_every_call(
    tmp_path: Path, scene: str, act: Callable[[], object], once: bool, stride: int = 1
) -> set[tuple[int, bool]]:
    """Save with a fault at call 1, 2, 3...; return (exit status, whether the new one is there)."""
    start = RunDirectory.create(tmp_path / "start")
    start.write_config(CONFIG)
    for step in [] if scene == "first" else [1, 2, 3]:
        save(start, step, best=step == 1)
    olds = start.checkpoint_steps()
    new = 3 if scene == "same step" else 4

    def attempt(number: int, act: Callable[[], object], exit_with_count: bool = False) -> int:
        run = copy_run(start.path, tmp_path / str(number))
        fault = FaultAtCall(number, act, once)

        def action() -> None:
            save(run, new, best=scene == "new best")
            if exit_with_count:
                os._exit(fault.count)

        return in_child(action, fault)

    outcomes = set()
    calls = attempt(1000, full, exit_with_count=True)
    assert 20 < calls < 250
    for number in range(1, calls + 1, stride):
        status = attempt(number, act)
        assert status in (0, 1, 9)
        # A first checkpoint whose pointer was not written is found, which is told.
        tell = refuse_warning if olds else (lambda _: None)
        run = RunDirectory.open(tmp_path / str(number), on_warning=tell)
        steps = run.checkpoint_steps()
        saved = steps != olds
        if steps:
            assert check(run) == steps["latest"] == (new if saved else olds["latest"])
        if "best" in steps:
            assert check(run, "best") == steps["best"]
        assert saved or status != 0
        check_tidy(run)
        save(run, 5)
        assert check(run) == 5
        check_tidy(run)
        shutil.rmtree(run.path)
        outcomes.add((status, saved))
    return outcomes


@needs_fork
def test_death_at_every_fourth_call(tmp_path: Path) -> None:
    outcomes = try_every_call(tmp_path, "next", *FAULTS["dies"], stride=4)
    assert outcomes == {(9, False), (9, True)}


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("scene", "links_work"),
    [("first", True), ("next", True), ("same step", True), ("new best", True), ("new best", False)],
)
def test_fault_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scene: str, links_work: bool, fault: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if not links_work:

        def no_link(*_: object) -> None:
            raise OSError(errno.ENOTSUP, "links do not work here")

        monkeypatch.setattr(os, "link", no_link)
    outcomes = try_every_call(tmp_path, scene, *FAULTS[fault])
    crashed = 9 if fault == "dies" else 1
    assert (crashed, False) in outcomes


# kill -9

SAVER = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[2])
from test_run_directory import RunDirectory, save
run = RunDirectory.open(sys.argv[1])
with run.lock():
    step = run.checkpoint_steps().get("latest", 0)
    while True:
        step += 1
        save(run, step, best=step % 3 == 0, size=30_000)
        print(step, flush=True)
"""


def kill_while_saving(run: RunDirectory, times: int, seed: int) -> None:
    rng = random.Random(seed)
    command = [sys.executable, "-c", SAVER, str(run.path), str(Path(__file__).parent)]
    last = 0
    for _ in range(times):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout is not None
            reported = int(saver.stdout.readline() or 0)
            time.sleep(rng.uniform(0, 0.1))
            saver.kill()
            reported = max([reported, *map(int, saver.stdout.read().split())])
        assert reported > last
        again = RunDirectory.open(run.path, on_warning=refuse_warning)
        last = check(again)
        assert last in (reported, reported + 1)
        assert again.checkpoint_steps().get("previous", 0) == last - 1
        check_tidy(again)


def test_killed_while_saving(run: RunDirectory) -> None:
    kill_while_saving(run, times=2, seed=0)


@pytest.mark.slow
def test_killed_while_saving_at_many_moments(run: RunDirectory) -> None:
    kill_while_saving(run, times=20, seed=1)
