"""Files to text: UTF-8 in constant memory, with every fault named by file, byte and line."""

import codecs
import difflib
import hashlib
import io
import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tinygrad_tf.errors import InputError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

CHUNK_BYTES = 1 << 18  # a chunk, its code points and its ids all stay in the second-level cache

_BOM = "\ufeff"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class TextReport:
    """A report on one whole reading of a text.

    `bytes` and `sha256` are of the raw bytes, with the newlines put between files; `chars`
    counts the characters given out. `crlf_count` and `cr_count` count CRLF and lone CR.
    """

    files: tuple[str, ...]
    bytes: int
    chars: int
    had_bom: bool
    crlf_count: int
    cr_count: int
    newlines_kept: bool
    sha256: str

    def notes(self) -> list[str]:
        """Say in one line each what differs between the text and the bytes on the disk."""
        notes = []
        if self.had_bom:
            notes.append("dropped the byte order mark at the start of the text")
        fate = "kept as they are" if self.newlines_kept else "read as \\n"
        for count, name in ((self.crlf_count, "CRLF"), (self.cr_count, "lone CR")):
            if count:
                notes.append(f"{count:,} {name} line ends {fate}")
        return notes


class TextSource(Protocol):
    """A text that can be read more than once, in chunks, and says what it is."""

    def __iter__(self) -> Iterator[str]: ...

    @property
    def report(self) -> TextReport:
        """The report on the first whole reading."""
        ...


class StringSource:
    """A text in memory, given out unchanged; `name` stands where a file's name would."""

    def __init__(self, text: str, name: str = "text", *, chunk_chars: int = CHUNK_BYTES) -> None:
        self.text = text
        self.name = name
        self._chunk_chars = chunk_chars
        self._report: TextReport | None = None

    def __iter__(self) -> Iterator[str]:
        """Give out the text in chunks; InputError when it is empty."""
        if not self.text:
            raise InputError(f"{self.name} is empty", "give a text with at least one character")
        for start in range(0, len(self.text), self._chunk_chars):
            yield self.text[start : start + self._chunk_chars]

    @property
    def report(self) -> TextReport:
        """Counts of the text and the sha256 of its UTF-8 bytes."""
        if self._report is None:
            tally = _Tally()
            for chunk in self:
                tally.add(chunk.encode("utf-8", "surrogatepass"))
                tally.chars += len(chunk)
            self._report = tally.report((self.name,), newlines_kept=True)
        return self._report


class FileSource:
    """One or several UTF-8 files, in order, as one text read in constant memory.

    A byte order mark at the start of a file is dropped. CRLF and lone CR become a newline,
    unless `keep_newlines`. A newline is put between two files when the first does not end
    with one. Nothing is opened before the text is first read.
    """

    def __init__(
        self, paths: Paths, *, keep_newlines: bool = False, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        several = [paths] if isinstance(paths, str | os.PathLike) else paths
        self.paths = tuple(Path(path) for path in several)
        self.keep_newlines = keep_newlines
        self._chunk_bytes = chunk_bytes
        self._report: TextReport | None = None

    def __iter__(self) -> Iterator[str]:
        """Read the text from its start; InputError names what is wrong with a file."""
        if not self.paths:
            raise InputError("no text file was given", "name at least one file")
        for path in self.paths:
            _check_file(path)
        tally = _Tally()
        for position, path in enumerate(self.paths):
            if position and not tally.ended_line:
                tally.add(b"\n")
                tally.chars += 1
                yield "\n"
            yield from _read_file(path, tally, self.keep_newlines, self._chunk_bytes)
        self._remember(tally.report(tuple(map(str, self.paths)), newlines_kept=self.keep_newlines))

    def _remember(self, report: TextReport) -> None:
        if self._report is not None and report != self._report:
            raise InputError(
                f"{', '.join(report.files)} changed while being read",
                "start again when nothing writes to the text",
            )
        self._report = report

    @property
    def report(self) -> TextReport:
        """The report on the first whole reading; reads the text now if it has not been read."""
        if self._report is None:
            for _ in self:
                pass
        assert self._report is not None  # a whole reading has set it
        return self._report


def stream_text(
    paths: Paths, *, keep_newlines: bool = False, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[str]:
    """Yield the text of the files in chunks, as `FileSource` reads them."""
    return iter(FileSource(paths, keep_newlines=keep_newlines, chunk_bytes=chunk_bytes))


def read_text(paths: Paths, *, keep_newlines: bool = False) -> tuple[str, TextReport]:
    """Return the whole text of the files, as `FileSource` reads them, and the report on it."""
    source = FileSource(paths, keep_newlines=keep_newlines)
    return "".join(source), source.report


class _Tally:
    """Counts and hash of the bytes of one reading; `offset` and `lines` are of one file."""

    def __init__(self) -> None:
        self.bytes = 0
        self.chars = 0
        self.had_bom = False
        self.crlf = 0
        self.cr = 0
        self._sha256 = hashlib.sha256()
        self.start_file()

    def start_file(self) -> None:
        """Begin to count offsets and lines anew."""
        self.offset = 0
        self.lines = 0
        self._last = b""

    def add(self, data: bytes) -> None:
        """Count the next stretch of raw bytes."""
        self._sha256.update(data)
        self.bytes += len(data)
        self.offset += len(data)
        self.count_lines(data)

    def count_lines(self, data: bytes) -> None:
        """Count only the line ends of the next stretch; a CRLF may be cut between two."""
        cr = data.count(b"\r")
        crlf = data.count(b"\r\n") + (self._last == b"\r" and data.startswith(b"\n"))
        self.cr += cr
        self.crlf += crlf
        self.lines += data.count(b"\n") + cr - crlf
        self._last = data[-1:] or self._last

    @property
    def ended_line(self) -> bool:
        """True if the last byte ended a line."""
        return self._last in (b"\n", b"\r")

    def report(self, files: tuple[str, ...], *, newlines_kept: bool) -> TextReport:
        """Close the counts."""
        return TextReport(
            files=files,
            bytes=self.bytes,
            chars=self.chars,
            had_bom=self.had_bom,
            crlf_count=self.crlf,
            cr_count=self.cr - self.crlf,
            newlines_kept=newlines_kept,
            sha256=self._sha256.hexdigest(),
        )


def _read_file(path: Path, tally: _Tally, keep_newlines: bool, chunk_bytes: int) -> Iterator[str]:
    """Yield the text of one file and add it to the tally."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    chars_before = tally.chars
    at_start = True
    tally.start_file()
    for data in _blocks(path, chunk_bytes):
        if b"\0" in data or (tally.offset == 0 and data.startswith(_UTF16_MARKS)):
            raise _not_text(path, data, tally.offset)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            raise _bad_byte(path, fault, data, tally) from None
        tally.add(data)
        if at_start and text:
            at_start = False
            tally.had_bom |= text.startswith(_BOM)
            text = text.removeprefix(_BOM)
        if not keep_newlines:
            text = newlines.decode(text, final=not data)
        tally.chars += len(text)
        if text:
            yield text
    if tally.chars == chars_before:
        raise InputError(f"{path} is empty", "give a file with text in it")


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks, and an empty block at its end."""
    try:
        with path.open("rb") as file:
            while data := file.read(size):
                yield data
    except OSError as fault:
        raise _unreadable(path, fault) from fault
    yield b""


def _check_file(path: Path) -> None:
    """Raise InputError unless `path` is a regular file, which can be read twice."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path}", _similar_name(path)) from None
    except OSError as fault:
        raise _unreadable(path, fault) from fault
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory", "name the text files in it")
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{path} is a pipe or a device, and the text is read more than once",
            "save it to a file and name that",
        )


def _similar_name(path: Path) -> str:
    try:
        neighbours = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        neighbours = []
    close = difflib.get_close_matches(path.name, neighbours, n=1)
    return f"did you mean {path.with_name(close[0])}?" if close else "check the path"


def _unreadable(path: Path, fault: OSError) -> InputError:
    return InputError(
        f"cannot read {path}: {fault.strerror or fault}", "check the path and its permissions"
    )


def _not_text(path: Path, data: bytes, offset: int) -> InputError:
    if offset == 0 and data.startswith(_UTF16_MARKS):
        return InputError(f"{path} is UTF-16, not UTF-8", _convert("utf-16", path))
    return InputError(
        f"{path} looks binary: it has a NUL byte at offset {offset + data.index(0)}",
        "give a plain text file in UTF-8",
    )


def _bad_byte(path: Path, fault: UnicodeDecodeError, data: bytes, tally: _Tally) -> InputError:
    # The decoder may still have held the head of a character from the block before.
    offset = tally.offset - (len(fault.object) - len(data)) + fault.start
    tally.count_lines(fault.object[: fault.start])
    return InputError(
        f"{path} is not UTF-8: byte 0x{fault.object[fault.start]:02x} at offset {offset}, "
        f"line {tally.lines + 1} ({fault.reason})",
        f"if it is Latin-1, {_convert('latin1', path)}",
    )


def _convert(encoding: str, path: Path) -> str:
    target = path.with_name(f"{path.stem}-utf8{path.suffix}")
    names = f"{shlex.quote(str(path))} > {shlex.quote(str(target))}"
    return f"convert it with: iconv -f {encoding} -t utf-8 {names}"
