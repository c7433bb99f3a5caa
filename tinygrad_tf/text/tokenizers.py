"""Text to ids and back: by character, and by byte."""

import codecs
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinygrad_tf.errors import InputError

Ids = NDArray[np.int64]
Unknown = Literal["error", "skip"]

SCHEMA_VERSION = 1


class Decoder(Protocol):
    """Ids to text one at a time, giving out a character only when it is whole."""

    def push(self, token: int) -> str:
        """Take one id; return the characters that it completes, maybe none."""
        ...

    def flush(self) -> str:
        """Return what an unfinished character leaves (U+FFFD), and start afresh."""
        ...


class Tokenizer(Protocol):
    """The methods that training and generation need of a tokenizer of any kind."""

    @property
    def kind(self) -> str:
        """The name of the kind: "char", "byte", "word" or "bpe"."""
        ...

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        ...

    def encode(self, text: str, *, unknown: Unknown = "error", start: int = 0) -> Ids:
        """Return the ids (N,) of a text; `start` is added to positions named in a fault."""
        ...

    def encode_chunks(self, chunks: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of a text that comes in chunks: in all, exactly those of the whole."""
        ...

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of the ids (N,); InputError for an id outside the vocabulary."""
        ...

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        ...

    def known_ids(self) -> Ids:
        """Return the ids (N,) that have a token, ascending."""
        ...

    def count_chars(self, ids: ArrayLike) -> int:
        """Return how many characters the ids begin; counts of parts add up to the whole's."""
        ...

    def count_bytes(self, ids: ArrayLike) -> int:
        """Return the number of bytes of UTF-8 of the ids; parts add up to the whole's."""
        ...

    def token_text(self, token: int) -> str:
        """Return one token as people may see it."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return all that `load_tokenizer` needs."""
        ...

    def sha256(self) -> str:
        """Return a hash that two tokenizers share only if they give the same ids."""
        ...


class CharTokenizer:
    """One id a character, in the order of the code points of `vocab`.

    InputError when `vocab` is empty, not strictly ascending, or holds a lone surrogate.
    """

    kind = "char"

    def __init__(self, vocab: str) -> None:
        if not vocab:
            raise InputError("the vocabulary has no characters", "give a text that is not empty")
        codes = _code_points(vocab)
        if np.any(codes[1:] <= codes[:-1]):
            raise InputError(
                "the vocabulary is not in ascending order of code points without repeats",
                "build it with CharTokenizer.from_text",
            )
        if np.any((codes >= 0xD800) & (codes <= 0xDFFF)):
            raise InputError("the text holds a lone surrogate", "give well-formed text")
        self.vocab = vocab
        self._codes = codes
        # One entry past the highest code point stands for all that lie beyond.
        self._ids = np.full(int(codes[-1]) + 2, -1, dtype=np.int32)
        self._ids[codes] = np.arange(len(vocab), dtype=np.int32)

    @classmethod
    def from_text(cls, text: Iterable[str]) -> "CharTokenizer":
        """Build the vocabulary of a text, a string or its chunks."""
        characters: set[str] = set()
        for chunk in [text] if isinstance(text, str) else text:
            characters.update(chunk)
        return cls("".join(sorted(characters)))

    def __repr__(self) -> str:
        return f"CharTokenizer(vocab_size={self.vocab_size})"

    @property
    def vocab_size(self) -> int:
        """The number of characters in the vocabulary."""
        return len(self.vocab)

    def encode(self, text: str, *, unknown: Unknown = "error", start: int = 0) -> Ids:
        """Return the ids (N,) of the characters.

        A character outside the vocabulary is left out with `unknown="skip"`; otherwise an
        InputError names it, its code point, its first position and the nearest known ones.
        """
        codes = _code_points(text)
        ids = self._ids[np.minimum(codes, len(self._ids) - 1)].astype(np.int64)
        if ids.size and ids.min() < 0:
            if unknown == "error":
                raise self._unknown(codes, ids, start)
            ids = ids[ids >= 0]
        return ids

    def encode_chunks(self, chunks: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of each chunk; positions in a fault count from the first."""
        return _one_by_one(self, chunks)

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of the ids (N,)."""
        codes = self._codes[_checked(ids, self.vocab_size)]
        return str(codes.tobytes(), "utf-32-le")

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return _CharDecoder(self)

    def known_ids(self) -> Ids:
        """Return all ids, ascending."""
        return np.arange(self.vocab_size)

    def count_chars(self, ids: ArrayLike) -> int:
        """Return the number of ids, each being one character."""
        return int(np.size(ids))

    def count_bytes(self, ids: ArrayLike) -> int:
        """Return the length of their text in UTF-8."""
        return len(self.decode(ids).encode("utf-8"))

    def token_text(self, token: int) -> str:
        """Return the character."""
        return self.decode([token])

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the vocabulary."""
        return {"schema_version": SCHEMA_VERSION, "kind": self.kind, "vocab": self.vocab}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "CharTokenizer":
        """Build from what `to_json` gave."""
        if not isinstance(fields.get("vocab"), str):
            raise InputError('"vocab" is not a string')
        return cls(fields["vocab"])

    def sha256(self) -> str:
        """Return the hash of the vocabulary."""
        return _hash(self.to_json())

    def _unknown(self, codes: NDArray[np.uint32], ids: Ids, start: int) -> InputError:
        positions = np.flatnonzero(ids < 0)
        strange, first = np.unique(codes[positions], return_index=True)
        in_order = np.argsort(first)
        named = [
            self._describe(chr(strange[i]), start + int(positions[first[i]])) for i in in_order[:5]
        ]
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        return InputError(
            f"the vocabulary of {self.vocab_size} characters lacks {', '.join(named)}{more}",
            'write it with known characters, or use `unknown="skip"` to leave it out',
        )

    def _describe(self, char: str, position: int) -> str:
        near = " or ".join(map(repr, self.nearest(char)))
        known = f", nearest known {near}" if near else ""
        return f"{char!r} (U+{ord(char):04X}, position {position}{known})"

    def nearest(self, char: str) -> list[str]:
        """Return up to three known characters that may replace an unknown one.

        The other case, the letter without its accent, the plain form of a typographic
        character; failing these, the closest code point of the same general category.
        """
        plain = "".join(unicodedata.normalize("NFKD", c) for c in _QUOTES.get(char, char))
        variants = [*char.swapcase(), *plain, *plain.swapcase()]
        known = [c for c in dict.fromkeys(variants) if c in self.vocab]
        if not known:
            category = unicodedata.category(char)
            alike = [c for c in self.vocab if unicodedata.category(c) == category]
            known = sorted(alike, key=lambda c: abs(ord(c) - ord(char)))[:1]
        return known[:3]


class _CharDecoder:
    def __init__(self, tokenizer: CharTokenizer) -> None:
        self._tokenizer = tokenizer

    def push(self, token: int) -> str:
        return self._tokenizer.decode([token])

    def flush(self) -> str:
        return ""


class ByteTokenizer:
    """The 256 bytes of UTF-8: every text has ids, every sequence of ids is some bytes."""

    kind = "byte"
    vocab_size = 256

    def __repr__(self) -> str:
        return "ByteTokenizer()"

    def encode(self, text: str, *, unknown: Unknown = "error", start: int = 0) -> Ids:
        """Return the bytes (N,) of the text in UTF-8.

        Bytes that Python smuggled into the string as U+DC80..U+DCFF (a file name or an
        argument in another encoding) come out as they were; InputError for other surrogates.
        """
        try:
            data = text.encode("utf-8", "surrogateescape" if unknown == "error" else "ignore")
        except UnicodeEncodeError as fault:
            code = ord(text[fault.start])
            raise InputError(
                f"the text holds a lone surrogate (U+{code:04X}) at position {start + fault.start}",
                "give well-formed text",
            ) from None
        return self.encode_bytes(data)

    def encode_bytes(self, data: bytes) -> Ids:
        """Return any bytes at all as ids (N,)."""
        return np.frombuffer(data, dtype=np.uint8).astype(np.int64)

    def encode_chunks(self, chunks: Iterable[str]) -> Iterator[Ids]:
        """Yield the bytes of each chunk."""
        return _one_by_one(self, chunks)

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of the ids (N,), with U+FFFD where they are not UTF-8."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: ArrayLike) -> bytes:
        """Return the ids (N,) as the bytes they are: the exact inverse of `encode_bytes`."""
        return _checked(ids, self.vocab_size).astype(np.uint8).tobytes()

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return _ByteDecoder(self)

    def known_ids(self) -> Ids:
        """Return all ids, ascending."""
        return np.arange(self.vocab_size)

    def count_chars(self, ids: ArrayLike) -> int:
        """Return the number of bytes that begin a character."""
        return int(np.count_nonzero((np.asarray(ids) & 0xC0) != 0x80))

    def count_bytes(self, ids: ArrayLike) -> int:
        """Return the number of ids, each being one byte."""
        return int(np.size(ids))

    def token_text(self, token: int) -> str:
        """Return the ASCII character, or a name such as <0xE9>."""
        (byte,) = self.decode_bytes([token])
        return chr(byte) if byte < 0x80 else f"<0x{byte:02X}>"

    def to_json(self) -> dict[str, Any]:
        """Return the kind."""
        return {"schema_version": SCHEMA_VERSION, "kind": self.kind}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "ByteTokenizer":
        """Build from what `to_json` gave."""
        return cls()

    def sha256(self) -> str:
        """Return the hash of the kind."""
        return _hash(self.to_json())


class _ByteDecoder:
    def __init__(self, tokenizer: ByteTokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(self._tokenizer.decode_bytes([token]))

    def flush(self) -> str:
        return self._utf8.decode(b"", final=True)


_QUOTES = {"‘": "'", "’": "'", "“": "\"'", "”": "\"'", "«": "\"'", "»": "\"'"}


def _one_by_one(tokenizer: CharTokenizer | ByteTokenizer, chunks: Iterable[str]) -> Iterator[Ids]:
    position = 0
    for chunk in chunks:
        yield tokenizer.encode(chunk, start=position)
        position += len(chunk)


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _checked(ids: ArrayLike, vocab_size: int) -> NDArray[Any]:
    """Return ids as an integer array, all of them known."""
    array = np.asarray(ids)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"token ids are integers, not {array.dtype}")
    for extreme in (array.min(), array.max()):
        if not 0 <= extreme < vocab_size:
            raise InputError(
                f"token id {extreme} is outside the vocabulary of {vocab_size}",
                "decode with the tokenizer that the text was encoded with",
            )
    return array


def _hash(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
