"""Tokenizers: nothing is lost, nothing is guessed, and no character is ever split."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.tokenizer_files import (
    load_tokenizer,
    read_tokenizer,
    require_same_tokenizer,
    save_tokenizer,
)
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer
from tinygrad_tf.text.word_tokenizer import WordTokenizer

SHAKESPEARE = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@given(st.text(min_size=1))
def test_characters_round_trip(text):
    tokenizer = CharTokenizer.from_text(text)
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64
    assert tokenizer.decode(ids) == text
    assert [tokenizer.vocab[i] for i in ids] == list(text)
    assert tokenizer.vocab == "".join(sorted(set(text)))
    assert tokenizer.count_chars(ids) == len(text)


@given(st.binary())
def test_bytes_round_trip_whether_utf8_or_not(data):
    tokenizer = ByteTokenizer()
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(data)) == data
    assert tokenizer.decode(tokenizer.encode_bytes(data)) == data.decode("utf-8", "replace")
    smuggled = data.decode("utf-8", "surrogateescape")
    assert tokenizer.decode_bytes(tokenizer.encode(smuggled)) == data


@given(st.text())
def test_text_round_trips_through_bytes(text):
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(text)
    assert list(ids) == list(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer.count_chars(ids) == len(text)


@given(st.text(st.characters(exclude_characters="\ufffd")))
def test_decoder_gives_whole_characters_as_soon_as_they_are_whole(text):
    decoder = ByteTokenizer().decoder()
    seen = ""
    data = text.encode()
    for end, byte in enumerate(data, 1):
        seen += decoder.push(byte)
        assert seen == data[:end].decode("utf-8", "ignore")
    assert seen + decoder.flush() == text


@given(st.binary())
def test_decoder_equals_the_whole_decode(data):
    tokenizer = ByteTokenizer()
    decoder = tokenizer.decoder()
    for _ in range(2):  # a flush leaves nothing behind
        text = "".join(map(decoder.push, data)) + decoder.flush()
        assert text == tokenizer.decode(list(data))


def test_char_decoder_equals_the_whole_decode():
    tokenizer = CharTokenizer.from_text("zwölf €")
    decoder = tokenizer.decoder()
    ids = tokenizer.encode("€zwölf")
    assert "".join(decoder.push(int(i)) for i in ids) + decoder.flush() == "€zwölf"


def test_known_ids():
    tokenizer = CharTokenizer(SHAKESPEARE)
    assert tokenizer.vocab_size == 65
    assert list(tokenizer.encode("hii there")) == [46, 47, 47, 1, 58, 46, 43, 56, 43]
    assert tokenizer.decode([]) == ""
    assert tokenizer.encode("").shape == (0,)


def test_unknown_characters_are_named_with_place_and_neighbour():
    with pytest.raises(InputError) as caught:
        CharTokenizer(SHAKESPEARE).encode("né, 7 “é” 日", start=100)
    message = str(caught.value)
    assert "'é' (U+00E9, position 101, nearest known 'e' or 'E')" in message
    assert "'7' (U+0037, position 104, nearest known '3')" in message
    assert "'“' (U+201C, position 106, nearest known \"'\")" in message
    assert "'日' (U+65E5, position 110)" in message
    assert message.count("U+00E9") == 1
    assert '`unknown="skip"`' in message


def test_many_unknown_characters_are_counted():
    with pytest.raises(InputError, match="and 3 more"):
        CharTokenizer("a").encode("abcdefghi")


@given(st.text(), st.text(min_size=1))
def test_skipping_leaves_out_exactly_the_unknown(text, known):
    tokenizer = CharTokenizer.from_text(known)
    kept = "".join(c for c in text if c in known)
    assert tokenizer.decode(tokenizer.encode(text, unknown="skip")) == kept
    if kept != text:
        with pytest.raises(InputError):
            tokenizer.encode(text)


@pytest.mark.parametrize(
    ("unknown", "nearest"), [("Ä", ["a"]), ("B", ["b"]), ("—", ["-"]), ("…", ["."]), ("~", [])]
)
def test_nearest_known(unknown, nearest):
    assert CharTokenizer("-.ab").nearest(unknown) == nearest


@pytest.mark.parametrize("vocab", ["", "ba", "aa", "a\ud800"])
def test_bad_vocabularies_are_refused(vocab):
    with pytest.raises(InputError):
        CharTokenizer(vocab)


def test_lone_surrogates_are_named():
    with pytest.raises(InputError, match=r"U\+D800.* position 1"):
        ByteTokenizer().encode("a\ud800")
    with pytest.raises(InputError, match=r"U\+DCE9"):
        CharTokenizer("a").encode("a\udce9")


@pytest.mark.parametrize("tokenizer", [CharTokenizer("abc"), ByteTokenizer()])
@pytest.mark.parametrize("token", [-1, 256, 10**9])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, token):
    with pytest.raises(InputError, match=f"id {token} is outside"):
        tokenizer.decode([0, token])
    with pytest.raises(TypeError):
        tokenizer.decode([0.5])


def test_token_text():
    assert CharTokenizer("\né").token_text(1) == "é"
    assert ByteTokenizer().token_text(ord("A")) == "A"
    assert ByteTokenizer().token_text(0xE9) == "<0xE9>"


@pytest.mark.parametrize(
    "tokenizer", [CharTokenizer('\n\r "\\aé\u2028😀'), ByteTokenizer(), WordTokenizer(["a"])]
)
def test_saved_and_loaded_is_the_same(tmp_path, tokenizer):
    path = tmp_path / "tokenizer.json"
    save_tokenizer(tokenizer, path)
    loaded = load_tokenizer(path)
    assert repr(read_tokenizer(path.read_bytes())) == repr(loaded) == repr(tokenizer)
    assert type(loaded) is type(tokenizer)
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.sha256() == tokenizer.sha256()
    require_same_tokenizer(tokenizer, loaded)


def test_hash_tells_tokenizers_apart():
    hashes = {t.sha256() for t in (CharTokenizer("a"), CharTokenizer("b"), ByteTokenizer())}
    assert len(hashes) == 3


def test_difference_is_explained():
    with pytest.raises(InputError) as caught:
        require_same_tokenizer(CharTokenizer("abc"), CharTokenizer("abde"))
    message = str(caught.value)
    assert "4 tokens" in message
    assert "3 tokens" in message
    assert "token 2 is 'd', not 'c'" in message


GOOD = {"schema_version": 1, "kind": "char", "vocab": "ab"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        *(
            json.dumps(fields).encode()
            for fields in (
                {**GOOD, "schema_version": 2},
                {**GOOD, "kind": "word"},
                {**GOOD, "kind": ["char"]},
                {**GOOD, "vocab": None},
                {**GOOD, "vocab": "ba"},
                {**GOOD, "vocab": ""},
                {**GOOD, "extra": 1},
                {"schema_version": 1, "kind": "char"},
            )
        ),
    ],
)
def test_malformed_files_are_refused(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_tokenizer(path)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_opened_are_named(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_tokenizer(tmp_path / "none.json")
    with pytest.raises(FailedError, match="cannot write"):
        save_tokenizer(ByteTokenizer(), tmp_path / "none" / "tokenizer.json")


@given(st.text(), st.integers(0, 9))
def test_chunks_give_the_ids_of_the_whole_and_bytes_are_counted(text, cut):
    for tokenizer in (ByteTokenizer(), CharTokenizer.from_text(text + "x")):
        whole = tokenizer.encode(text)
        parts = list(tokenizer.encode_chunks([text[:cut], text[cut:]]))
        assert np.array_equal(np.concatenate(parts), whole)
        assert sum(map(tokenizer.count_bytes, parts)) == len(text.encode())


def test_a_position_in_a_later_chunk_counts_from_the_beginning():
    with pytest.raises(InputError, match="position 4"):
        list(CharTokenizer("ab").encode_chunks(["ab", "bac"]))
