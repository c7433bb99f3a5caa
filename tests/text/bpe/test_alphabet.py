"""The alphabet of bytes: 256 printable characters and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR, CHAR_TO_BYTE, to_bytes, to_chars


def test_known_characters():
    assert to_chars(b" the\n\r\t\0") == "ĠtheĊčĉĀ"
    assert to_chars(bytes([127, 128, 160, 173, 161, 255])) == "ġĢłŃ¡ÿ"
    assert to_chars("é".encode()) == "Ã©"


def test_characters_are_distinct_printable_and_in_ascending_order_of_the_moved():
    assert len(BYTE_TO_CHAR) == len(set(BYTE_TO_CHAR)) == len(CHAR_TO_BYTE) == 256
    assert all(char.isprintable() and not char.isspace() for char in BYTE_TO_CHAR)
    moved = [char for byte, char in enumerate(BYTE_TO_CHAR) if char != chr(byte)]
    assert moved == [chr(0x100 + place) for place in range(68)]


@given(st.binary())
def test_bytes_come_back(data):
    assert to_bytes(to_chars(data)) == data
    assert to_chars(data) == "".join(BYTE_TO_CHAR[byte] for byte in data)


@pytest.mark.parametrize("char", [" ", "\n", "\x7f", "\xa0", "\xad", "ń", "世", "😀"])
def test_what_is_not_of_the_alphabet_is_named(char):
    with pytest.raises(InputError, match=r"not written in the byte alphabet.*U\+") as caught:
        to_bytes(f"Ġ{char}")
    assert "\n" not in str(caught.value)


@pytest.mark.reference
def test_alphabet_is_that_of_hugging_face():
    tokenizers = pytest.importorskip("tokenizers")
    assert set(tokenizers.pre_tokenizers.ByteLevel.alphabet()) == set(BYTE_TO_CHAR)
