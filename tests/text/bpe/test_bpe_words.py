"""Words with `</w>`: the worked example, unknown characters, and one space between words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.bpe.samples import END, LETTERS, tokens, words
from tinygrad_tf.errors import InputError


def test_the_worked_example_splits_new_words():
    tokenizer = words()
    split = {word: tokens(tokenizer, word) for word in ("oldest", "lowest", "old", "finer")}
    assert split == {
        "oldest": ["old", "est</w>"],
        "lowest": ["l", "o", "w", "est</w>"],
        "old": ["old", "</w>"],
        "finer": ["f", "i", "n", "e", "r", "</w>"],
    }
    assert tokens(words("attached"), "oldest old") == ["ol", "d", "est</w>", "ol", "d</w>"]


@pytest.mark.parametrize("end_of_word", ["separate", "attached"])
def test_unknown_characters_are_named_or_the_unknown_token(end_of_word):
    tokenizer = words(end_of_word)
    with pytest.raises(InputError, match=r"'b' \(U\+0062, position 6\)"):
        tokenizer.encode(" old  bold", unknown="error")
    with pytest.raises(InputError, match="position 106"):
        tokenizer.encode(" old  bold", start=100)
    marked = words(end_of_word, specials=(END,))
    with pytest.raises(InputError, match=f"position {len(END) + 5}[),]"):
        marked.encode(f" old{END} bold", specials="allow")
    assert tokenizer.decode(tokenizer.encode("bold", unknown="skip")) == "old"
    known = words(end_of_word, unk="<unk>")
    assert tokens(known, "bold")[0] == "<unk>"
    assert tokens(known, "bold")[1:] == tokens(known, "old")
    assert tokens(words(unk="<unk>", letters=[*LETTERS, "b"]), "bold")[0] == "b"


@given(st.lists(st.text(st.sampled_from(LETTERS), min_size=1, max_size=8), max_size=8))
def test_words_come_back_with_one_space_between(parts):
    for end_of_word in ("separate", "attached"):
        tokenizer = words(end_of_word)
        ids = tokenizer.encode("  \n".join(parts))
        joined = " ".join(parts)
        assert tokenizer.decode(ids) == joined
        assert tokenizer.decode_bytes(ids) == joined.encode()
        assert tokenizer.count_chars(ids) == len(joined) + bool(parts)
        decoder = tokenizer.decoder()
        for _ in range(2):  # after flush it starts afresh
            assert "".join(map(decoder.push, ids.tolist())) + decoder.flush() == joined


def test_offsets_of_words_leave_whitespace_out():
    tokenizer = words(unk="<unk>", specials=(END,))
    text = f"  oldest\u2003éold{END} old"
    found = tokenizer.offsets(text, specials="allow")
    shown = [(tokenizer.token_text(i), text.encode()[a:b].decode()) for i, a, b in found]
    assert shown == [
        ("old", "old"),
        ("est</w>", "est"),
        ("<unk>", "é"),
        ("old", "old"),
        ("</w>", ""),
        (END, END),
        ("old", "old"),
        ("</w>", ""),
    ]
    attached = words("attached")
    assert [(a, b) for _, a, b in attached.offsets("old west")] == [
        (0, 2),
        (2, 3),
        (4, 5),
        (5, 8),
    ]


def test_the_mark_in_a_text_is_only_characters():
    tokenizer = words(letters=sorted({*LETTERS, *"</w>"}))
    assert tokens(tokenizer, "o</w> old") == ["o", "<", "/", "w", ">", "</w>", "old", "</w>"]
    assert tokenizer.decode(tokenizer.encode("o</w> old")) == "o</w> old"


def test_words_end_at_unicode_white_space_alone():
    tokenizer = words(letters=[*LETTERS, "\x1c"])
    spaces = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    for space in spaces + "".join(map(chr, range(0x2000, 0x200B))):
        assert tokens(tokenizer, f"o{space}l") == ["o", "</w>", "l", "</w>"]
    assert tokens(tokenizer, "o\x1cl") == ["o", "\x1c", "l", "</w>"]
