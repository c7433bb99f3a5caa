"""Runs are whole after a fault or a crash at any time."""

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.small_run import (
    CONFIG,
    check,
    check_tidy,
    contents,
    in_child,
    needs_fork,
    refuse_warning,
    save,
)
from tinygrad_tf.errors import FailedError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.pointer import CHECKPOINT_FILES
from tinygrad_tf.storage.run_directory import RunDirectory


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
    assert caught.value.next == f"free some space, then go on with `resume={run.path}`"
    assert caught.value.exit_code == 1
    assert contents(run.path) == before


def test_full_disk_at_the_first_checkpoint_and_at_the_pointer(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    for free, message in ((0, "checkpoints/000001: the disk is full (nothing had been saved yet)"),
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
        assert message in caught.value.what.replace("\\", "/")
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
        # A first checkpoint whose pointer was not written is found, with a warning.
        on_warning = refuse_warning if olds else (lambda _: None)
        run = RunDirectory.open(tmp_path / str(number), on_warning=on_warning)
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
from small_run import RunDirectory, save
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
