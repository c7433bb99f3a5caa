"""Files of pairs and of labelled texts, with every fault named by file and line."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.reading import read_text

PathLike = str | os.PathLike[str]
Length = Callable[[str], int]


class TextPair(NamedTuple):
    """A text and its translation, or whatever else it is to become."""

    source: str
    target: str


class LabelledText(NamedTuple):
    """A text and its class."""

    label: str
    text: str


def count_words(text: str) -> int:
    """Return the number of words, separated by whitespace."""
    return len(text.split())


def read_pairs(
    path: PathLike, *, max_length: int | None = None, length: Length = count_words
) -> list[TextPair]:
    """Read `source<TAB>target` lines; spaces around either are dropped.

    `max_length` bounds the `length` of each side. InputError names file and line where there is
    not one tab, a side is empty or too long, or the bytes are not UTF-8.
    """
    pairs = []
    for number, line in _lines(path):
        pair = TextPair(*_columns(path, number, line, "source<TAB>target"))
        for side, text in zip(pair._fields, pair, strict=True):
            _check_side(path, number, side, text, max_length, length)
        pairs.append(pair)
    return pairs


def read_parallel(
    source_path: PathLike,
    target_path: PathLike,
    *,
    max_length: int | None = None,
    length: Length = count_words,
) -> list[TextPair]:
    """Read two files of which the n-th lines belong together, as `read_pairs` does one.

    InputError also where they have not the same number of lines.
    """
    sources, targets = list(_lines(source_path)), list(_lines(target_path))
    if len(sources) != len(targets):
        raise InputError(
            f"{source_path} has {len(sources)} lines and {target_path} has {len(targets)}",
            "give each line of the one its line in the other",
        )
    pairs = []
    for (number, source), (_, target) in zip(sources, targets, strict=True):
        pair = TextPair(source.strip(), target.strip())
        _check_side(source_path, number, "source", pair.source, max_length, length)
        _check_side(target_path, number, "target", pair.target, max_length, length)
        pairs.append(pair)
    return pairs


def read_labelled(
    path: PathLike, *, max_length: int | None = None, length: Length = count_words
) -> list[LabelledText]:
    """Read `label<TAB>text` lines; spaces around either are dropped.

    `max_length` bounds the `length` of the text. InputError names file and line where there is not
    one tab, a side is empty, a text too long, a label seen only once, or the bytes are not UTF-8;
    and the file where all labels are the same.
    """
    found, first = [], dict[str, int]()
    for number, line in _lines(path):
        one = LabelledText(*_columns(path, number, line, "label<TAB>text"))
        _check_side(path, number, "label", one.label, None, length)
        _check_side(path, number, "text", one.text, max_length, length)
        first.setdefault(one.label, number)
        found.append(one)
    counts = Counter(one.label for one in found)
    for label, count in counts.items():
        if count == 1:
            raise InputError(
                f"{path}, line {first[label]}: the label {label!r} is seen only once",
                "give each label at least two texts, one to learn from and one to test with; "
                "or mend its spelling",
            )
    if len(counts) == 1:
        raise InputError(
            f"{path}: all {len(found)} labels are {found[0].label!r}", "give at least two classes"
        )
    return found


def _lines(path: PathLike) -> list[tuple[int, str]]:
    """The lines with their numbers from 1; empty ones at the end of the file are no lines."""
    text, _ = read_text(Path(path))
    lines = text.rstrip("\n").split("\n")
    if lines == [""]:
        raise InputError(f"{path} has only empty lines", "give a file with text in it")
    return list(enumerate(lines, 1))


def _columns(path: PathLike, number: int, line: str, form: str) -> tuple[str, str]:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 2:
        found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        raise InputError(
            f"{path}, line {number}: {found} instead of 2", f"write each line as {form}"
        )
    return columns[0], columns[1]


def _check_side(
    path: PathLike, number: int, side: str, text: str, max_length: int | None, length: Length
) -> None:
    if not text:
        raise InputError(
            f"{path}, line {number}: the {side} is empty", "write it, or drop the line"
        )
    if max_length is not None and (count := length(text)) > max_length:
        raise InputError(
            f"{path}, line {number}: the {side} has {count} tokens, more than {max_length}",
            "shorten it, drop the line, or raise the limit",
        )
