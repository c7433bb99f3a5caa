"""The pointer of a run: which checkpoints count, and the digest of each of their files."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.atomic import AGAIN, reading
from tinygrad_tf.storage.strict_json import json_object, write_json

SCHEMA_VERSION = 1
POINTER = "latest.json"
CHECKPOINT_NAME = re.compile(r"\d{6,}(-\d+)?")
_DIRECTORY = re.compile("checkpoints/" + CHECKPOINT_NAME.pattern)
CHECKPOINT_FILES = ("model.safetensors", "optimizer.safetensors", "trainer_state.json")


@dataclass(frozen=True)
class Entry:
    """A checkpoint: its directory in the run, and the sha256 of each file by name."""

    dir: str
    sha256: Mapping[str, str]

    @property
    def step(self) -> int:
        """The step after which it was saved."""
        return int(self.dir.removeprefix("checkpoints/").partition("-")[0])


@dataclass(frozen=True)
class Pointer:
    """The checkpoints that are kept; one of them may have two roles."""

    latest: Entry
    previous: Entry | None = None
    best: Entry | None = None

    @property
    def entries(self) -> list[Entry]:
        """The checkpoints in the order latest, previous, best."""
        return [entry for entry in (self.latest, self.previous, self.best) if entry is not None]


class DamagedPointer(InputError):
    """Raised for a pointer that cannot be used; it may be rebuilt from the checkpoints."""


class NewerSchema(InputError):
    """Raised for a file that a newer version of this program wrote; it is not damaged."""


def write_pointer(path: Path, pointer: Pointer, *, again: str = AGAIN) -> None:
    """Write the pointer in one step; raises FailedError, the old one is then intact."""
    write_json(path, {"schema": SCHEMA_VERSION, **asdict(pointer)}, again=again)


def read_pointer(path: Path) -> Pointer | None:
    """Read the pointer, None where there is none.

    Raises DamagedPointer, NewerSchema, or another InputError where the file cannot be read.
    """
    if not path.exists():
        return None
    with reading(path):
        raw = path.read_bytes()
    try:
        return _parse(path, raw)
    except NewerSchema:
        raise
    except InputError as fault:
        raise DamagedPointer(fault.what, fault.next) from fault


def _parse(path: Path, raw: bytes) -> Pointer:
    record = json_object(path, raw)
    check_schema(path, record.get("schema"))
    latest, previous, best = (
        _entry(path, role, record.get(role)) for role in ("latest", "previous", "best")
    )
    if latest is None:
        raise InputError(f"{path} names no latest checkpoint", "restore it from a copy")
    return Pointer(latest, previous, best)


def check_schema(path: Path, version: object) -> None:
    """Raise InputError for no schema version, NewerSchema for one above SCHEMA_VERSION."""
    if type(version) is not int or version < 1:
        raise InputError(f"{path}: {version!r} is not a schema version", "restore it from a copy")
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"{path} has schema version {version}, this program knows up to {SCHEMA_VERSION}",
            "update this program: a newer one wrote the run",
        )


def _entry(path: Path, role: str, value: object) -> Entry | None:
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"dir", "sha256"}:
        directory, digests = value["dir"], value["sha256"]
        if _is_directory(directory) and _are_digests(digests):
            return Entry(directory, digests)
    raise InputError(f"{path}: {role!r} does not name a checkpoint", "restore it from a copy")


def _is_directory(value: object) -> bool:
    """Return whether this is the name of a checkpoint's directory, so inside the run."""
    return isinstance(value, str) and _DIRECTORY.fullmatch(value) is not None


def _are_digests(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == set(CHECKPOINT_FILES)
        and all(isinstance(digest, str) for digest in value.values())
    )
