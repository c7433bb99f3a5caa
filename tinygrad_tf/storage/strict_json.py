"""Strict JSON: UTF-8, no NaN, no key twice; written atomically."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.atomic import AGAIN, PathLike, check_sha256, reading, write_atomically


def parse_json(raw: bytes) -> Any:
    """Parse strict JSON; raises ValueError, which says what is wrong and where."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from error
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"the key {key!r} appears twice")
        record[key] = value
    return record


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return strict JSON in ASCII; raises InputError for what JSON cannot hold (NaN, arrays)."""
    try:
        # ASCII, so that file names which are not valid Unicode come back as they went.
        return json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this cannot be stored as JSON: {error}") from error


def write_json(path: PathLike, value: object, *, again: str = AGAIN) -> str:
    """Write a JSON file atomically and return its sha256; raises InputError, FailedError."""
    return write_atomically(path, (to_json(value, indent=2) + "\n").encode("ascii"), again=again)


def read_json(path: PathLike, *, sha256: str | None = None) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises InputError where it is missing, is not a JSON object or has not the given `sha256`.
    """
    path = Path(path)
    with reading(path):
        raw = path.read_bytes()
    value = json_object(path, raw)
    if sha256 is not None:
        check_sha256(path, hashlib.sha256(raw).hexdigest(), sha256)
    return value


def json_object(path: Path, raw: bytes) -> dict[str, Any]:
    """Parse the content of the file `path`; raises InputError where it is no JSON object."""
    try:
        value = parse_json(raw)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}", "restore or mend it") from error
    if not isinstance(value, dict):
        raise InputError(
            f"{path} must hold a JSON object and holds a {type(value).__name__}",
            "restore or mend it",
        )
    return value


def append_json_line(path: PathLike, record: Mapping[str, object]) -> None:
    """Append one object as a line and flush it; numbers that are not finite become null.

    OSError passes through.
    """
    line = (to_json(_finite(record)) + "\n").encode("ascii")
    with Path(path).open("ab") as file:
        file.write(line)


def _finite(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def read_json_lines(path: PathLike) -> list[dict[str, Any]]:
    """Read the objects of a JSON Lines file: none where there is no file.

    A last line without its end is what a crash leaves: it is skipped.
    Raises InputError naming any other line that is not a JSON object.
    """
    path = Path(path)
    if not path.exists():
        return []
    with reading(path):
        lines = path.read_bytes().split(b"\n")[:-1]
    return [_parse_line(path, number, line) for number, line in enumerate(lines, 1)]


def _parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: {error}", "remove or mend that line") from error
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: not a JSON object", "remove or mend that line")
    return record


def keep_json_lines(path: PathLike, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite a JSON Lines file with the wanted objects alone; raises InputError, FailedError."""
    path = Path(path)
    if path.exists():
        lines = [to_json(record) + "\n" for record in read_json_lines(path) if wanted(record)]
        write_atomically(path, "".join(lines).encode("ascii"))
