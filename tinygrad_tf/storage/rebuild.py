"""The pointer of a run, made anew from its checkpoints where it was lost or damaged."""

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
    """Reads the pointer of a run; where it is lost or damaged, one is rebuilt in memory.

    It is kept until the pointer is written or the checkpoints are others.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self._rebuilt: Pointer | None = None
        self._found: set[Path] = set()

    @property
    def is_rebuilt(self) -> bool:
        """Whether what was read last is not on the disk."""
        return self._rebuilt is not None

    def read(self, tell: Callable[[str], object]) -> Pointer | None:
        """Return the pointer, None where there is no checkpoint; `tell` what was rebuilt.

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
            found = set(checkpoint_directories(self.run))
        if self._rebuilt is None or found != self._found:
            self._rebuilt, self._found = rebuild_pointer(self.run), found
            if self._rebuilt is not None:
                why = f"{self.run / POINTER} is missing" if fault is None else fault.what
                tell(f"{why}; rebuilt from the checkpoints: {describe(self._rebuilt)}")
        if self._rebuilt is None and fault is not None:
            raise fault
        return self._rebuilt


def checkpoint_directories(run: Path) -> list[Path]:
    """Return the directories of a run that have a checkpoint's name; raises OSError."""
    return [p for p in (run / "checkpoints").glob("*") if CHECKPOINT_NAME.fullmatch(p.name)]


def rebuild_pointer(run: Path) -> Pointer | None:
    """Return a pointer to the whole checkpoints of a run, None where there are none.

    The newest is the latest, the one before it the previous; the best is the one whose weights
    best/ holds, if any. Raises InputError where a checkpoint's files cannot be read at all: it
    may be the newest, and what is not pointed to is removed in the end.
    """
    with reading(run / "checkpoints"):
        newest_first = sorted(checkpoint_directories(run), key=_age, reverse=True)
    entries = [entry for path in newest_first if (entry := _whole(path)) is not None]
    if not entries:
        return None
    shown = sha256_of(run / "best" / MODEL)
    best = next((entry for entry in entries if entry.sha256[MODEL] == shown), None)
    return Pointer(entries[0], entries[1] if len(entries) > 1 else None, best)


def describe(pointer: Pointer) -> str:
    """Say in a few words which checkpoints a pointer names."""
    named = [f"step {pointer.latest.step} is the latest checkpoint"]
    if pointer.previous is not None:
        named.append(f"step {pointer.previous.step} the one before")
    best = "not known" if pointer.best is None else f"step {pointer.best.step}"
    return ", ".join([*named, f"the best is {best}"])


def _age(directory: Path) -> tuple[int, int, str]:
    """Order by step; a step that was saved again has several, told apart by their time."""
    state = directory / STATE
    saved = state.stat().st_mtime_ns if state.is_file() else 0
    return int(directory.name.partition("-")[0]), saved, directory.name


def _whole(directory: Path) -> Entry | None:
    """Return a checkpoint's entry, None unless its three files are there and well formed."""
    digests = {}
    for name in CHECKPOINT_FILES:
        if not (directory / name).is_file():
            return None
        # A file that cannot be read is not a damaged one: this is told, not passed over.
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
