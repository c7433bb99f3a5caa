"""A table is what it says, or one clear error."""

from dataclasses import replace

import pytest

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR
from tinygrad_tf.text.bpe.table import BPETable

BYTES = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
WORDS = {"a": 0, "b": 1, "</w>": 2, "ab": 3}


def test_ids_in_the_order_of_bytes():
    table = BPETable.from_merges([("a", "b"), ("Ġ", "ab")], specials=["<x>", "<y>"])
    assert [table.vocab[char] for char in BYTE_TO_CHAR] == list(range(256))
    assert (table.vocab["ab"], table.vocab["Ġab"]) == (256, 257)
    assert table.specials == {"<x>": 258, "<y>": 259}
    assert table.size == 260
    assert table.token_bytes(257) == b" ab"
    assert table.token_bytes(259) == b"<y>"


def test_ids_in_the_order_of_hugging_face():
    table = BPETable.from_merges([("a", "b")], specials=["<x>"], order="huggingface")
    assert table.specials == {"<x>": 0}
    assert table.vocab["!"] == 1 and table.vocab["Ġ"] == 221 and table.vocab["Ċ"] == 199
    assert table.vocab["ab"] == 257


def test_ids_of_words():
    table = BPETable.classical(
        ["a", "b", "</w>"], [("a", "b")], unk="<unk>", specials=["<x>"], end_of_word="separate"
    )
    assert table.vocab == {**WORDS, "<unk>": 4} and table.specials == {"<x>": 5}
    assert table.token_bytes(2) == b" " and table.token_bytes(3) == b"ab"


def test_holes_and_duplicates_count_for_the_size():
    table = BPETable(BYTES, specials={"<x>": 400}, duplicates={500: "a"}).checked()
    assert table.size == 501
    assert table.token_bytes(500) == b"a"
    with pytest.raises(InputError, match="no token has the id 450"):
        table.token_bytes(450)


BYTE_LEVEL = BPETable({**BYTES, "ab": 256, "abc": 257}, [("a", "b"), ("ab", "c")])
CLASSICAL = BPETable(WORDS, [("a", "b")], kind="classical", pattern="", end_of_word="separate")


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [
        (BYTE_LEVEL, {"vocab": {}}, "no tokens"),
        (BYTE_LEVEL, {"vocab": {**BYTES, "ab": 97}, "merges": ()}, "'a' and 'ab' have the same id"),
        (BYTE_LEVEL, {"vocab": {**BYTES, "ab": -1}}, "-1, not a whole number"),
        (BYTE_LEVEL, {"vocab": {**BYTES, "ab": True}}, "True, not a whole number"),
        (BYTE_LEVEL, {"vocab": {**BYTES, "": 256}, "merges": ()}, "token 256 is empty"),
        (BYTE_LEVEL, {"vocab": {**BYTES, "ab": 256}}, "merge 1 .* needs 'abc'"),
        (BYTE_LEVEL, {"merges": (("a", "xy"),)}, "needs 'xy'"),
        (BYTE_LEVEL, {"merges": (("a", "b"), ("a", "b"))}, "occurs twice"),
        (
            BYTE_LEVEL,
            {"vocab": {c: i for c, i in BYTES.items() if i not in (10, 33)}, "merges": ()},
            "no token for the bytes 0x0A, 0x21",
        ),
        (BYTE_LEVEL, {"specials": {"<x>": 256}}, "'<x>' has the id 256 of 'ab'"),
        (BYTE_LEVEL, {"specials": {"<x>": 300, "<y>": 300}}, "'<y>' has the id 300 of '<x>'"),
        (BYTE_LEVEL, {"specials": {"ab": 300}}, "has the id 300 and, in the vocabulary, 256"),
        (BYTE_LEVEL, {"specials": {"\udc80": 300}}, "surrogate"),
        (BYTE_LEVEL, {"unk": "<unk>"}, "neither </w> nor an unknown"),
        (BYTE_LEVEL, {"by_rank": True}, "no list of merges"),
        (BYTE_LEVEL, {"duplicates": {256: "a"}}, "duplicate ids"),
        (BYTE_LEVEL, {"duplicates": {300: "zz"}}, "duplicate ids"),
        (BYTE_LEVEL, {"kind": "other"}, "kind is 'other'"),
        (CLASSICAL, {"end_of_word": None}, "end_of_word None"),
        (CLASSICAL, {"vocab": {"a": 0, "b": 1, "ab": 3}}, "no token '</w>'"),
        (CLASSICAL, {"unk": "<unk>"}, "'<unk>' is not in the vocabulary"),
        (CLASSICAL, {"merges": (), "by_rank": True}, "only byte-level"),
    ],
)
def test_each_fault_is_named(table, change, fault):
    assert table.checked() is table
    with pytest.raises(InputError, match=fault) as caught:
        replace(table, **change).checked()
    assert "\n" not in str(caught.value)


def test_tokens_that_stand_twice_are_refused():
    with pytest.raises(InputError, match="'ab' occurs twice"):
        BPETable.from_merges([("a", "b"), ("a", "b")])
    with pytest.raises(InputError, match="'<x>' occurs twice"):
        BPETable.from_merges([], specials=["<x>", "<x>"])
