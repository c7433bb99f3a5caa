"""The table of categories, against the ranges of Unicode 16, `unicodedata` and Hugging Face."""

import json
import unicodedata

import pytest

from tinygrad_tf.text.bpe.unicode16 import LAST, PROPERTIES, categories, ranges

# Python's name of each letter; those of more than one name are tested by property.
NAMES = {"A": "Lu", "a": "Ll", "t": "Lt", "m": "Lm", "o": "Lo", "d": "Nd", "l": "Nl", "n": "No"}
NAMES |= {"_": "Pc", "w": "Cc", "j": "Cf"}


def members(name: str) -> set[int]:
    return {code for first, last in ranges(PROPERTIES[name]) for code in range(first, last + 1)}


def test_every_code_point_has_one_category():
    assert len(categories()) == LAST + 1
    letters = "".join(PROPERTIES[name] for name in "LMNPSZC")
    assert len(set(letters)) == len(letters)
    assert set(categories().decode()) == set(letters)


def test_ranges_equal_the_unicode_data(shared_data):
    data = json.loads((shared_data / "unicode16_categories.json").read_text(encoding="utf-8"))
    for name, expected in data.items():
        found = ranges(PROPERTIES["White_Space" if name == "s" else name])
        assert [list(pair) for pair in found] == expected, name


@pytest.mark.slow
def test_categories_equal_unicodedata_where_it_knows_the_character():
    same_version = unicodedata.unidata_version.startswith("16.")
    differences = []
    for code, letter in enumerate(categories().decode()):
        theirs = unicodedata.category(chr(code))
        if theirs == "Cn" and not same_version:
            continue
        if theirs != NAMES.get(letter, theirs) or theirs[0] not in letter_classes(letter):
            differences.append(code)
    # Between versions a few characters change their category: 5 from Unicode 14 to 16.
    assert len(differences) <= (0 if same_version else 20), differences


def letter_classes(letter: str) -> str:
    return next(name for name in "LMNPSZC" if letter in PROPERTIES[name])


def test_white_space_is_not_what_python_takes_for_space():
    assert {chr(code) for code in members("White_Space")} == {
        chr(code) for code in range(LAST + 1) if chr(code).isspace()
    } - set("\x1c\x1d\x1e\x1f")


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_equal_those_of_tiktoken(name):
    tiktoken = pytest.importorskip("tiktoken")
    pattern = {"White_Space": r"\s", "Word": r"\w"}.get(name, rf"\p{{{name}}}")
    bytes_only = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=bytes_only, special_tokens={}
    )
    valid = [code for code in range(LAST + 1) if not 0xD800 <= code < 0xE000]
    matched = bytes(encoding.encode_ordinary("".join(map(chr, valid)))).decode()
    assert set(map(ord, matched)) == members(name) - set(range(0xD800, 0xE000))
