"""Files of every kind: there and back, found out what they are, never overwritten unasked."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.bpe_options import FormatChoice
from tests.text.bpe.oracle import RANDOM_TOKENS, merge_lists, rank_table
from tests.text.bpe.samples import BYTES, ids, saved, trained
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.bpe.encoding import PieceEncoder, unreachable
from tinygrad_tf.text.bpe.formats import (
    FORMATS,
    check_target,
    huggingface,
    load_bpe,
    minbpe,
    save_bpe,
)
from tinygrad_tf.text.bpe.formats import tiktoken as ranks
from tinygrad_tf.text.bpe.formats.format import Format
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer


@pytest.mark.parametrize("format", ["huggingface", "gpt2", "tiktoken", "minbpe"])
def test_a_trained_table_goes_there_and_back(tmp_path, format):
    table = trained()
    path = tmp_path / "tokenizer"
    path.mkdir()
    where = path if format == "gpt2" else path / "file"
    remarks = save_bpe(table, where, format)
    assert bool(remarks) == (format == "tiktoken")
    again = load_bpe(where, pattern="gpt2" if format == "tiktoken" else None)
    assert ids(again) == ids(table)
    assert dict(again.vocab) == dict(table.vocab)
    assert list(again.listed_merges()) == list(table.merges)
    where2 = tmp_path if format == "gpt2" else tmp_path / "again"
    save_bpe(again, where2, format)
    for file in path.iterdir():
        copy = tmp_path / ("again" if file.name == "file" else file.name)
        assert copy.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("format", "specials"),
    [
        ("huggingface", ["<a b>", "a\nb", "END"]),
        ("gpt2", ["<|endoftext|>", "[SEP]"]),
        ("minbpe", ["<|endoftext|>", "END"]),
    ],
)
def test_special_tokens_and_patterns_are_kept(tmp_path, format, specials):
    pattern = "gpt2" if format == "gpt2" else r" ?\w+| "
    table = trained(pattern, specials)
    where = tmp_path if format == "gpt2" else tmp_path / "file"
    save_bpe(table, where, format)
    again = load_bpe(where)
    assert again.specials == table.specials
    text = f"the 12 {specials[0]}{specials[1]} the"
    assert ids(again, text, specials="allow") == ids(table, text, specials="allow")
    assert ids(again, text, specials="text") == ids(table, text, specials="text")


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "gpt4-old", "o200k", "none", r"\d|\D+"])
@pytest.mark.parametrize("format", ["huggingface", "minbpe"])
def test_the_pattern_is_read_from_the_file(tmp_path, format, pattern):
    save_bpe(trained(pattern), tmp_path / "file", format)
    again = load_bpe(tmp_path / "file")
    assert again.pattern == pattern
    assert Splitter(again.pattern).split("1234567") == Splitter(pattern).split("1234567")
    if pattern.startswith("gpt4"):
        assert Splitter(again.pattern).split("1234567") == ["123", "456", "7"]
    assert ids(again) == ids(trained(pattern))
    with pytest.raises(InputError, match="`pattern"):
        load_bpe(tmp_path / "file", pattern="gpt2")


@given(merge_lists())
def test_any_merges_go_through_json(merges):
    made = dict.fromkeys(left + right for left, right in merges)
    table = BPETable(BYTES | {t: 256 + i for i, t in enumerate(made)}, tuple(merges)).checked()
    again = huggingface.from_fields(json.loads(json.dumps(huggingface.to_fields(table))))
    assert again == replace(table, merges=tuple(merges))


@pytest.mark.slow
@given(merge_lists(), st.text("abc", max_size=30))
def test_ranks_and_minbpe_hold_a_table_exactly_or_refuse_it(merges, text):
    made = dict.fromkeys(left + right for left, right in merges)
    table = BPETable(
        BYTES | {t: 256 + i for i, t in enumerate(made)}, tuple(merges), pattern="none"
    )
    for dump, parse in (
        (ranks.dump, lambda data: ranks.parse(data, pattern="none")),
        (minbpe.dump, lambda data: minbpe.parse(data.decode())),
    ):
        try:
            again = parse(dump(table))
        except InputError as fault:
            assert "cannot hold" in fault.what
        else:
            assert PieceEncoder(again).ids(text) == PieceEncoder(table).ids(text)


@given(RANDOM_TOKENS, st.text("abc", max_size=30))
def test_rank_tables_leave_exactly_or_are_refused(tokens, text):
    table = rank_table(tokens)
    assert ranks.parse(ranks.dump(table), pattern="none") == table
    for through in (
        lambda: huggingface.from_fields(huggingface.to_fields(table)),
        lambda: minbpe.parse(minbpe.dump(table).decode()),
    ):
        try:
            again = through()
        except InputError as fault:
            assert "cannot hold" in fault.what
        else:
            assert PieceEncoder(again).ids(text) == PieceEncoder(table).ids(text)


def test_trained_ranks_leave_for_every_format(tmp_path):
    table = replace(trained(), merges=(), by_rank=True, ignore_merges=True)
    assert unreachable(table) is None
    for format in ("huggingface", "minbpe", "tiktoken", "gpt2"):
        where = tmp_path if format == "gpt2" else tmp_path / format
        save_bpe(table, where, format)
        where = tmp_path / "vocab.json" if format == "gpt2" else where
        assert ids(load_bpe(where, pattern="gpt2" if format == "tiktoken" else None)) == ids(table)
    assert BPETokenizer(load_bpe(tmp_path / "huggingface")).sha256() == table.sha256()


def test_formats_are_found_out(tmp_path):
    for format in list(FORMATS)[:4]:
        where = tmp_path / "pair" if format == "gpt2" else tmp_path / f"{format}.txt"
        (tmp_path / "pair").mkdir(exist_ok=True)
        save_bpe(trained(), where, format)
        for path in (where, where / "merges.txt") if format == "gpt2" else (where,):
            found = load_bpe(path, pattern="gpt2" if format == "tiktoken" else None)
            assert dict(found.vocab) == dict(trained().vocab)
    save_bpe(trained("gpt4"), tmp_path / "pair" / "tokenizer.json")
    assert load_bpe(tmp_path / "pair").pattern == "gpt4"
    with pytest.raises(InputError, match="no tokenizer's file"):
        load_bpe(saved(tmp_path, "It was a dark and stormy night.\n"))
    with pytest.raises(InputError, match="no format"):
        load_bpe(tmp_path / "pair", format="word2vec")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no tokenizer"):
        load_bpe(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot read"):
        load_bpe(tmp_path / "nothing")


def test_files_are_not_overwritten_unasked(tmp_path):
    path = saved(tmp_path, "precious", "tokenizer.json")
    with pytest.raises(InputError, match="exists already; use `force=True`"):
        save_bpe(trained(), path)
    assert path.read_text() == "precious"
    save_bpe(trained(), path, force=True)
    assert ids(load_bpe(path)) == ids(trained())
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(InputError, match=r"vocab\.json exists"):
        save_bpe(trained(), tmp_path, "gpt2")
    assert not (tmp_path / "merges.txt").exists()
    with pytest.raises(FailedError, match="cannot write"):
        save_bpe(trained(), tmp_path / "no" / "tokenizer.json")
    with pytest.raises(InputError, match="format"):
        save_bpe(trained(), tmp_path / "tokenizer.xyz")


def test_a_new_format_is_one_entry(tmp_path, monkeypatch):
    lines = Format(
        "lines",
        read=lambda path, _: huggingface.from_fields(json.loads(path.read_text().split("\n")[1])),
        write=lambda table, path: {
            path: b"lines\n" + json.dumps(huggingface.to_fields(table)).encode()
        },
        has_start=lambda start: start.startswith(b"lines\n"),
        ending=".lines",
        notes=lambda table: ["lines are long"],
    )
    monkeypatch.setitem(FORMATS, lines.name, lines)
    path = tmp_path / "tok.lines"
    check_target(path)
    assert save_bpe(trained(), path) == ["lines are long"]
    assert ids(load_bpe(path)) == ids(load_bpe(path, format="lines")) == ids(trained())
    with pytest.raises(InputError, match="leave out `pattern`"):
        load_bpe(path, pattern="gpt2")
    with pytest.raises(InputError, match="subword-nmt, lines"):
        save_bpe(trained(), tmp_path / "tok.xyz")
    assert "lines" in FormatChoice().choices
