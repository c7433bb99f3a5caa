"""The tokenizer's face: nothing lost, specials by explicit choice, streams equal to the whole."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.bpe.samples import (
    END,
    MERGES,
    byte_level,
    tokens,
    words,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe import streaming
from tinygrad_tf.text.bpe.alphabet import to_chars
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

TEXTS = st.text(st.sampled_from("the ab12é\n\t .<|\U0001f600\u4e2d"), max_size=60)


# -- special tokens


def test_special_tokens_are_refused_allowed_or_text():
    tokenizer = BPETokenizer(BPETable(BPETable.from_merges([]).vocab, specials={END: 300}))
    with pytest.raises(InputError, match=r"'<\|endoftext\|>' at position 2") as fault:
        tokenizer.encode(f"hi{END}")
    assert fault.value.exit_code == 2
    assert tokenizer.encode(f"hi{END}", specials="allow").tolist() == [104, 105, 300]
    as_text = tokenizer.encode(f"hi{END}", specials="text").tolist()
    assert as_text == list(f"hi{END}".encode())
    assert tokenizer.decode([104, 105, 300]) == f"hi{END}"
    assert tokenizer.vocab_size == 301


def test_the_longest_special_token_at_the_first_place_wins():
    specials = ("<a>", "<a><b>", "b><c")
    tokenizer = byte_level(specials=specials)
    assert tokens(tokenizer, "<a><b><c>", specials="allow") == ["<a><b>", "<", "c", ">"]
    assert tokens(tokenizer, "<a><a>x", specials="allow") == ["<a>", "<a>", "x"]


def test_special_tokens_cut_the_text_before_pieces_are_made():
    tokenizer = byte_level("gpt4", specials=("\n",))
    assert tokens(tokenizer, "a\n\nb", specials="allow") == ["a", "\n", "\n", "b"]
    assert tokens(tokenizer, "a\n\nb", specials="text") == ["a", "\n\n", "b"]


# -- nothing is lost


def test_the_empty_text_has_no_ids():
    for tokenizer in (byte_level(), words()):
        assert tokenizer.encode("").tolist() == []
        assert tokenizer.encode("").dtype == np.int64
        assert tokenizer.decode([]) == ""
        assert tokenizer.decode_bytes([]) == b""
        assert tokenizer.count("") == tokenizer.count_chars([]) == tokenizer.count_bytes([]) == 0
        assert list(tokenizer.encode_chunks([])) == []
        assert tokenizer.offsets("") == []


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "o200k", "none", r"\w+"])
def test_drawn_byte_strings_round_trip(pattern):
    tokenizer = byte_level(pattern)
    rng = random.Random(pattern)
    for _ in range(4000):
        data = rng.randbytes(rng.randrange(40))
        ids = tokenizer.encode_bytes(data)
        assert tokenizer.decode_bytes(ids) == data
        assert tokenizer.count_bytes(ids) == len(data)


@given(st.text())
def test_texts_round_trip(text):
    tokenizer = byte_level()
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.count_chars(ids) == len(text)
    assert tokenizer.count(text) == len(ids)


def test_ends_of_lines_come_back_as_they_were():
    tokenizer = BPETokenizer(BPETable.from_merges([]))
    assert tokenizer.encode_bytes(b"a\r\nb").tolist() == [97, 13, 10, 98]
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(b"\r")) == b"\r"


def test_surrogates_are_joined_or_one_clear_error():
    tokenizer = BPETokenizer(BPETable.from_merges([]))
    assert tokenizer.encode("\ud83d\udc4d").tolist() == [240, 159, 145, 141]
    for kind in (tokenizer, words(unk="<unk>")):
        with pytest.raises(InputError, match=r"lone surrogate \(U\+D83D\) at position 12"):
            kind.encode("ab\ud83d", start=10)
    assert tokenizer.encode("a\ud83db", unknown="skip").tolist() == [97, 98]
    assert tokenizer.encode("\udcff").tolist() == [255]


def test_every_file_here_round_trips():
    tokenizer = byte_level("gpt4", specials=())
    for path in sorted(Path(__file__).parents[3].rglob("*.py")):
        data = path.read_bytes()
        assert tokenizer.decode_bytes(tokenizer.encode_bytes(data)) == data


# -- parts and the whole


@given(TEXTS, st.sampled_from(["allow", "text"]), st.data())
def test_chunks_have_the_ids_of_the_whole(text, policy, data):
    text = text.replace("|", END) * 3
    tokenizer = byte_level(data.draw(st.sampled_from(["gpt2", "gpt4", r"\w+|\s"])))
    whole = tokenizer.encode(text, specials=policy).tolist()
    encoded = text.encode()
    pieces = []
    while encoded:
        length = data.draw(st.integers(1, 9))
        pieces.append(encoded[:length])
        encoded = encoded[length:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "_BLOCK", data.draw(st.integers(1, 30)))
        found = [i for ids in tokenizer.encode_chunks(pieces, specials=policy) for i in ids]
        chars = [i for ids in tokenizer.encode_chunks(text, specials=policy) for i in ids]
    assert found == chars == whole


@given(st.lists(st.sampled_from(["old", "oldest", " ", "\n", "  ", "wo"]), max_size=30))
def test_chunks_of_words_have_the_ids_of_the_whole(parts):
    tokenizer = words()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "_BLOCK", 4)
        found = [i for ids in tokenizer.encode_chunks(parts) for i in ids]
    assert found == tokenizer.encode("".join(parts)).tolist()


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "none", r"\w+|\s"])
def test_long_texts_are_encoded_bit_by_bit_without_a_difference(monkeypatch, pattern):
    tokenizer = byte_level(pattern)
    text = "the cat, ab 123's\n\n é" * 200
    for part in (text, text + END + text):
        monkeypatch.setattr("tinygrad_tf.text.bpe.tokenizer._SLICE", 1 << 30)
        whole = tokenizer.encode(part, specials="allow").tolist()
        monkeypatch.setattr("tinygrad_tf.text.bpe.tokenizer._SLICE", 100)
        monkeypatch.setattr(streaming, "_BLOCK", 100)
        assert tokenizer.encode(part, specials="allow").tolist() == whole
        assert tokenizer.count(part, specials="allow") == len(whole)


def test_a_stream_is_given_out_as_it_comes_and_names_true_positions():
    line = "the cat, the dog; 12 birds.\n"
    taken = 0

    def lines():
        nonlocal taken
        for taken in range(100_000):  # noqa: B007
            yield line

    stream = byte_level().encode_chunks(lines())
    assert byte_level().decode(next(stream)).startswith(line)
    assert taken * len(line) < 200_000
    late = [line] * 9_000 + [END]
    with pytest.raises(InputError, match=f"at position {9_000 * len(line)};"):
        list(byte_level().encode_chunks(late))


@given(st.lists(TEXTS, max_size=8))
def test_batches_are_single_texts_in_order(texts):
    tokenizer = byte_level()
    found = tokenizer.encode_batch(texts, specials="allow")
    assert [ids.tolist() for ids in found] == [
        tokenizer.encode(text, specials="allow").tolist() for text in texts
    ]


@pytest.mark.slow
def test_workers_give_what_one_process_gives():
    tokenizer = byte_level()
    texts = [f"the {n} abs" * (n % 7) for n in range(40)]
    alone, shared = tokenizer.encode_batch(texts), tokenizer.encode_batch(texts, workers=2)
    assert [a.tolist() for a in alone] == [b.tolist() for b in shared]
    with pytest.raises(InputError, match="special token"):
        tokenizer.encode_batch(["a", f"b{END}"], workers=2)
    with pytest.raises(InputError, match="0 workers"):
        tokenizer.encode_batch(texts, workers=0)


@given(TEXTS)
def test_offsets_are_the_tokens_places_in_the_bytes(text):
    tokenizer = byte_level()
    text = text.replace("|", END)
    data = text.encode()
    end = 0
    for token, start, stop in tokenizer.offsets(text, specials="allow"):
        assert start == end
        assert data[start:stop] == tokenizer.token_bytes(token)
        end = stop
    assert end == len(data)


@given(TEXTS, st.data())
def test_counts_of_parts_add_up(text, data):
    tokenizer = byte_level()
    ids = tokenizer.encode(text)
    cut = data.draw(st.integers(0, len(ids)))
    for count, whole in (
        (tokenizer.count_chars, len(text)),
        (tokenizer.count_bytes, len(text.encode())),
    ):
        assert count(ids[:cut]) + count(ids[cut:]) == count(ids) == whole


@given(st.lists(st.integers(0, 263), max_size=30))
def test_decoding_one_by_one_is_decoding(ids):
    tokenizer = byte_level()
    decoder = tokenizer.decoder()
    for _ in range(2):  # after flush it starts afresh
        assert "".join(map(decoder.push, ids)) + decoder.flush() == tokenizer.decode(ids)


def test_a_character_is_given_out_when_it_is_whole():
    decoder = byte_level().decoder()
    assert [decoder.push(byte) for byte in "é".encode()] == ["", "é"]


def test_ids_that_no_token_has_are_named():
    table = BPETable({**BPETable.from_merges([]).vocab, "ab": 300})
    tokenizer = BPETokenizer(table)
    assert tokenizer.vocab_size == 301
    for bad in ([-1], [97, 301], [97, 280]):
        for ask in (tokenizer.decode, tokenizer.count_chars, tokenizer.count_bytes):
            with pytest.raises(InputError, match=f"id {bad[-1]} "):
                ask(bad)
    with pytest.raises(InputError, match="280"):
        tokenizer.decoder().push(280)
    with pytest.raises(InputError, match="280"):
        tokenizer.token_bytes(280)
    assert tokenizer.token_text(280) == "<unused 280>"
    with pytest.raises(TypeError, match="float"):
        tokenizer.decode([1.5])


def test_tokens_are_shown_so_that_people_can_read_them():
    tokenizer = byte_level()
    shown = [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)]
    assert shown[65] == "A" and shown[0xE9] == "<0xE9>" and shown[258] == " the"
    assert shown[259] == "é" and shown[-1] == END


# -- what is stored


@pytest.mark.parametrize(
    "tokenizer",
    [
        byte_level(),
        byte_level("none", ()),
        byte_level("gpt4", ("<x y>", "a\nb")),
        byte_level(r" ?\w+| "),
        words(unk="<unk>", specials=("[X]",)),
        words("attached"),
    ],
    ids=["gpt2", "none", "specials", "own pattern", "separate", "attached"],
)
def test_json_builds_the_same_tokenizer(tokenizer):
    fields = json.loads(json.dumps(tokenizer.to_json()))
    again = BPETokenizer.from_json(fields)
    assert again.to_json() == tokenizer.to_json()
    assert again.sha256() == tokenizer.sha256()
    assert again.table.specials == tokenizer.table.specials
    assert again.table.pattern == tokenizer.table.pattern
    text = "old west the 1234567 older"
    options = {"specials": "allow", "unknown": "skip"}
    assert again.encode(text, **options).tolist() == tokenizer.encode(text, **options).tolist()


def test_hashes_tell_tokenizers_apart():
    others = [
        byte_level(),
        byte_level("gpt4"),
        byte_level(specials=()),
        byte_level(merges=MERGES[:-1]),
        byte_level(merges=[MERGES[-1], *MERGES[:-1]]),
        words(),
        words("attached"),
    ]
    assert len({tokenizer.sha256() for tokenizer in others}) == len(others)
    assert byte_level().sha256() == byte_level().sha256()


def test_byte_tokens_spell_their_bytes():
    tokenizer = byte_level()
    for token in range(256):
        assert tokenizer.token_bytes(token) == bytes([token])
        assert tokenizer.table.id_to_token[token] == to_chars(bytes([token]))
