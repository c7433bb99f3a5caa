"""The pointer of a run, rebuilt from its checkpoints where it was lost or damaged."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.atomic import reading, sha256_of
from tinygrad_tf.storage.pointer import (
    CHECKPOINT_FILES,
    CHECKPOINT_NAME,
    POINTER,
    DamagedPointer,
    Entry,
    Pointer,
    read_pointer,
)
from tinygrad_tf.storage.safetensors import read_header
from tinygrad_tf.storage.strict_json import read_json

MODEL, OPTIMIZER, STATE = CHECKPOINT_FILES


class PointerFile:
    """The pointer of a run on the disk, or one rebuilt in memory where that is lost or damaged.

    It is rebuilt once, and again where the checkpoints have changed.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self._rebuilt: Pointer | None = None
        self._directories: set[Path] = set()

    @property
    def is_rebuilt(self) -> bool:
        """True where the pointer that was read last is not on the disk."""
        return self._rebuilt is not None

    def read(self, on_warning: Callable[[str], object]) -> Pointer | None:
        """Return the pointer, None where there is no checkpoint; warn where it was rebuilt.

        Raises InputError for a damaged one without whole checkpoints, and for a newer schema.
        """
        fault = None
        try:
            pointer = read_pointer(self.run / POINTER)
        except DamagedPointer as damaged:
            pointer, fault = None, damaged
        if pointer is not None:
            self._rebuilt = None
            return pointer
        with reading(self.run / "checkpoints"):
            directories = set(checkpoint_directories(self.run))
        if self._rebuilt is None or directories != self._directories:
            self._rebuilt, self._directories = _rebuild(self.run), directories
            if self._rebuilt is not None:
                why = f"{self.run / POINTER} is missing" if fault is None else fault.what
                on_warning(f"{why}; rebuilt from the checkpoints: {_describe(self._rebuilt)}")
        if self._rebuilt is None and fault is not None:
            raise fault
        return self._rebuilt


def checkpoint_directories(run: Path) -> list[Path]:
    """Return the directories of a run that have a checkpoint's name; raises OSError."""
    return [p for p in (run / "checkpoints").glob("*") if CHECKPOINT_NAME.fullmatch(p.name)]


def _rebuild(run: Path) -> Pointer | None:
    """Return a pointer to the whole checkpoints of a run, None where there are none.

    The newest is the latest, the one before it the previous; the best is the one whose weights
    best/ holds, if any. Raises InputError where a checkpoint's files cannot be read at all: it
    may be the newest, and a checkpoint without a pointer is removed later.
    """
    with reading(run / "checkpoints"):
        newest_first = sorted(checkpoint_directories(run), key=_age, reverse=True)
    entries = [entry for path in newest_first if (entry := _whole(path)) is not None]
    if not entries:
        return None
    shown = sha256_of(run / "best" / MODEL)
    best = next((entry for entry in entries if entry.sha256[MODEL] == shown), None)
    return Pointer(entries[0], entries[1] if len(entries) > 1 else None, best)


def _describe(pointer: Pointer) -> str:
    """Return in a few words which checkpoints a pointer names."""
    named = [f"step {pointer.latest.step} is the latest checkpoint"]
    if pointer.previous is not None:
        named.append(f"step {pointer.previous.step} the one before")
    best = "not known" if pointer.best is None else f"step {pointer.best.step}"
    return ", ".join([*named, f"the best is {best}"])


def _age(directory: Path) -> tuple[int, int, str]:
    """Return a key to sort by: the step, then the time, since a step may be saved again."""
    state = directory / STATE
    saved = state.stat().st_mtime_ns if state.is_file() else 0
    return int(directory.name.partition("-")[0]), saved, directory.name


def _whole(directory: Path) -> Entry | None:
    """Return a checkpoint's entry, None unless its three files are there and well formed."""
    digests = {}
    for name in CHECKPOINT_FILES:
        if not (directory / name).is_file():
            return None
        # A file that cannot be read may be whole: this raises, the checkpoint is not skipped.
        with reading(directory / name), (directory / name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        read_header(directory / MODEL)
        read_header(directory / OPTIMIZER)
        step = read_json(directory / STATE).get("step")
    except InputError:
        return None
    if type(step) is not int:
        return None
    return Entry(f"checkpoints/{directory.name}", digests)
