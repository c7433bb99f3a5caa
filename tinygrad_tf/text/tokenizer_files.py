"""Files of tokenizers of every kind: our own JSON, and Hugging Face's for byte pairs."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.bpe.formats import load_bpe, parse_bpe
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer
from tinygrad_tf.text.tokenizers import SCHEMA_VERSION, ByteTokenizer, CharTokenizer, Tokenizer
from tinygrad_tf.text.word_tokenizer import WordTokenizer

# A new kind of tokenizer is one more line here.
KINDS: dict[str, Callable[[Mapping[str, Any]], Tokenizer]] = {
    "char": CharTokenizer.from_json,
    "byte": ByteTokenizer.from_json,
    "word": WordTokenizer.from_json,
}


def tokenizer_file(tokenizer: Tokenizer) -> bytes:
    """Return the content of a tokenizer's file, which is JSON."""
    return (json.dumps(tokenizer.to_json(), ensure_ascii=False, indent=1) + "\n").encode()


def save_tokenizer(tokenizer: Tokenizer, path: str | os.PathLike[str]) -> None:
    """Write a tokenizer as JSON; FailedError when the file cannot be written."""
    try:
        Path(path).write_bytes(tokenizer_file(tokenizer))
    except OSError as fault:
        raise FailedError(f"cannot write {path}: {fault.strerror or fault}") from fault


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Read the file of a tokenizer of any kind; InputError names the file and its fault."""
    try:
        content = Path(path).read_bytes()
    except OSError as fault:
        raise InputError(f"cannot read {path}: {fault.strerror or fault}") from fault
    return read_tokenizer(content, path)


def read_tokenizer(content: bytes, path: str | os.PathLike[str] = "tokenizer.json") -> Tokenizer:
    """Read a tokenizer from the content of its file; InputError names `path` and the fault."""
    try:
        fields = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise _malformed(path, f"it is not JSON ({fault})") from fault
    if not isinstance(fields, dict):
        raise _malformed(path, "it is not a JSON object")
    if "model" in fields and "kind" not in fields:
        return BPETokenizer(parse_bpe(content, path), "allow")
    if fields.get("schema_version") != SCHEMA_VERSION:
        raise _malformed(path, f"its schema_version is not {SCHEMA_VERSION}")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise _malformed(path, f"its kind {kind!r} is none of {', '.join(KINDS)}")
    try:
        tokenizer = KINDS[kind](fields)
    except InputError as fault:
        raise _malformed(path, fault.what) from fault
    if fields.keys() != tokenizer.to_json().keys():
        surplus = sorted(fields.keys() - tokenizer.to_json().keys())
        raise _malformed(path, f"it has unknown fields: {', '.join(surplus)}")
    return tokenizer


def find_tokenizer(directory: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer of a run, or of a Hugging Face model: tokenizer.json, or GPT-2's pair.

    InputError where the directory has neither.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(f"{folder} is no directory", "give that of a run, or of a GPT-2")
    if (folder / "tokenizer.json").exists():
        return load_tokenizer(folder / "tokenizer.json")
    if (folder / "vocab.json").exists():
        return BPETokenizer(load_bpe(folder), "allow")
    raise InputError(
        f"{folder} has no tokenizer: neither tokenizer.json nor vocab.json with merges.txt",
        "put the tokenizer of the model there",
    )


def require_same_tokenizer(expected: Tokenizer, given: Tokenizer) -> None:
    """Raise InputError, with both sizes and the first token that differs, unless they agree."""
    if expected.sha256() == given.sha256():
        return
    what = (
        f"the tokenizer ({given.kind}, {given.vocab_size} tokens) is not the one of the run "
        f"({expected.kind}, {expected.vocab_size} tokens)"
    )
    for token in range(min(expected.vocab_size, given.vocab_size)):
        old, new = expected.token_text(token), given.token_text(token)
        if old != new:
            what += f": token {token} is {new!r}, not {old!r}"
            break
    raise InputError(what, "use the tokenizer that the run was trained with")


def _malformed(path: str | os.PathLike[str], fault: str) -> InputError:
    return InputError(
        f"{path} is not a tokenizer of this program: {fault}",
        "use the file that training wrote",
    )
