"""A lock that lets one process at a time write in a directory."""

import errno
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from tinygrad_tf.errors import FailedError
from tinygrad_tf.storage.atomic import PathLike, writing

LOCK_NAME = ".tinygrad_tf.lock"
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}

# The system's own locks: it takes them back when their holder dies, whichever way it dies.
if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 30  # far beyond the text, since a locked byte cannot be read by others

    def _acquire(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class RunLock:
    """A lock on a directory for one writer: `with RunLock(run_dir): ...`.

    Waits up to `wait` seconds, then raises FailedError naming the process and the host that
    hold it. The lock file stays; only the lock on it counts, and a dead process holds none.
    """

    def __init__(self, run_dir: PathLike, *, wait: float = 0.5) -> None:
        self.run_dir = Path(run_dir)
        self.wait = wait
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        path = self.run_dir / LOCK_NAME
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._wait_for(descriptor)
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # closing the file releases it in any case
                os.ftruncate(descriptor, 0)
                _release(descriptor)
            os.close(descriptor)

    def _wait_for(self, descriptor: int) -> None:
        deadline = time.monotonic() + self.wait
        while True:
            try:
                return _acquire(descriptor)
            except OSError as error:
                if error.errno not in _HELD:
                    raise
                if time.monotonic() >= deadline:
                    raise self._refusal(descriptor) from None
            time.sleep(0.02)

    def _refusal(self, descriptor: int) -> FailedError:
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = os.read(descriptor, 300).decode("utf-8", "replace") or "another process"
        return FailedError(
            f"{self.run_dir} is being written by {holder}",
            "wait until it ends, or choose another directory",
        )
