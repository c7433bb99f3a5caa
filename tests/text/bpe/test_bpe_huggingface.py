"""tokenizer.json: ways to write the same, and what is refused by the name of its field."""

import json

import pytest

from tests.text.bpe.samples import BYTES, ids, saved, trained
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.formats import huggingface, load_bpe
from tinygrad_tf.text.bpe.splitting import PATTERNS


def fields(**changes):
    """A tokenizer.json, with changes at dotted places."""
    base = huggingface.to_fields(trained(specials=["<x>"]))
    for place, value in changes.items():
        at = base
        *above, last = place.split("__")
        for name in above:
            at = at[name]
        at[last] = value
    return json.loads(json.dumps(base))


def test_merges_of_old_and_new_files():
    vocab = BYTES | {"ab": 256, "b c": 257, "ab c": 258}
    for written, meant in (
        (["a b"], [("a", "b")]),
        ([["a", "b"]], [("a", "b")]),
        (["#version: 0.2", "a b"], [("a", "b")]),
        ([["a", "b c"]], [("a", "b c")]),
        (["a b c"], [("a", "b c")]),
        (["a b", "a b c", "a b"], [("a", "b c"), ("a", "b")]),
    ):
        table = huggingface.from_fields(fields(model__vocab=vocab, model__merges=written))
        assert list(table.merges) == meant
    vocab = BYTES | {"ab": 256, "b c": 257, "ab c": 258, "a b": 259}
    table = huggingface.from_fields(fields(model__vocab=vocab, model__merges=["a b c"]))
    assert list(table.merges) == [("a", "b c")]  # as there is no "a bc"
    vocab |= {"a bc": 260}
    for written in (["a b c"], ["ab"], [["a"]], [7], ["a  b"]):
        with pytest.raises(InputError, match=r"model\.merges"):
            huggingface.from_fields(fields(model__vocab=vocab, model__merges=written))
    with pytest.raises(InputError, match="needs 'xy'"):
        huggingface.from_fields(fields(model__vocab=BYTES | {"x": 120}, model__merges=["x y"]))


def added(content="<x>", i=261, **flags):
    names = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": i, "content": content, "special": True} | dict.fromkeys(names, False) | flags


SPLIT = {
    "type": "Split",
    "pattern": {"Regex": r"\p{N}{1,3}|[^\p{N}]+"},
    "behavior": "Isolated",
    "invert": False,
}
PLAIN = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


@pytest.mark.parametrize(
    ("pre", "pattern"),
    [
        ({"type": "ByteLevel", "add_prefix_space": False}, "gpt2"),
        (PLAIN, "none"),
        (sequence(PLAIN | {"use_regex": True}), "gpt2"),
        (sequence(SPLIT, PLAIN), SPLIT["pattern"]["Regex"]),
        (sequence(SPLIT | {"pattern": {"String": "a."}}, PLAIN), r"a\."),
        (
            sequence(
                SPLIT
                | {
                    "pattern": {"Regex": PATTERNS["gpt4"]},
                    "behavior": "Removed",
                    "invert": True,
                },
                PLAIN,
            ),
            "gpt4",
        ),
    ],
)
def test_ways_to_write_a_pattern(pre, pattern):
    assert huggingface.from_fields(fields(pre_tokenizer=pre)).pattern == pattern


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": "2.0"}, "version"),
        ({"truncation": {"max_length": 5}}, "truncation"),
        ({"padding": {"strategy": "x"}}, "padding"),
        ({"normalizer": {"type": "NFC"}}, "normalizer"),
        ({"pre_tokenizer": None}, "pre_tokenizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "pre_tokenizer"),
        ({"pre_tokenizer": sequence()}, "pre_tokenizer"),
        ({"pre_tokenizer": sequence(SPLIT, SPLIT, PLAIN)}, "pre_tokenizer"),
        ({"pre_tokenizer": sequence({"type": "Digits"}, PLAIN)}, "pre_tokenizer"),
        (
            {"pre_tokenizer": sequence(SPLIT, PLAIN | {"use_regex": True})},
            "pre_tokenizer.use_regex",
        ),
        ({"pre_tokenizer": PLAIN | {"add_prefix_space": True}}, "pre_tokenizer.add_prefix_space"),
        (
            {"pre_tokenizer": sequence(SPLIT | {"behavior": "Removed"}, PLAIN)},
            "pre_tokenizer.behavior",
        ),
        (
            {"pre_tokenizer": sequence(SPLIT | {"behavior": "Removed", "invert": True}, PLAIN)},
            "pre_tokenizer.behavior",
        ),
        ({"pre_tokenizer": sequence(SPLIT | {"invert": True}, PLAIN)}, "pre_tokenizer.invert"),
        ({"pre_tokenizer": sequence(SPLIT | {"pattern": 3}, PLAIN)}, "pre_tokenizer.pattern"),
        (
            {"pre_tokenizer": sequence(SPLIT | {"pattern": {"Regex": r"\d{1,3}+|\D+"}}, PLAIN)},
            "pre_tokenizer.pattern",
        ),
        ({"decoder": {"type": "WordPiece"}}, "decoder"),
        ({"model": None}, "model"),
        ({"model__type": "Unigram"}, "model.type"),
        ({"model__dropout": 0.1}, "model.dropout"),
        ({"model__continuing_subword_prefix": "##"}, "model.continuing_subword_prefix"),
        ({"model__end_of_word_suffix": "</w>"}, "model.end_of_word_suffix"),
        ({"model__byte_fallback": True}, "model.byte_fallback"),
        ({"model__ignore_merges": 1}, "model.ignore_merges"),
        ({"model__unk_token": 1}, "model.unk_token"),
        ({"model__vocab": []}, "model.vocab"),
        ({"model__vocab": {**BYTES, "x": "y"}}, "model.vocab"),
        ({"model__merges": "a b"}, "model.merges"),
        ({"added_tokens": 4}, "added_tokens"),
        ({"added_tokens": [4]}, "added_tokens"),
        ({"added_tokens": [{"id": "a", "content": "b"}]}, "added_tokens"),
        ({"added_tokens": [added(), added()]}, "added_tokens"),
        ({"added_tokens": [added(lstrip=True)]}, "added_tokens.lstrip"),
        ({"added_tokens": [added(rstrip=True)]}, "added_tokens.rstrip"),
        ({"added_tokens": [added(single_word=True)]}, "added_tokens.single_word"),
        ({"added_tokens": [added(), added("x>y", 262, normalized=True)]}, "added_tokens.normal"),
    ],
)
def test_what_would_encode_otherwise_is_refused_by_its_field(tmp_path, change, field):
    path = saved(tmp_path, json.dumps(fields(**change)))
    with pytest.raises(InputError, match=f'"{field}') as fault:
        load_bpe(path)
    assert str(path) in fault.value.what and "\n" not in str(fault.value)


def test_ids_of_added_tokens_are_those_of_the_vocabulary():
    with pytest.raises(InputError, match="'<x>' has the id 300 and, in the vocabulary, 261"):
        huggingface.from_fields(fields(added_tokens=[added(i=300)]))
    table = huggingface.from_fields(fields(added_tokens=[added(), added("<y>", 400)]))
    assert table.specials == {"<x>": 261, "<y>": 400}
    both = fields(added_tokens=[added("th", 256), added(normalized=True)])
    table = huggingface.from_fields(both)
    assert ids(table, " thx<x>", specials="allow") == [32, 256, 120, 261]
    assert ids(table, " th", specials="text") == [257]


def test_what_changes_no_ids_is_passed_over():
    changed = fields(
        post_processor={"type": "ByteLevel", "trim_offsets": False},
        decoder=None,
        unheard_of=1,
        model__continuing_subword_prefix="",
        model__end_of_word_suffix="",
        model__dropout=0.0,
        model__unk_token="<x>",
    )
    for name in ("version", "truncation", "padding", "normalizer"):
        del changed[name]
    assert huggingface.from_fields(changed) == huggingface.from_fields(fields())


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "not JSON"),
        ('{"model": 1, "model": 2}', "'model' occurs twice"),
        (b'{"model": "\xff"}', "byte 11 .line 1. is not UTF-8"),
        ("{" * 100_000, "JSON"),
        ('{"a": ' * 100_000, "JSON"),
    ],
)
def test_files_that_are_not_json(tmp_path, content, fault):
    with pytest.raises(InputError, match=fault) as caught:
        load_bpe(saved(tmp_path, content))
    assert len(str(caught.value).splitlines()) == 1
