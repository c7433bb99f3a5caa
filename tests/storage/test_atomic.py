"""Atomic writing: the old file or the new one, and faults reported in full."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.storage import atomic, strict_json


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"one", b"", b"three" * 100_000):
        atomic.write_atomically(path, content)
        assert path.read_bytes() == content
    digest = atomic.write_atomically(path, [b"ab", memoryview(b"cd")])
    assert path.read_bytes() == b"abcd"
    assert digest == atomic.sha256_of(path)
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_fault_of_the_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str, call: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    target = os if call == "fsync" else Path
    with monkeypatch.context() as patch, pytest.raises(FailedError) as caught:
        patch.setattr(target, call, fail)
        atomic.write_atomically(path, b"new")
    assert str(path) in caught.value.what
    assert why in caught.value.what
    assert "nothing that was there is changed" in caught.value.what
    assert caught.value.next
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize("fault", [KeyboardInterrupt, InputError])
def test_an_interrupted_writer_leaves_the_old_file(tmp_path: Path, fault: type) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def pieces() -> Iterator[bytes]:
        yield b"ne"
        raise fault("stop")

    with pytest.raises(fault):
        atomic.write_atomically(path, pieces())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"a"}


def test_a_file_larger_than_the_limit(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "a"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(FailedError, match="larger than is allowed"):
            atomic.write_atomically(path, b"x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"a"}


def test_windows_waits_for_a_scanner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace
    refusals = [True, True, False]

    def held(self: Path, target: Path) -> Path:
        if refusals.pop(0):
            raise PermissionError(errno.EACCES, "held by another process")
        return real(self, target)

    (tmp_path / "new").write_bytes(b"new")
    monkeypatch.setattr(Path, "replace", held)
    monkeypatch.setattr(atomic, "_RENAME_RETRIES", 3)
    atomic.replace(tmp_path / "new", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("links_work", [True, False])
def test_link_or_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links_work: bool) -> None:
    if not links_work:

        def no_link(*_: object) -> None:
            raise OSError(errno.EPERM, "links do not work here")

        monkeypatch.setattr(os, "link", no_link)
    for content in (b"one", b"two"):
        source = tmp_path / content.decode()
        source.write_bytes(content)
        for _ in range(2):
            atomic.link_atomically(source, tmp_path / "name")
        assert (tmp_path / "name").read_bytes() == content
        assert (tmp_path / "name").samefile(source) == links_work
    assert names(tmp_path) == {"one", "two", "name"}


def test_temporary_names_are_recognised(tmp_path: Path) -> None:
    assert atomic.is_temporary(atomic.temporary_beside(tmp_path / "model.safetensors"))
    for name in ("a.tmp", "tmp-1", "my.tmp-notes", "a.tmp-1-zzzzzzzz", "model.safetensors"):
        assert not atomic.is_temporary(tmp_path / name)


# JSON


def test_json_round_trip(tmp_path: Path) -> None:
    value = {"large": 2**200, "pi": 0.1 + 0.2, "text": "é\ud800\n", "list": [None, True, {}]}
    strict_json.write_json(tmp_path / "a", value)
    assert strict_json.read_json(tmp_path / "a") == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"a"])
def test_what_json_cannot_hold(tmp_path: Path, value: object) -> None:
    with pytest.raises(InputError, match="JSON"):
        strict_json.write_json(tmp_path / "a", {"value": value})
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", "line 1 column 1"),
        (b'{"a": 1,\n b}', "line 2 column 2"),
        (b"[1]", "must hold a JSON object and holds a list"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1, "a": 2}', "'a' appears twice"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"[" * 200_000, "too deeply"),
    ],
)
def test_bad_json_is_named(tmp_path: Path, raw: bytes, fault: str) -> None:
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(InputError) as caught:
        strict_json.read_json(tmp_path / "config.json")
    assert "config.json" in caught.value.what
    assert fault in caught.value.what
