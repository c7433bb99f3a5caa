"""Reading: the same text however it is cut into chunks, and one clear line for every fault."""

import hashlib
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.reading import FileSource, StringSource, read_text, stream_text

MARK = "\ufeff"
texts = st.text(
    st.one_of(
        st.sampled_from("\r\n\ufeffaé€😀"), st.characters(codec="utf-8", exclude_characters="\0")
    )
)


def write(directory: Path, data: bytes, name: str = "book.txt") -> Path:
    path = directory / name
    path.write_bytes(data)
    return path


def fault(path: object) -> str:
    with pytest.raises(InputError) as caught:
        read_text(path)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    message = str(caught.value)
    assert "\n" not in message
    return message


@given(texts, st.integers(1, 9))
def test_chunk_borders_change_nothing(tmp_path_factory, text, chunk_bytes):
    path = write(tmp_path_factory.mktemp("text"), b"start" + text.encode())
    expected = "start" + text.replace("\r\n", "\n").replace("\r", "\n")
    source = FileSource(path, chunk_bytes=chunk_bytes)
    assert "".join(source) == expected
    assert source.report.chars == len(expected)
    assert source.report.crlf_count == text.count("\r\n")
    assert source.report.cr_count == text.count("\r") - text.count("\r\n")


@given(texts, st.integers(1, 9))
def test_newlines_are_kept_on_demand(tmp_path_factory, text, chunk_bytes):
    path = write(tmp_path_factory.mktemp("text"), b"start" + text.encode())
    assert "".join(stream_text(path, keep_newlines=True, chunk_bytes=chunk_bytes)) == "start" + text


def test_mark_and_line_ends_are_dropped_and_reported(tmp_path):
    data = (MARK + "one\r\ntwo\rthree\n").encode()
    text, report = read_text(write(tmp_path, data))
    assert text == "one\ntwo\nthree\n"
    assert (report.had_bom, report.crlf_count, report.cr_count) == (True, 1, 1)
    assert (report.bytes, report.chars) == (len(data), len(text))
    assert report.sha256 == hashlib.sha256(data).hexdigest()
    assert len(report.notes()) == 3


@pytest.mark.parametrize("chunk_bytes", [1, 3, 4, 1 << 18])
def test_only_a_mark_at_the_start_is_dropped(tmp_path, chunk_bytes):
    source = FileSource(write(tmp_path, f"{MARK}{MARK}a{MARK}".encode()), chunk_bytes=chunk_bytes)
    assert "".join(source) == f"{MARK}a{MARK}"


def test_clean_text_has_no_notes(tmp_path):
    assert read_text(write(tmp_path, "naïve\n".encode()))[1].notes() == []


def test_three_characters_are_a_text(tmp_path):
    assert read_text(write(tmp_path, b"abc"))[0] == "abc"


def test_files_are_joined_in_order_with_a_newline_where_one_lacks(tmp_path):
    first = write(tmp_path, (MARK + "b").encode(), "1")
    second = write(tmp_path, (MARK + "a\r\n").encode(), "2")
    third = write(tmp_path, b"\nc", "3")
    text, report = read_text([first, str(second), third])
    assert text == "b\na\n\nc"
    assert report.files == (str(first), str(second), str(third))
    raw = first.read_bytes() + b"\n" + second.read_bytes() + third.read_bytes()
    assert report.sha256 == hashlib.sha256(raw).hexdigest()
    assert report.bytes == len(raw)


def test_a_cr_and_an_lf_in_different_files_are_two_line_ends(tmp_path):
    paths = [write(tmp_path, b"a\r", "1"), write(tmp_path, b"\nb", "2")]
    text, report = read_text(paths)
    assert text == "a\n\nb"
    assert (report.crlf_count, report.cr_count) == (0, 1)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 1 << 18])
@pytest.mark.parametrize(
    ("data", "byte", "offset", "line"),
    [
        (b"caf\xe9 noir", "0xe9", 3, 1),
        ("é€\n\r\nü\r".encode() + b"ab\xff", "0xff", 13, 4),
        (b"\xef\xbb\xbfab\n\x80", "0x80", 6, 2),
        ("ab\n😀".encode()[:-1], "0xf0", 3, 2),
        (b"\xe2\x82a", "0xe2", 0, 1),
    ],
)
def test_bad_byte_is_named_by_offset_and_line(tmp_path, data, byte, offset, line, chunk_bytes):
    path = write(tmp_path, data)
    with pytest.raises(InputError) as caught:
        list(stream_text(path, chunk_bytes=chunk_bytes))
    assert f"{path} is not UTF-8: byte {byte} at offset {offset}, line {line} " in str(caught.value)
    assert "iconv -f latin1 -t utf-8" in caught.value.next


def test_offset_counts_from_the_start_of_its_own_file(tmp_path):
    good = write(tmp_path, b"one\ntwo\n", "good")
    bad = write(tmp_path, b"a\n\xe9", "bad")
    assert f"{bad} is not UTF-8: byte 0xe9 at offset 2, line 2" in fault([good, bad])


def test_binary_is_named(tmp_path):
    assert "looks binary: it has a NUL byte at offset 0" in fault(write(tmp_path, bytes(100)))
    path = write(tmp_path, b"a" * 300_000 + b"\0" + b"\xff")
    assert "NUL byte at offset 300000" in fault(path)


def test_utf16_is_named(tmp_path):
    message = fault(write(tmp_path, "hello".encode("utf-16")))
    assert "is UTF-16" in message
    assert "iconv -f utf-16" in message


@pytest.mark.parametrize("data", [b"", MARK.encode()])
def test_empty_file_is_named(tmp_path, data):
    path = write(tmp_path, data)
    assert f"{path} is empty" in fault(path)
    assert f"{path} is empty" in fault([write(tmp_path, b"full", "full"), path])


def test_missing_file_and_directory_are_named(tmp_path):
    write(tmp_path, b"text", "shakespeare.txt")
    assert "did you mean" in fault(tmp_path / "shakespear.txt")
    assert f"no file {tmp_path / 'x' / 'y'}" in fault(tmp_path / "x" / "y")
    assert "no file" in fault(tmp_path / "shakespeare.txt" / "below")
    assert f"{tmp_path} is a directory" in fault(tmp_path)
    assert "no text file" in fault([])


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind here"
)
def test_forbidden_file_is_named(tmp_path):
    path = write(tmp_path, b"text")
    path.chmod(0)
    assert f"cannot read {path}" in fault(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe or a device" in fault(tmp_path / "pipe")


def test_text_that_changes_between_readings_is_refused(tmp_path):
    path = write(tmp_path, b"before")
    source = FileSource(path)
    first = source.report
    assert "".join(source) == "before"
    assert source.report == first
    path.write_bytes(b"after!")
    with pytest.raises(InputError, match="changed"):
        list(source)


def test_a_reading_left_early_reports_nothing_false(tmp_path):
    source = FileSource(write(tmp_path, b"0123456789"), chunk_bytes=4)
    next(iter(source))
    assert source.report.chars == 10


def test_memory_does_not_grow_with_the_file(tmp_path):
    line = "Ein paar Wörter in jeder Zeile.\r\n".encode()
    path = write(tmp_path, line * (20_000_000 // len(line)))
    tracemalloc.start()
    try:
        count = sum(map(len, FileSource(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 18_000_000
    assert peak < 4_000_000


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 9))
def test_string_source_gives_its_text_and_hash(text, chunk_chars):
    source = StringSource(text, "poem", chunk_chars=chunk_chars)
    assert "".join(source) == text
    assert source.report.files == ("poem",)
    assert source.report.chars == len(text)
    assert source.report.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_empty_string_is_refused():
    with pytest.raises(InputError, match="poem is empty"):
        list(StringSource("", "poem"))
