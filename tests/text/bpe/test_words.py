"""Words with their counts, from texts and from tables."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.bpe import drawn
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe import streaming
from tinygrad_tf.text.bpe.counting import count_words, read_counts_table


def test_words_are_what_white_space_parts():
    assert count_words(["b  a\n", "b\u3000é\x1cé"]) == {"b": 2, "a": 1, "é\x1cé": 1}
    assert list(count_words(["c b", "b a c"])) == ["c", "bb", "a"]
    assert count_words(["ab<s>ab <s>"], ["<s>"]) == {"ab": 2}
    assert count_words([" \n"]) == count_words([]) == {}


@given(
    st.lists(st.one_of(drawn.texts, st.just("<s>")), max_size=6).map("".join),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_chunks_do_not_change_the_words(text, chunk, block):
    chunks = [text[start : start + chunk] for start in range(0, len(text), chunk)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "_BLOCK", block)
        counted = count_words(chunks, ["<s>"])
    # Python's whitespace and four more: the separators that Unicode does not count as such.
    parted = re.sub("[\x1c-\x1f]", lambda found: chr(0xE000 + ord(found[0])), text)
    words = [word for part in parted.split("<s>") for word in part.split()]
    restored = [re.sub("[\ue01c-\ue01f]", lambda f: chr(ord(f[0]) - 0xE000), w) for w in words]
    if not re.search("[\ue01c-\ue01f]", text):
        assert list(counted.items()) == list(Counter(restored).items())


def write(tmp_path, text: str):
    path = tmp_path / "words.tsv"
    path.write_bytes(text.encode())
    return path


def test_a_table_of_the_worked_example(tmp_path):
    path = write(tmp_path, "old\t7\nolder\t3\r\n\nfinest\t9\nlowest\t4")
    assert read_counts_table(path) == {"old": 7, "older": 3, "finest": 9, "lowest": 4}
    assert list(read_counts_table(str(path))) == ["old", "older", "finest", "lowest"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("old\t7\nolder 3\n", "line 2 of .* has no tab: 'older 3'"),
        ("old\t7\n\n\t3\n", "line 3 of .* no single word before its tab: ''"),
        ("an old\t7\n", "line 1 of .* no single word before its tab: 'an old'"),
        ("old\t0\n", "line 1 of .* has the count '0'"),
        ("old\t-1\n", "count '-1'"),
        ("old\t1.5\n", "count '1.5'"),
        ("old\t\n", "count ''"),
        ("old\t٣\n", "count '٣'"),
        ("old\t7\t8\n", r"count '7\\t8'"),
        ("old\t" + "9" * 30 + "\n", "count '9999"),
        ("old\t7\nnew\t1\nold\t2\n", "line 3 of .* has the word 'old' of line 1 again"),
        ("\n\n", "has no words"),
        ("", "is empty"),
    ],
)
def test_faults_are_told_by_line(tmp_path, text, what):
    with pytest.raises(InputError, match=what) as caught:
        read_counts_table(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_table_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_counts_table(tmp_path / "none.tsv")
    path = tmp_path / "words.tsv"
    path.write_bytes(b"old\t7\n\xff\t1\n")
    with pytest.raises(InputError, match="line 2"):
        read_counts_table(path)
