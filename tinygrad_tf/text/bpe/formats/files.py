"""Files of tokenizers: read whole, written beside and renamed, never overwritten unasked."""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import FailedError, InputError


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; InputError where there is none."""
    try:
        return path.read_bytes()
    except OSError as fault:
        why = fault.strerror or str(fault)
        raise InputError(f"cannot read {path}: {why}", "check the path") from fault


def read_text(path: Path) -> str:
    """Return the content of a UTF-8 file as it is; InputError names the first bad byte."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise malformed(path, f"byte {fault.start} (line {line}) is not UTF-8") from None


def parse_object(path: Path, text: str) -> dict[str, Any]:
    """Return the JSON object that a text is; InputError for anything else, or a key twice."""
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as fault:
        raise malformed(path, f"it is not JSON ({fault})") from None
    if not isinstance(value, dict):
        raise malformed(path, f"it holds a JSON {type(value).__name__}, not an object")
    return value


def write_files(files: Mapping[Path, bytes], *, force: bool) -> None:
    """Write each file beside its place and rename it; InputError where one is there already.

    FailedError where they cannot be written; files that were there are then intact.
    """
    require_free(files, force=force)
    beside = {
        path: path.with_name(f"{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
        for path in files
    }
    try:
        for path, content in files.items():
            with beside[path].open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, temporary in beside.items():
            temporary.replace(path)
    except OSError as fault:
        raise FailedError(f"cannot write {path}: {fault.strerror or fault}") from fault
    finally:
        for temporary in beside.values():
            with suppress(OSError):
                temporary.unlink()


def require_free(paths: Iterable[Path], *, force: bool) -> None:
    """Raise InputError where one of the files is there already, unless by `force`."""
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        exist = "exists" if len(there) == 1 else "exist"
        raise InputError(f"{' and '.join(there)} {exist} already", "use `force=True` to replace it")


def make_directory(path: Path) -> None:
    """Make a directory unless it is there; FailedError where it cannot be made."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as fault:
        raise FailedError(f"cannot make {path}: {fault.strerror or fault}") from fault


def malformed(path: Path, fault: str) -> InputError:
    """Return the error that a file is not what it should be, and why."""
    return InputError(f"{path} cannot be read as a tokenizer: {fault}", "mend it or write it anew")


def cannot_hold(format: str, fault: str, next: str = "save it as tokenizer.json") -> InputError:
    """Return the error that a format has no place for something in a table."""
    return InputError(f"the {format} format cannot hold this tokenizer: {fault}", next)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"the key {key!r} occurs twice")
        record[key] = value
    return record
