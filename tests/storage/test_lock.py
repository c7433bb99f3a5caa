"""One writer at a time, and no lock that outlives its holder."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tinygrad_tf.errors import FailedError
from tinygrad_tf.storage.lock import RunLock

HOLDER = """
import sys, time
from tinygrad_tf.storage.lock import RunLock
with RunLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_second_writer_is_refused_by_name(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(FailedError) as caught, RunLock(tmp_path, wait=0.05):
        pass
    assert str(tmp_path) in caught.value.what
    assert f"process {os.getpid()} on {socket.gethostname()}" in caught.value.what
    with RunLock(tmp_path, wait=0):
        pass


def test_released_when_an_error_ends_the_block(tmp_path: Path) -> None:
    with pytest.raises(KeyError), RunLock(tmp_path):
        raise KeyError
    with RunLock(tmp_path, wait=0):
        pass


def test_a_killed_holder_does_not_block(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(FailedError, match=f"process {holder.pid} "), RunLock(tmp_path):
                pass
        finally:
            holder.kill()
        holder.wait()
    with RunLock(tmp_path):
        pass


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="cannot write"), RunLock(tmp_path / "missing"):
        pass
