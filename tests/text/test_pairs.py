"""Files of pairs and labels: what they hold, and how each fault is named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.pairs import read_labelled, read_pairs, read_parallel

SIDES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


def write(folder: Path, content: str | bytes, name: str = "some.tsv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(st.lists(st.tuples(SIDES, SIDES), min_size=1), st.sampled_from(["", "\n", "\n\n"]))
def test_pairs_come_back(folder: Path, pairs: list[tuple[str, str]], end: str) -> None:
    content = "\n".join(f" {source}\t{target} " for source, target in pairs) + end
    assert read_pairs(write(folder, content)) == pairs
    sources, targets = ("\n".join(side) for side in zip(*pairs, strict=True))
    one, other = write(folder, sources + end, "one"), write(folder, targets, "other")
    assert read_parallel(one, other) == pairs


def test_a_file_from_windows(folder: Path) -> None:
    path = write(folder, b"\xef\xbb\xbfThe ball\tLa bola\r\nYou are welcome\tDe nada\r\n")
    assert read_pairs(path) == [("The ball", "La bola"), ("You are welcome", "De nada")]


def test_labels_and_texts(folder: Path) -> None:
    path = write(folder, "bad\tso dull\ngood\tso nice\nbad\tawful\ngood\tgreat\n")
    found = read_labelled(path)
    assert [one.label for one in found] == ["bad", "good", "bad", "good"]
    assert found[1].text == "so nice"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a\tb\nc\nd\te", "line 2: 1 column instead of 2"),
        ("a\tb\nc\td\te", "line 2: 3 columns instead of 2"),
        ("a\tb\n\nd\te", "line 2: 1 column instead of 2"),
        ("a\tb\nc\t \n", "line 2: the target is empty"),
        ("\tb\n", "line 1: the source is empty"),
        ("a\tb\nc\td\ne f g h\ti", "line 3: the source has 4 tokens, more than 3"),
        ("a\tb b b b", "line 1: the target has 4 tokens, more than 3"),
        (b"a\tb\nc\t\xe9\n", "is not UTF-8: byte 0xe9 at offset 6, line 2"),
        (b"a\tb\x00", "binary"),
        ("", "is empty"),
        ("\n\n", "only empty lines"),
    ],
)
def test_faults_of_pairs(folder: Path, content: str | bytes, fault: str) -> None:
    path = write(folder, content)
    with pytest.raises(InputError) as caught:
        read_pairs(path, max_length=3)
    assert caught.value.what.startswith(str(path)) and fault in caught.value.what
    assert caught.value.next and caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a\tx\nb\ty\na\tz\nb x\n", "line 4: 1 column instead of 2"),
        ("a\tx\nb\ty\na\tz", "line 2: the label 'b' is seen only once"),
        ("a\tx\na\ty", ": all 2 labels are 'a'"),
        ("\tx", "line 1: the label is empty"),
        ("a\t", "line 1: the text is empty"),
        ("a\tx x x x", "line 1: the text has 4 tokens, more than 3"),
    ],
)
def test_faults_of_labels(folder: Path, content: str, fault: str) -> None:
    path = write(folder, content)
    with pytest.raises(InputError) as caught:
        read_labelled(path, max_length=3)
    assert caught.value.what.startswith(str(path)) and fault in caught.value.what
    assert caught.value.next


def test_faults_of_two_files(folder: Path) -> None:
    one, other = write(folder, "a\nb\n", "one"), write(folder, "c\n", "other")
    with pytest.raises(InputError, match=r"one has 2 lines and .*other has 1"):
        read_parallel(one, other)
    write(folder, "c\n \n", "other")
    with pytest.raises(InputError, match="other, line 2: the target is empty"):
        read_parallel(one, other)


def test_length_is_what_it_is_told_to_be(folder: Path) -> None:
    path = write(folder, "abc\td")
    assert read_pairs(path, max_length=1) == [("abc", "d")]
    with pytest.raises(InputError, match="the source has 3 tokens, more than 2"):
        read_pairs(path, max_length=2, length=len)


def test_no_file(folder: Path) -> None:
    for read in (read_pairs, read_labelled):
        with pytest.raises(InputError, match="there is no file"):
            read(folder / "none.tsv")
