"""Bytes in and out of commands, exactly: files, directories, stdin and stdout."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tinygrad_tf.errors import InputError

CHUNK = 1 << 20


def chunks_of(paths: Sequence[Path]) -> Iterator[bytes]:
    """Read the bytes of files, of all files under directories (by name), and of stdin for `-`.

    Raises InputError for a path that does not exist or cannot be read.
    """
    for path in files_of(paths):
        if str(path) == "-":
            yield from _pieces(sys.stdin.buffer)
        else:
            try:
                with path.open("rb") as file:
                    yield from _pieces(file)
            except OSError as fault:
                raise InputError(f"cannot read {path}: {fault.strerror or fault}") from fault


def files_of(paths: Sequence[Path]) -> list[Path]:
    """List the files of `paths`: those under a directory in the order of their names."""
    files: list[Path] = []
    for path in paths:
        if str(path) == "-":
            if sys.stdin is None or sys.stdin.isatty():
                raise InputError("there is nothing on stdin", "pipe a text into it: tt ... < FILE")
            files.append(path)
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            if not inside:
                raise InputError(f"{path} holds no files", "name a file")
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise InputError(f"{path} does not exist", "name a file, a directory, or - for stdin")
    return files


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are, also on Windows."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:  # replaced by something that takes text alone
        sys.stdout.write(data.decode("utf-8", "replace"))
    else:
        raw.write(data)
        raw.flush()


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
