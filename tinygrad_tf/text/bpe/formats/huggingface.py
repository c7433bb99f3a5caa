"""Hugging Face's tokenizer.json, which is this program's own format as well.

Read are the byte-level and the word-level tokenizers without normalizer; anything that would
encode otherwise is refused by the name of its field. A post_processor is passed over, as it adds
tokens around a text and changes none.
"""

import json
import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import CHAR_TO_BYTE
from tinygrad_tf.text.bpe.formats.files import cannot_hold, parse_object, read_text
from tinygrad_tf.text.bpe.formats.format import Format
from tinygrad_tf.text.bpe.ranks import ambiguous
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter
from tinygrad_tf.text.bpe.table import MARK, BPETable, EndOfWord

# A `</w>` that is a symbol of its own takes a normalizer that puts a character after each word.
_END = "\ue000"
_ENDING = {
    "type": "Replace",
    "pattern": {"Regex": r"(?<=\S)(?!\S)"},
    "content": _END,
}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_WORDS = {"type": "WhitespaceSplit"}
_WORD_DECODERS: dict[str, dict[str, Any]] = {
    "attached": {"type": "BPEDecoder", "suffix": MARK},
    "separate": {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": _END}, "content": " "},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 0, "stop": 1},
        ],
    },
}
# Options of the model that this program does not do, with the values that ask for nothing.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "dropout": (0.0, 0),
    "continuing_subword_prefix": ("",),
    "byte_fallback": (False,),
}
_FLAGS = ("single_word", "lstrip", "rstrip")
_NOT_HERE = "use a tokenizer without it, or remove the field if the tokenizer can do without"


def to_fields(table: BPETable) -> dict[str, Any]:
    """Return the content of a tokenizer.json; InputError where it cannot hold the table."""
    if table.duplicates:
        raise cannot_hold("tokenizer.json", "several ids have the same token", "train it again")
    if table.by_rank and (token := ambiguous(table.vocab)):
        raise cannot_hold(
            "tokenizer.json",
            f"its ranks merge {token!r} in ways that no list of merges expresses",
            "keep the rank file",
        )
    by_id = sorted(table.specials.items(), key=lambda item: item[1])

    def spell(token: str) -> str:
        return _marked(table, token) if table.end_of_word == "separate" else token

    vocab = {**{spell(token): i for token, i in table.vocab.items()}, **table.specials}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": content, **dict.fromkeys(_FLAGS, False)}
            | {"normalized": False, "special": True}
            for content, i in by_id
        ],
        "normalizer": _ENDING if table.end_of_word == "separate" else None,
        "pre_tokenizer": _WORDS if table.kind == "classical" else _cutting(table.pattern),
        "post_processor": None,
        "decoder": _WORD_DECODERS[table.end_of_word]
        if table.end_of_word
        else _BYTE_LEVEL | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": table.unk,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": MARK if table.end_of_word == "attached" else None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": table.ignore_merges,
            "vocab": dict(sorted(vocab.items(), key=lambda item: item[1])),
            "merges": [[spell(left), spell(right)] for left, right in table.listed_merges()],
        },
    }


def dump(table: BPETable) -> bytes:
    """Return the tokenizer.json of a table; InputError where it cannot hold the table."""
    return (json.dumps(to_fields(table), ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def from_fields(fields: Mapping[str, Any]) -> BPETable:
    """Return the table of a tokenizer.json's content; InputError names the field at fault."""
    if fields.get("version", "1.0") != "1.0":
        raise InputError(f'"version" is {fields["version"]!r}, not "1.0"')
    for name in ("truncation", "padding"):
        _require(name, fields.get(name), fields.get(name) is None)
    separate = fields.get("normalizer") == _ENDING
    _require("normalizer", fields.get("normalizer"), separate or fields.get("normalizer") is None)
    processor = fields.get("post_processor")
    _require("post_processor", processor, processor is None or isinstance(processor, dict))
    model = fields.get("model")
    if not isinstance(model, dict):
        raise InputError('"model" is not an object')
    classical = fields.get("pre_tokenizer") == _WORDS
    pattern = "" if classical else _pattern(fields.get("pre_tokenizer"))
    attached = _checked_model(model, classical=classical, separate=separate)
    end_of_word: EndOfWord | None = "separate" if separate else "attached" if attached else None
    _check_decoder(fields.get("decoder"), end_of_word)
    vocab = _vocabulary(model.get("vocab"))
    merges = _merges(model.get("merges"), vocab)
    if separate:
        vocab = {_unmarked(token): i for token, i in vocab.items()}
        merges = [(_unmarked(left), _unmarked(right)) for left, right in merges]
    specials = _added(fields.get("added_tokens"))
    symbols = {*CHAR_TO_BYTE} if not classical else {t for t in vocab if len(t) == 1}
    used = symbols.union(*merges, (left + right for left, right in merges))
    return BPETable(
        # A special token stands in the vocabulary too: there it is one no more.
        vocab={token: i for token, i in vocab.items() if token in used or specials.get(token) != i},
        merges=tuple(merges),
        kind="classical" if classical else "byte-level",
        pattern=pattern,
        specials=specials,
        end_of_word=end_of_word,
        unk=(model.get("unk_token") or None) if classical else None,
        ignore_merges=model.get("ignore_merges", False),
    ).checked()


def _refused(name: str, value: object) -> InputError:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return InputError(f'"{name}" is {shown}, which this program does not do', _NOT_HERE)


def _require(name: str, value: object, fine: bool) -> None:
    if not fine:
        raise _refused(name, value)


def _checked_model(model: Mapping[str, Any], *, classical: bool, separate: bool) -> bool:
    """Check the model's options; return whether `</w>` is attached to the last character."""
    kind = model.get("type", "BPE")
    _require("model.type", kind, kind == "BPE")
    for name, plain in _PLAIN.items():
        value = model.get(name)
        fine = value is None or any(value == p and type(value) is type(p) for p in plain)
        _require(f"model.{name}", value, fine)
    ignore = model.get("ignore_merges", False)
    _require("model.ignore_merges", ignore, isinstance(ignore, bool))
    unk = model.get("unk_token")
    _require("model.unk_token", unk, unk is None or isinstance(unk, str))
    fuse = model.get("fuse_unk", False)
    fine = isinstance(fuse, bool) and not (fuse and unk and classical)
    _require("model.fuse_unk", fuse, fine)
    suffix = model.get("end_of_word_suffix")
    _require("model.end_of_word_suffix", suffix, suffix is None or isinstance(suffix, str))
    suffix = suffix or None
    wanted = MARK if classical and not separate else None
    _require("model.end_of_word_suffix", suffix, suffix == wanted)
    return suffix is not None


def _check_decoder(decoder: object, end_of_word: EndOfWord | None) -> None:
    if end_of_word:
        fine = decoder in (None, _WORD_DECODERS[end_of_word])
    else:
        fine = decoder is None or (isinstance(decoder, dict) and decoder.get("type") == "ByteLevel")
    _require("decoder", decoder, fine)


def _pattern(pre: object) -> str:
    """Return the splitter's pattern that a byte-level pre_tokenizer stands for."""
    steps = [pre]
    if isinstance(pre, dict) and pre.get("type") == "Sequence":
        steps = pre.get("pretokenizers") or [None]
        _require("pre_tokenizer.pretokenizers", steps, isinstance(steps, list))
    *before, last = steps
    if not isinstance(last, dict) or last.get("type") != "ByteLevel" or len(before) > 1:
        raise _refused("pre_tokenizer", pre)
    prefix = last.get("add_prefix_space")
    _require("pre_tokenizer.add_prefix_space", prefix, prefix is False)
    regex = last.get("use_regex", True)
    if not before:
        return "gpt2" if regex else "none"
    _require("pre_tokenizer.use_regex", regex, regex is False)
    return _split_pattern(before[0])


def _split_pattern(split: object) -> str:
    if not isinstance(split, dict) or split.get("type") != "Split":
        raise _refused("pre_tokenizer", split)
    pattern = split.get("pattern")
    match pattern:
        case {"Regex": str(source)}:
            if repeated := re.search(r"\{[\d,]+\}\+", source):
                raise InputError(
                    f'"pre_tokenizer.pattern" has {repeated[0]}, which Hugging Face repeats '
                    "and other tools take as possessive",
                    "write it without the last +",
                )
        case {"String": str(literal)} if literal:
            source = re.escape(literal)
        case _:
            raise _refused("pre_tokenizer.pattern", pattern)
    splitter = Splitter(source)
    keeps_matches = split.get("behavior") == "Removed" and split.get("invert") is True
    if not (keeps_matches and splitter.known):  # where nothing lies between the matches
        behavior, invert = split.get("behavior"), split.get("invert", False)
        _require("pre_tokenizer.behavior", behavior, behavior == "Isolated")
        _require("pre_tokenizer.invert", invert, invert is False)
    return source if splitter.name == "custom" else splitter.name


def _cutting(pattern: str) -> dict[str, Any]:
    """Return the pre_tokenizer for a splitter's pattern."""
    splitter = Splitter(pattern)
    whole = {**_BYTE_LEVEL, "use_regex": splitter.name == "gpt2"}
    if splitter.name in ("gpt2", "none"):
        return whole
    split = {
        "type": "Split",
        "pattern": {"Regex": splitter.source},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, whole]}


def _vocabulary(vocab: object) -> dict[str, int]:
    if not isinstance(vocab, dict) or not vocab:
        raise InputError('"model.vocab" is not an object of tokens and ids')
    for token, i in vocab.items():
        if type(i) is not int:
            raise InputError(f'"model.vocab" has the id {i!r} for {token!r}, not a whole number')
    return vocab


def _merges(merges: object, vocab: Mapping[str, int]) -> list[tuple[str, str]]:
    if not isinstance(merges, list):
        raise InputError('"model.merges" is not a list')
    pairs = [
        _pair(entry, number, vocab)
        for number, entry in enumerate(merges)
        if not (isinstance(entry, str) and entry.startswith("#version"))
    ]
    # A merge that occurs twice has its later rank: dicts keep the last place when reversed.
    return list(dict.fromkeys(reversed(pairs)))[::-1]


def _pair(entry: object, number: int, vocab: Mapping[str, int]) -> tuple[str, str]:
    """Return one merge: ["a", "b"], or "a b" as files of old have it."""
    match entry:
        case [str(left), str(right)]:
            return left, right
        case str():
            words = entry.split(" ")
            ways = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
            if len(ways) > 1:
                ways = [(a, b) for a, b in ways if {a, b, a + b} <= vocab.keys()]
            if len(ways) == 1:
                return ways[0]
    raise InputError(f'"model.merges" has entry {number}, {entry!r}, which is not two tokens')


def _added(added: object) -> dict[str, int]:
    """Return the special tokens of added_tokens."""
    entries = added or []
    if not isinstance(entries, list):
        raise InputError('"added_tokens" is not a list')
    specials: dict[str, int] = {}
    normalized: dict[str, bool] = {}
    for number, entry in enumerate(entries):
        match entry:
            case {"id": int(i), "content": str(content)} if content and content not in specials:
                specials[content] = i
                normalized[content] = bool(entry.get("normalized"))
            case _:
                raise InputError(f'"added_tokens" has entry {number}, {entry!r}, at fault')
        for flag in _FLAGS:
            _require(f"added_tokens.{flag}", entry.get(flag, False), not entry.get(flag))
    # Those with `normalized` are looked for after the others: the same where none overlap.
    for early, late in product(specials, specials):
        if not normalized[early] and normalized[late] and _overlap(early, late):
            raise _refused("added_tokens.normalized", True)
    return specials


def _overlap(a: str, b: str) -> bool:
    """Return True if two strings can share characters of a text."""
    ends = any(a[-n:] == b[:n] or b[-n:] == a[:n] for n in range(1, min(len(a), len(b))))
    return ends or a in b or b in a


def _marked(table: BPETable, token: str) -> str:
    return token[: -len(MARK)] + _END if table.vocab[token] in table.word_ends else token


def _unmarked(token: str) -> str:
    return token.replace(_END, MARK)


def read_otherwise(pattern: str) -> str:
    """Return the first part of a user's pattern that Hugging Face reads otherwise, or nothing."""
    if pattern in PATTERNS or pattern in PATTERNS.values():
        return ""
    found = re.search(r"\\[wWbBZ]|(?<!\\)(?<!\[)\^|(?<!\\)\$|\(\?[a-z]*i", pattern)
    return found[0] if found else ""


def _notes(table: BPETable) -> list[str]:
    read = read_otherwise(table.pattern)
    if not read:
        return []
    return [
        f"Hugging Face reads {read} in this pattern otherwise: its ids may differ; write "
        "classes such as [\\p{L}\\p{M}\\p{N}_] instead"
    ]


FORMAT = Format(
    "huggingface",
    read=lambda path, _: from_fields(parse_object(path, read_text(path))),
    write=lambda table, path: {path: dump(table)},
    has_start=lambda start: start.lstrip().startswith(b"{"),
    ending=".json",
    in_directory=("tokenizer.json",),
    notes=_notes,
)
