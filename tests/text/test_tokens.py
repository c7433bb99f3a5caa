"""Token files: every token of the text in one split, in order, and every fault named."""

import json
import re
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.held_out import train_size
from tinygrad_tf.text.reading import FileSource, StringSource
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer
from tinygrad_tf.text.tokens import build_tokens, open_tokens, token_dtype

BYTES = ByteTokenizer()
fractions = st.floats(0.001, 0.999)


def build(directory, text, tokenizer=BYTES, chunk_chars=1 << 18, **options):
    source = StringSource(text, chunk_chars=chunk_chars)
    return build_tokens(source, tokenizer, directory, **options)


def documents(split, tokenizer=BYTES):
    """The documents of a split, each with its two boundaries."""
    spans = pairwise(split.starts)
    return [tokenizer.decode(split.tokens[first : last + 1]) for first, last in spans]


@given(st.text(min_size=1), fractions, st.integers(1, 5))
def test_the_splits_are_the_text_cut_once(tmp_path_factory, text, fraction, chunk_chars):
    data = build(
        tmp_path_factory.mktemp("run"), text, val_fraction=fraction, chunk_chars=chunk_chars
    )
    whole = BYTES.encode(text)
    assert np.array_equal(np.concatenate([data.train.tokens, data.val.tokens]), whole)
    assert abs(len(data.val.tokens) - fraction * len(whole)) <= 1
    assert data.train.chars + data.val.chars == len(text)
    assert data.val.chars == BYTES.count_chars(data.val.tokens)


lines = st.lists(st.text(st.sampled_from("abé \t\u2028")), max_size=12)


@given(lines, fractions, st.integers(0, 99), st.integers(1, 5), st.booleans())
def test_line_mode_deals_every_document_once(
    tmp_path_factory, lines, fraction, seed, chunk_chars, final_newline
):
    text = "\n".join(lines) + "\n" * final_newline
    wanted = [line for line in lines if line.strip()]
    folder = tmp_path_factory.mktemp("run")
    options = {"val_fraction": fraction, "lines": True, "seed": seed, "chunk_chars": chunk_chars}
    if len(wanted) < 2:
        if text:
            with pytest.raises(InputError, match="needs 2"):
                build(folder, text, **options)
        return
    data = build(folder, text, **options)
    train, val = documents(data.train), documents(data.val)
    assert sorted(train + val) == sorted(f"\n{line}\n" for line in wanted)
    expected = max(1, round(len(wanted) * fraction))
    assert len(val) == min(expected, len(wanted) - 1)
    for split in (train, val):  # the order of the text is kept: a split is a subsequence of it
        remaining = iter(wanted)
        assert all(document[1:-1] in remaining for document in split)
    assert data.train.chars == sum(map(len, train)) - (len(train) - 1)


def test_line_mode_depends_on_the_seed_alone(tmp_path):
    text = "\n".join(map(str, range(100)))
    first, again, other = (
        documents(build(tmp_path / name, text, lines=True, seed=seed).val)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_known_split_of_shakespeare(tmp_path, shared_data):
    source = FileSource(shared_data / "tinyshakespeare.txt")
    data = build_tokens(source, CharTokenizer.from_text(source), tmp_path)
    assert (len(data.train.tokens), len(data.val.tokens)) == (1_003_854, 111_540)
    assert data.vocab_size == 65
    assert data.text_sha256 == source.report.sha256


def test_known_split_of_names(tmp_path, shared_data):
    source = FileSource(shared_data / "names.txt")
    data = build_tokens(source, CharTokenizer.from_text(source), tmp_path, lines=True)
    assert data.vocab_size == 27
    assert (len(data.train.starts) - 1, len(data.val.starts) - 1) == (28_830, 3_203)
    assert data.train.targets + data.val.targets == 228_146


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_round_fractions_of_round_numbers_lose_no_token(fraction):
    assert train_size(10, fraction) == 10 - round(10 * fraction)


@pytest.mark.parametrize(
    ("vocab_size", "name"),
    [(2, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")],
)
def test_smallest_type_that_holds_every_id(vocab_size, name):
    assert token_dtype(vocab_size).name == name


def test_large_vocabulary_is_stored_whole(tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    data = build(tmp_path, text, CharTokenizer.from_text(text))
    assert data.train.tokens.dtype == np.uint16
    assert data.val.tokens[-1] == 299


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5, float("nan"), float("inf")])
def test_fractions_out_of_range_are_refused(tmp_path, fraction):
    with pytest.raises(InputError, match=r"`val_fraction=0\.1`"):
        build(tmp_path, "text", val_fraction=fraction)


def test_negative_seed_is_refused(tmp_path):
    with pytest.raises(InputError, match="seed"):
        build(tmp_path, "a\nb", lines=True, seed=-1)


@pytest.mark.parametrize(
    ("text", "lines", "position"), [("ab" * 50 + "é", False, 100), ("a\n\n \nb\nbé\n", True, 8)]
)
def test_unknown_character_is_placed_in_the_whole_text(tmp_path, text, lines, position):
    tokenizer = CharTokenizer("\n ab")
    with pytest.raises(InputError, match=rf"U\+00E9, position {position},"):
        build(tmp_path, text, tokenizer, lines=lines, chunk_chars=7)


@pytest.mark.parametrize(
    ("size", "block_size", "fraction", "message"),
    [
        (
            410,
            64,
            0.1,
            "the validation split has 41 tokens and needs block_size + 1 = 65; "
            "use `block_size=32` or `val_fraction=0.16`",
        ),
        (400, 64, 0.9, "the training split has 40 tokens and needs block_size + 1 = 65; use "),
        (60, 64, 0.2, "splits have 48 and 12 tokens and need block_size + 1 = 65"),
        (3, 64, 0.1, "give a text of at least 130 tokens"),
        (1, 64, 0.5, "splits have 0 and 1 tokens"),
    ],
)
def test_too_short_splits_say_the_numbers_and_the_way_out(
    tmp_path, size, block_size, fraction, message
):
    data = build(tmp_path, "x" * size, val_fraction=fraction)
    with pytest.raises(InputError) as caught:
        data.require(block_size)
    assert message in str(caught.value)


@given(st.integers(1, 400), st.integers(1, 70), fractions)
def test_every_way_out_works(tmp_path_factory, size, block_size, fraction):
    folder = tmp_path_factory.mktemp("run")
    data = build(folder, "x" * size, val_fraction=fraction)
    try:
        data.require(block_size)
    except InputError as fault:
        for field, value in re.findall(r"`(\w+)=([\d.]+)`", fault.next):
            if field == "block_size":
                data.require(int(value))
            else:
                build(folder, "x" * size, val_fraction=float(value)).require(block_size)
    else:
        assert min(len(data.train.tokens), len(data.val.tokens)) > block_size


def test_documents_are_never_too_short(tmp_path):
    build(tmp_path, "a\nb\n", lines=True).require(1024)


def test_a_text_that_grows_while_it_is_read_is_refused(tmp_path):
    class Growing(StringSource):
        def __iter__(self):
            self.text += "c\n"
            return super().__iter__()

    with pytest.raises(InputError, match="changed"):
        build_tokens(Growing("a\nb\n"), BYTES, tmp_path, lines=True)


def test_tokens_are_mapped_and_cannot_be_written(tmp_path):
    data = build(tmp_path, "text " * 9)
    with pytest.raises(ValueError, match="read-only"):
        data.train.tokens[0] = 1


def test_another_tokenizer_is_refused(tmp_path):
    build(tmp_path, "abc", CharTokenizer("abc"))
    with pytest.raises(InputError, match="another tokenizer"):
        open_tokens(tmp_path, CharTokenizer("abcd"))


def test_files_of_another_length_are_refused(tmp_path):
    build(tmp_path, "one\ntwo\nthree\n", lines=True)
    for name in ("train.bin", "val.bin", "train.starts", "val.starts"):
        whole = (tmp_path / name).read_bytes()
        for changed in (whole[:-1], whole + b"x", b""):
            (tmp_path / name).write_bytes(changed)
            with pytest.raises(InputError, match=f"{name} has {len(changed)} bytes"):
                open_tokens(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(InputError, match="cannot read"):
            open_tokens(tmp_path)
        (tmp_path / name).write_bytes(whole)
    open_tokens(tmp_path)


def test_starts_that_do_not_fit_are_refused(tmp_path):
    build(tmp_path, "one\ntwo\nthree\n", lines=True)
    starts = np.fromfile(tmp_path / "train.starts", "<i8")
    for changed in (starts[::-1], starts + 1, np.zeros_like(starts)):
        changed.tofile(tmp_path / "train.starts")
        with pytest.raises(InputError, match=r"train\.starts does not cut"):
            open_tokens(tmp_path)


def test_every_field_of_the_index_is_checked(tmp_path):
    build(tmp_path, "one\ntwo\nthree\n", lines=True)
    path = tmp_path / "tokens.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    bad = [{**index, name: None} for name in index]
    bad += [{**index, "dtype": "uint16"}, {**index, "train": {}}, []]
    for content in [*map(json.dumps, bad), "", "{"]:
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError):
            open_tokens(tmp_path)


def test_unfinished_files_are_no_token_set(tmp_path):
    build(tmp_path, "good text")
    with pytest.raises(InputError):
        build(tmp_path, "bad text", CharTokenizer("a"))
    with pytest.raises(InputError, match="cannot read"):
        open_tokens(tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FailedError, match="cannot write"):
        build(tmp_path / "file" / "data", "text")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a full device")
def test_a_full_disk_is_named(tmp_path):
    (tmp_path / "val.bin").symlink_to("/dev/full")
    with pytest.raises(FailedError, match="No space left"):
        build(tmp_path, "text " * 9)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [False, True])
def test_memory_does_not_grow_with_the_text(tmp_path, lines):
    path = tmp_path / "book.txt"
    path.write_bytes(b"a line of some length, and another half.\n" * 500_000)
    source = FileSource(path, chunk_bytes=1 << 16)
    tokenizer = CharTokenizer.from_text(source)
    tracemalloc.start()
    try:
        data = build_tokens(source, tokenizer, tmp_path / "data", lines=lines)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.train.targets + data.val.targets > 20_000_000
    # In line mode, dealing half a million documents takes some bytes for each.
    assert peak < (16_000_000 if lines else 5_000_000)


def test_one_long_line_is_read_in_linear_time(tmp_path):
    text = "x" * 3_000_000 + "\ny"
    data = build(tmp_path, text, lines=True, chunk_chars=100)
    assert data.train.targets + data.val.targets == len(text) + 1
