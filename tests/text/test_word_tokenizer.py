"""The word tokenizer: what it cuts, what comes back as it was, and what it refuses."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.corpus.phrases import draw_phrases
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.text.word_tokenizer import (
    END,
    PAD,
    SPECIALS,
    START,
    UNK,
    WordTokenizer,
    split_words,
)

TEXTS = st.text(st.sampled_from("ab sé\u0301Ñ¿?.,'’-1 \n\t\u2003(“”<>_"), max_size=25)
WORDY = TEXTS.filter(split_words)


def spaced(text: str) -> str:
    """A text with the spacing that decoding gives."""
    tokenizer = WordTokenizer.from_texts([text])
    return tokenizer.decode(tokenizer.encode(text))


def test_it_is_a_tokenizer() -> None:
    tokenizer: Tokenizer = WordTokenizer(["a"])
    assert tokenizer.kind == "word"


def test_special_tokens_come_first() -> None:
    tokenizer = WordTokenizer(["bola", "la"])
    assert (PAD, START, END, UNK) == (0, 1, 2, 3)
    assert [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)] == [
        *SPECIALS,
        "bola",
        "la",
    ]
    assert list(tokenizer.known_ids()) == [4, 5]
    assert list(tokenizer.encode("la bola")) == [5, 4]
    assert tokenizer.encode("").shape == (0,) and tokenizer.encode("").dtype == np.int64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("¿Es azul la bola?", ["¿", "Es", "azul", "la", "bola", "?"]),
        ("the girl's balls", ["the", "girl", "'s", "balls"]),
        ("I don't up-to-date", ["I", "don't", "up-to-date"]),
        ("1,500.5 or 3.", ["1,500.5", "or", "3", "."]),
        ("dogs' x-s 'so a - b", ["dogs", "'", "x-s", "'", "so", "a", "-", "b"]),
        ("lapi\u0301z", ["lap\u00edz"]),
        (" \n\t", []),
    ],
)
def test_where_it_cuts(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "¿Es azul la bola?",
        "the girl's blue ball",
        "It's 1,5 (or so): “Ketan”, ¡hola!",
        "don't: up-to-date…",
    ],
)
def test_usual_spacing_comes_back(text: str) -> None:
    assert spaced(text) == text


def test_the_phrases_come_back_exactly() -> None:
    phrases = [phrase for part in draw_phrases(2000, 200, seed=3) for phrase in part]
    for side in ("source", "target"):
        texts = [getattr(phrase, side) for phrase in phrases]
        tokenizer = WordTokenizer.from_texts(texts)
        assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


@given(WORDY)
def test_decoding_only_changes_the_spacing(text: str) -> None:
    again = spaced(text)
    assert split_words(again) == split_words(text)
    assert spaced(again) == again
    assert "".join(again.split()) == "".join("".join(split_words(text)).split())


@given(WORDY)
def test_decoder_equals_the_whole_decode(text: str) -> None:
    tokenizer = WordTokenizer.from_texts([text])
    ids = [START, *tokenizer.encode(text).tolist(), END, PAD]
    decoder = tokenizer.decoder()
    for _ in range(2):  # a flush leaves nothing behind
        pushed = "".join(map(decoder.push, ids)) + decoder.flush()
        assert pushed == tokenizer.decode(ids) == tokenizer.decode(tokenizer.encode(text))


@given(st.lists(TEXTS, max_size=5))
def test_chunks_give_the_ids_of_the_whole(chunks: list[str]) -> None:
    tokenizer = WordTokenizer.from_texts(["".join(chunks), "x"])
    whole = tokenizer.encode("".join(chunks)).tolist()
    assert [i for ids in tokenizer.encode_chunks(chunks) for i in ids.tolist()] == whole


@given(WORDY, st.data())
def test_counts_of_parts_add_up(text: str, data: st.DataObject) -> None:
    tokenizer = WordTokenizer.from_texts([text])
    ids = tokenizer.encode(text)
    cut = data.draw(st.integers(0, len(ids)))
    for count in (tokenizer.count_chars, tokenizer.count_bytes):
        assert count(ids[:cut]) + count(ids[cut:]) == count(ids)
    letters = "".join(split_words(text))
    assert tokenizer.count_chars([START, *ids, UNK, END]) == len(letters)
    assert tokenizer.count_bytes(ids) == len(letters.encode())


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_the_vocabulary_is_that_of_the_texts_most_frequent_first(texts: list[str]) -> None:
    every = [word for text in texts for word in split_words(text)]
    if not every:
        with pytest.raises(InputError, match="no words"):
            WordTokenizer.from_texts(texts)
        return
    words = WordTokenizer.from_texts(texts).words
    assert sorted(words) == sorted(set(every))
    counts = [every.count(word) for word in words]
    assert counts == sorted(counts, reverse=True)
    assert WordTokenizer.from_texts(reversed(texts)).words == words
    assert WordTokenizer.from_texts(texts, max_words=1).words == words[:1]


def test_rare_words_can_be_left_out() -> None:
    tokenizer = WordTokenizer.from_texts(["b a b c", "a b"], min_count=2)
    assert tokenizer.words == ("b", "a")
    with pytest.raises(InputError):
        WordTokenizer.from_texts(["a"], min_count=0)
    with pytest.raises(InputError):
        WordTokenizer.from_texts(["a"], max_words=0)


def test_unknown_words_are_named_left_out_or_become_unk() -> None:
    tokenizer = WordTokenizer(["the", "The", "ball", "is", "blue"])
    text = "the Ball is xyz xyz"
    with pytest.raises(InputError) as caught:
        tokenizer.encode(text, start=100)
    message = str(caught.value)
    assert "'Ball' (position 104, nearest known 'ball')" in message
    assert "'xyz' (position 112)" in message and message.count("xyz") == 1
    assert "the vocabulary of 5 words" in message
    assert tokenizer.decode(tokenizer.encode(text, unknown="skip")) == "the is"
    assert tokenizer.encode(text, unknown="unk").tolist() == [4, UNK, 7, UNK, UNK]
    assert tokenizer.decode([4, UNK]) == "the <unk>"
    with pytest.raises(InputError, match="and 2 more"):
        tokenizer.encode("1 2 3 4 5 6 7")


def test_the_name_of_a_special_token_in_a_text_is_not_one() -> None:
    tokenizer = WordTokenizer.from_texts(["<pad> <end>"])
    assert min(tokenizer.encode("<pad><end>")) >= len(SPECIALS)


@given(WORDY)
def test_json_round_trip(text: str) -> None:
    tokenizer = WordTokenizer.from_texts([text])
    again = WordTokenizer.from_json(json.loads(json.dumps(tokenizer.to_json())))
    assert again.words == tokenizer.words and again.sha256() == tokenizer.sha256()
    assert again.sha256() != WordTokenizer([*tokenizer.words, "other"]).sha256()


@pytest.mark.parametrize(
    "words", [[], ["a", "a"], ["a b"], [""], ["a?"], ["i\u0301"], ["\ud800"], " a", "aa"]
)
def test_bad_vocabularies_are_refused(words: list[str]) -> None:
    with pytest.raises(InputError):
        WordTokenizer(words)


@pytest.mark.parametrize("fields", [{}, {"words": "ab"}, {"words": [1]}])
def test_bad_files_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError, match="not a list of strings"):
        WordTokenizer.from_json(fields)


@pytest.mark.parametrize("ids", [[6], [-1]])
def test_ids_outside_the_vocabulary_are_refused(ids: list[int]) -> None:
    tokenizer = WordTokenizer(["a", "b"])
    for give in (tokenizer.decode, tokenizer.count_chars, tokenizer.count_bytes):
        with pytest.raises(InputError, match="outside the vocabulary of 6"):
            give(ids)
