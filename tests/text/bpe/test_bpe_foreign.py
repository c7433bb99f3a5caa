"""Files of other tools: edited ones as their origin has them, faults by line."""

import base64
import hashlib
import json

import pytest

from tests.text.bpe.samples import (
    BYTES,
    ids,
    saved,
    trained,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.formats import load_bpe, save_bpe
from tinygrad_tf.text.bpe.formats import tiktoken as ranks
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

# -- vocab.json and merges.txt


def pair(tmp_path, vocab, merges):
    saved(tmp_path, json.dumps(vocab), "vocab.json")
    saved(tmp_path, merges, "merges.txt")
    return tmp_path


def test_gpt2_files_as_they_are_found(tmp_path):
    vocab = BYTES | {"ab": 300, "hello": 301, "<|endoftext|>": 999}
    table = load_bpe(pair(tmp_path, vocab, "#version: 0.2\r\na b\r\n\n"))
    assert table.specials == {"<|endoftext|>": 999} and table.size == 1000
    assert ids(table, "ab hello") == [300, 32, *b"hello"]  # unreachable, as in its origin
    assert ids(load_bpe(tmp_path, specials=["ab"]), "ab", specials="allow") == [300]
    vocab["#!"] = 302
    table = load_bpe(pair(tmp_path, vocab, "a b\n# !\na b"), specials=["hello", "new"])
    assert list(table.merges) == [("#", "!"), ("a", "b")]
    assert table.specials == {"<|endoftext|>": 999, "hello": 301, "new": 1000}


@pytest.mark.parametrize(
    ("vocab", "merges", "fault"),
    [
        ({**BYTES, "ab": "x"}, "a b", "'x' for 'ab'"),
        ({**BYTES, "ab": 256}, "a b c", "line 1 of the merges"),
        ({**BYTES, "ab": 256}, "a b\n#version: 0.2 x", "line 2 of the merges"),
        (BYTES, "a b", "needs 'ab'"),
        ({"a": 0}, "", "no token for the bytes"),
        ([], "", "JSON list"),
    ],
)
def test_faults_of_gpt2_files(tmp_path, vocab, merges, fault):
    with pytest.raises(InputError, match=fault):
        load_bpe(pair(tmp_path, vocab, merges))


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (trained("gpt4"), "not GPT-2's but gpt4"),
        (trained(specials=["END"]), "'END' is special"),
        (BPETable.classical(["a", "</w>"], []), "words"),
        (BPETable({**BYTES, "abc": 256}, ignore_merges=True), "no merges make 'abc'"),
        (BPETable(BYTES, duplicates={256: "a"}), "several ids"),
    ],
)
def test_what_gpt2_files_cannot_hold(tmp_path, table, fault):
    with pytest.raises(InputError, match=fault):
        save_bpe(table, tmp_path, "gpt2")
    assert not list(tmp_path.iterdir())


# -- rank files


def rank_lines(tokens):
    return b"".join(base64.b64encode(t) + b" %d\n" % rank for t, rank in tokens)


ALL_BYTES = [(bytes([255 - i]), i) for i in range(256)]


def test_rank_files_of_edited_tables(tmp_path):
    tokens = [*ALL_BYTES, (b":.", 256), (b".:", 257), (b".:.:", 300)]
    path = saved(tmp_path, rank_lines(tokens) + b"\n")
    table = load_bpe(path, pattern=".+", specials=["<x>"])
    assert table.vocab["a"] == 255 - 97 and table.specials == {"<x>": 301}
    assert ids(table, ".:.:") == [300]
    assert ids(table, "a.:.:") == [158, 209, 256, 197]
    twice = saved(tmp_path, rank_lines([*ALL_BYTES, (b"ab", 256), (b"ab", 257)]))
    assert ids(load_bpe(twice, pattern="none"), "xab") == [135, 257]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (rank_lines([*ALL_BYTES, (b"ab", 3)]), "line 257 has the rank 3 of line 4"),
        (rank_lines(ALL_BYTES[1:]), "no token for the bytes 0xFF"),
        (rank_lines(ALL_BYTES) + b"YWI= x\n", "line 257"),
        (rank_lines(ALL_BYTES) + b"YWI 256\n", "line 257, 'YWI 256', is not valid base64"),
        (rank_lines(ALL_BYTES) + b"YWI= -1\n", "line 257"),
        (rank_lines(ALL_BYTES) + b" 256\n", "line 257"),
        (b"\xff\xfe\n", "line 1"),
    ],
)
def test_faults_of_rank_files(tmp_path, content, fault):
    with pytest.raises(InputError, match=fault):
        load_bpe(saved(tmp_path, content), pattern="gpt4", format="tiktoken")


def test_a_rank_file_that_nobody_knows_asks_for_its_pattern(tmp_path):
    path = saved(tmp_path, rank_lines(ALL_BYTES), "x.tiktoken")
    with pytest.raises(InputError, match="`pattern"):
        load_bpe(path)


def test_a_published_rank_file_is_known_by_its_hash(tmp_path, monkeypatch):
    content = rank_lines(ALL_BYTES)
    known = ranks.Published("gpt4", {"<|endoftext|>": 300})
    monkeypatch.setitem(ranks.PUBLISHED, hashlib.sha256(content).hexdigest(), known)
    table = load_bpe(saved(tmp_path, content))
    assert table.pattern == "gpt4" and table.specials == {"<|endoftext|>": 300}
    more = load_bpe(saved(tmp_path, content), pattern="none", specials={"<x>": 299})
    assert more.pattern == "none" and more.specials == {"<|endoftext|>": 300, "<x>": 299}


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (BPETable.classical(["a", "</w>"], []), "words"),
        (BPETable({**BYTES, "abc": 256}), "'abc'"),
        (
            BPETable({**BYTES, "ab": 257, "cd": 256}, (("a", "b"), ("c", "d"))),
            "do not ascend",
        ),
        (
            BPETable(
                {**BYTES, "bc": 256, "ab": 257, "abc": 258}, (("b", "c"), ("a", "b"), ("ab", "c"))
            ),
            "'abc' as ranks would",
        ),
    ],
)
def test_what_rank_files_cannot_hold(tmp_path, table, fault):
    with pytest.raises(InputError, match=fault):
        save_bpe(table, tmp_path / "x", "tiktoken")


# -- minbpe


def test_minbpe_files_of_edited_tables(tmp_path):
    lines = ["minbpe v1", "", "1", "<x> 400", "97 98", "98 99", "256 99", "97 257", "259 100"]
    table = load_bpe(saved(tmp_path, "\n".join(lines) + "\n"))
    assert table.pattern == "none" and table.specials == {"<x>": 400}
    assert ids(table, "abcd") == [258, 100]  # merges make 258, never 259, of the bytes of both
    decode = BPETokenizer(table).decode
    assert decode([258]) == decode([259]) == "abc" and decode([260]) == "abcd"
    with pytest.raises(InputError, match="several ids"):
        BPETokenizer(table).to_json()


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["minbpe v2", "", "0"], "first line"),
        (["minbpe v1", ""], "line 3"),
        (["minbpe v1", "", "x"], "line 3"),
        (["minbpe v1", "", "2", "<a> 256"], "ends before"),
        (["minbpe v1", "", "1", "<a>"], "line 4"),
        (["minbpe v1", "", "2", "<a> 256", "<a> 257"], "line 5"),
        (["minbpe v1", "(", "0"], r"\("),
        (["minbpe v1", "", "0", "97 256"], "line 4 merges 97 and 256 to 256"),
        (["minbpe v1", "", "0", "97"], "line 4"),
        (["minbpe v1", "", "0", "97 98 99"], "line 4"),
        (["minbpe v1", "", "0", "97 -1"], "line 4"),
        (["minbpe v1", "", "1", "<a> 97"], "'<a>' has the id 97 of 'a'"),
    ],
)
def test_faults_of_minbpe_files(tmp_path, lines, fault):
    with pytest.raises(InputError, match=fault):
        load_bpe(saved(tmp_path, "\n".join(lines) + "\n"), format="minbpe")


def test_a_pattern_with_a_space_at_its_end_is_written_so_that_minbpe_keeps_it(tmp_path):
    save_bpe(trained(r" ?\w+| "), tmp_path / "x.model")
    assert (tmp_path / "x.model").read_text().split("\n")[1] == r"[ ]?\w+|[ ]"


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (BPETable.classical(["a", "</w>"], []), "words"),
        (BPETable.from_merges([], order="huggingface"), "ids 0 to 255"),
        (BPETable({**BYTES, "ab": 300}, (("a", "b"),)), "in order"),
        (BPETable({**BYTES, "abc": 256}), "in order"),
        (BPETable({**BYTES, "aaa": 256, "aa": 257}, (("a", "aa"), ("a", "a"))), "in order"),
        (trained(specials=["a b"]), "'a b' holds white space"),
        (trained("a\n|."), "more than one line"),
        (trained("\t|."), "white space"),
    ],
)
def test_what_minbpe_files_cannot_hold(tmp_path, table, fault):
    with pytest.raises(InputError, match=fault):
        save_bpe(table, tmp_path / "x.model")


# -- subword-nmt


@pytest.mark.parametrize(
    ("content", "end_of_word", "pieces"),
    [
        ("#version: 0.2\ne s\nes t</w>\no l\n", "attached", ["ol"]),
        ("#version: 0.1\ne s\nes t\nest </w>\no l\n", "separate", ["ol"]),
        ("e s\nes t\nest </w>\no l\n", "separate", ["ol"]),
        ("e s 13\nes t</w> 13\no l 10\n", "attached", ["ol"]),
    ],
)
def test_codes_of_every_version(tmp_path, content, end_of_word, pieces):
    table = load_bpe(saved(tmp_path, content))
    assert table.end_of_word == end_of_word
    tokenizer = BPETokenizer(table)
    found = [tokenizer.token_text(i) for i in tokenizer.encode("olest tel").tolist()]
    last = ["l</w>"] if end_of_word == "attached" else ["l", "</w>"]
    assert found == [*pieces, "est</w>", "t", "e", *last]
    save_bpe(table, tmp_path / "again", "subword-nmt")
    again = load_bpe(tmp_path / "again")
    assert again == table


def test_of_codes_that_stand_twice_the_first_counts(tmp_path):
    table = load_bpe(saved(tmp_path, "#version: 0.2\na b\nb c\na b\nab c\na bc\n"))
    assert list(table.merges) == [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")]
    tokenizer = BPETokenizer(table)
    shown = [tokenizer.token_text(i) for i in tokenizer.encode("abca").tolist()]
    assert shown == ["abc", "a</w>"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("#version: 0.2 byte\ne s\n", "version"),
        ("#version: 0.2\ne\n", "line 2"),
        ("#version: 0.2\ne s t u\n", "line 2"),
        ("#version: 0.2\ne s\n\ne t\n", "line 3"),
    ],
)
def test_faults_of_codes(tmp_path, content, fault):
    with pytest.raises(InputError, match=fault):
        load_bpe(saved(tmp_path, content))


def test_what_codes_cannot_hold(tmp_path):
    with pytest.raises(InputError, match="bytes, not words"):
        save_bpe(trained(), tmp_path / "x", "subword-nmt")


def test_remarks_name_what_a_file_does_not_hold(tmp_path):
    remarks = " ".join(save_bpe(trained("gpt4", ["<x>"]), tmp_path / "x", "tiktoken"))
    assert "gpt4" in remarks and "'<x>' 261" in remarks
    words = BPETable.classical(["a", "</w>"], [], specials=["<x>"])
    assert "'<x>' 2" in " ".join(save_bpe(words, tmp_path / "y", "subword-nmt"))
