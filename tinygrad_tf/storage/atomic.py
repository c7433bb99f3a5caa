"""Atomic writing: at any time a file has its old content or its new one, never half of each."""

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tinygrad_tf.errors import FailedError, InputError

PathLike = str | os.PathLike[str]
Content = bytes | Iterable[bytes | memoryview]

_TEMPORARY = re.compile(r".+\.tmp-\d+-[0-9a-f]{8}")
_RENAME_RETRIES = 7 if os.name == "nt" else 0
AGAIN = "then run the command again"
_FAULTS = {
    "ENOSPC": ("the disk is full", "free some space, {again}"),
    "EDQUOT": ("your disk quota is used up", "free some space, {again}"),
    "EFBIG": ("the file would be larger than is allowed here", "raise the limit, {again}"),
    "EACCES": ("permission denied", "choose a directory that you may write to"),
    "EPERM": ("permission denied", "choose a directory that you may write to"),
    "EROFS": ("the file system is read-only", "choose a directory that you may write to"),
    "ENOENT": ("its directory does not exist", "make it, {again}"),
    "EISDIR": ("a directory has that name", "move it away, {again}"),
    "ENAMETOOLONG": ("its name is too long", "choose a shorter one"),
}


@contextmanager
def writing(
    path: PathLike, intact: str = "nothing that was there is changed", *, again: str = AGAIN
) -> Iterator[None]:
    """Turn an OSError inside into a FailedError: what, why, what is `intact`, what to do.

    `again` says how to try once more after that.
    """
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "")
        why, remedy = _FAULTS.get(name, (error.strerror or str(error), "mend that, {again}"))
        remedy = remedy.replace("{again}", again)
        raise FailedError(f"cannot write {os.fspath(path)}: {why} ({intact})", remedy) from error


def in_short(error: OSError) -> str:
    """Return the file of an error and its cause in words, without the system's number."""
    path = error.filename2 or error.filename
    why = error.strerror or str(error)
    return why if path is None else f"{path}: {why}"


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn an OSError inside into an InputError that names the file and says why."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{os.fspath(path)} does not exist", "check the path") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"cannot read {os.fspath(path)}: {why}", "check the path") from error


def write_atomically(path: PathLike, content: Content, *, again: str = AGAIN) -> str:
    """Put new content in a file's place in one step and return its sha256.

    `content` is bytes, or an iterable of pieces for what should not be held twice in memory.
    Written beside, forced to the disk, renamed: a crash leaves the old file or the new one.
    Raises FailedError where it cannot be written; the old file is then intact.
    """
    path = Path(path)
    temporary = temporary_beside(path)
    with writing(path, again=again):
        try:
            digest = write_synced(temporary, content)
            replace(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink()
        sync_directory(path.parent)
    return digest


def write_synced(path: Path, content: Content) -> str:
    """Write a file that must not exist yet, force it to the disk, return its sha256."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for piece in (content,) if isinstance(content, bytes) else content:
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def publish_directory(temporary: Path, path: Path) -> None:
    """Give a finished directory its name, which must be free, and force both to the disk."""
    sync_directory(temporary)
    replace(temporary, path)
    sync_directory(path.parent)


def link_atomically(source: Path, path: Path) -> None:
    """Make `path` a second name of `source`, or a copy of it where links do not work."""
    temporary = temporary_beside(path)
    try:
        try:
            os.link(source, temporary)
        except OSError:
            with source.open("rb") as file:
                write_synced(temporary, iter(lambda: file.read(1 << 20), b""))
        replace(temporary, path)
    finally:
        with suppress(OSError):  # renaming a file's name onto another name of it leaves both
            temporary.unlink()


def replace(source: Path, target: Path) -> None:
    """Rename; on Windows try again for a while, since a virus scanner may hold the file."""
    for attempt in range(_RENAME_RETRIES):
        try:
            source.replace(target)
            return
        except PermissionError:
            time.sleep(0.01 * 2**attempt)
    source.replace(target)


def sync_directory(path: Path) -> None:
    """Force a directory's names to the disk, on systems where a directory can be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(descriptor)


def temporary_beside(path: Path) -> Path:
    """Return an unused name beside `path`, which `is_temporary` recognises after a crash."""
    return path.with_name(f"{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")


def is_temporary(path: Path) -> bool:
    """Return whether a name is one of `temporary_beside`."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove(path: Path) -> None:
    """Remove a file or a whole directory; raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def sha256_of(path: Path) -> str | None:
    """Return the sha256 of a file, None where there is none to read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def same_content(path: Path, other: Path) -> bool:
    """Return whether two files have the same bytes; False where one is missing."""
    try:
        if path.samefile(other):
            return True
        if path.stat().st_size != other.stat().st_size:
            return False
    except OSError:
        return False
    return sha256_of(path) == sha256_of(other)


def check_sha256(path: Path, actual: str, recorded: str) -> None:
    """Raise InputError where a file is not the one whose digest was recorded."""
    if actual != recorded:
        raise InputError(
            f"{path} has been altered or damaged: its sha256 is {actual[:12]}..., "
            f"{recorded[:12]}... was recorded when it was written",
            "restore it from a copy",
        )
