"""The table of a byte pair encoding: tokens, merges, and the pattern that cuts text before them."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR, CHAR_TO_BYTE
from tinygrad_tf.text.bpe.ranks import merges_of_ranks

Kind = Literal["byte-level", "classical"]
EndOfWord = Literal["separate", "attached"]
MARK = "</w>"

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class BPETable:
    """The tokens and merges of one tokenizer, in Hugging Face's notation.

    `vocab` maps token strings to ids, which may leave holes: byte-level tokens are spelled with
    one character a byte (`alphabet`), classical ones with their characters and `</w>`.
    `merges` are in rank order. `pattern` is a name or the source that `Splitter` takes;
    classical tables cut at whitespace instead. `specials` map whole texts to ids.
    `ignore_merges`: a piece that is itself a token is taken whole. `by_rank`: no list of merges;
    that pair merges first whose joined bytes are the token with the lowest id (tiktoken's rule).
    `duplicates` are ids that encoding never gives, with the token that they decode to.
    """

    vocab: Mapping[str, int]
    merges: Sequence[tuple[str, str]] = ()
    kind: Kind = "byte-level"
    pattern: str = "gpt2"
    specials: Mapping[str, int] = field(default_factory=dict)
    end_of_word: EndOfWord | None = None
    unk: str | None = None
    ignore_merges: bool = False
    by_rank: bool = False
    duplicates: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def from_merges(
        cls,
        merges: Sequence[tuple[str, str]],
        *,
        pattern: str = "gpt2",
        specials: Sequence[str] = (),
        order: Literal["bytes", "huggingface"] = "bytes",
    ) -> "BPETable":
        """Build a byte-level table from merges spelled in the byte alphabet.

        Ids by `order`: "bytes" is the 256 bytes, the merges, then the specials; "huggingface" is
        the specials, the bytes in the order of their characters, then the merges.
        """
        if order == "bytes":
            base, first = list(BYTE_TO_CHAR), 0
        else:
            base, first = sorted(BYTE_TO_CHAR), len(specials)
        vocab = _numbered([*base, *(left + right for left, right in merges)], first)
        first_special = len(vocab) if order == "bytes" else 0
        return cls(
            vocab=vocab,
            merges=tuple(merges),
            pattern=pattern,
            specials=_numbered(specials, first_special),
        ).checked()

    @classmethod
    def classical(
        cls,
        alphabet: Sequence[str],
        merges: Sequence[tuple[str, str]],
        *,
        end_of_word: EndOfWord = "separate",
        unk: str | None = None,
        specials: Sequence[str] = (),
    ) -> "BPETable":
        """Build a table of words: ids for the alphabet, the merges, `unk`, then the specials.

        The alphabet is the symbols before any merge, `</w>` or its attached forms included.
        """
        tokens = [*alphabet, *(left + right for left, right in merges)]
        tokens += [unk] if unk is not None else []
        return cls(
            vocab=_numbered(tokens, 0),
            merges=tuple(merges),
            kind="classical",
            pattern="",
            specials=_numbered(specials, len(tokens)),
            end_of_word=end_of_word,
            unk=unk,
        ).checked()

    @property
    def size(self) -> int:
        """The highest id and one: the rows that an embedding needs."""
        ids = [*self.vocab.values(), *self.specials.values(), *self.duplicates]
        return max(ids, default=-1) + 1

    @cached_property
    def id_to_token(self) -> dict[int, str]:
        """The string of every id, specials included."""
        of_vocab = {token: string for string, token in self.vocab.items()}
        of_specials = {token: string for string, token in self.specials.items()}
        return {**self.duplicates, **of_specials, **of_vocab}

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token; at the end of a word they end in a space.

        InputError for an id that no token has.
        """
        try:
            string = self.id_to_token[token]
        except KeyError:
            raise InputError(
                f"no token has the id {token} (of {self.size})",
                "decode with the tokenizer that the text was encoded with",
            ) from None
        if token in self._special_ids:
            return string.encode("utf-8", "surrogateescape")
        if self.kind == "byte-level":
            return spelled_bytes(string)
        if token in self.word_ends:
            string = string[: -len(MARK)] + " "
        return string.encode("utf-8", "surrogateescape")

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self.specials.values()) - frozenset(self.vocab.values())

    @cached_property
    def word_ends(self) -> frozenset[int]:
        """The ids of a classical table whose tokens end with `</w>`."""
        if self.kind != "classical":
            return frozenset()
        return frozenset(i for token, i in self.vocab.items() if token.endswith(MARK))

    def is_special(self, token: int) -> bool:
        """Return True if an id is that of a special token and of nothing else."""
        return token in self._special_ids

    def listed_merges(self) -> Sequence[tuple[str, str]]:
        """Return the merges in rank order, found from the ranks where the table has only these."""
        return merges_of_ranks(self.vocab) if self.by_rank else self.merges

    def sha256(self) -> str:
        """Return a hash that two tables share only if they give the same ids."""
        fields = {
            "kind": self.kind,
            "vocab": dict(self.vocab),
            "merges": [list(pair) for pair in self.listed_merges()],
            "pattern": self.pattern,
            "specials": dict(self.specials),
            "end_of_word": self.end_of_word,
            "unk": self.unk,
            "ignore_merges": self.ignore_merges,
            "duplicates": {str(token): string for token, string in self.duplicates.items()},
        }
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def checked(self) -> "BPETable":
        """Return the table itself; InputError names the first fault that it has."""
        self._check_ids()
        self._check_specials()
        self._check_symbols()
        self._check_merges()
        return self

    def _check_ids(self) -> None:
        if not self.vocab:
            raise _fault("it has no tokens")
        for string, token in [*self.vocab.items(), *self.specials.items()]:
            if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < 2**31:
                raise _fault(f"the id of {string!r} is {token!r}, not a whole number from 0")
            if not string:
                raise _fault(f"token {token} is empty")
        shared = [token for token, n in Counter(self.vocab.values()).items() if n > 1]
        if shared:
            names = [repr(s) for s, token in self.vocab.items() if token == shared[0]]
            raise _fault(f"{' and '.join(names[:2])} have the same id {shared[0]}")
        taken = [t for t in self.duplicates if t in self.id_to_token_of_vocab]
        if taken or any(string not in self.vocab for string in self.duplicates.values()):
            raise _fault("its duplicate ids are not further ids of known tokens")

    @cached_property
    def id_to_token_of_vocab(self) -> dict[int, str]:
        """The string of every id but those of specials and duplicates."""
        return {token: string for string, token in self.vocab.items()}

    def _check_specials(self) -> None:
        seen: dict[int, str] = {}
        everything = (token for token in (*self.specials, *self.vocab) if not token.isascii())
        if halves := [token for token in everything if _SURROGATE.search(token)]:
            raise _fault(f"the token {halves[0]!r} holds a lone surrogate")
        for string, token in self.specials.items():
            other = seen.get(token, self.id_to_token_of_vocab.get(token, string))
            if other != string:
                raise _fault(f"the special token {string!r} has the id {token} of {other!r}")
            if self.vocab.get(string, token) != token:
                raise _fault(
                    f"the special token {string!r} has the id {token} "
                    f"and, in the vocabulary, {self.vocab[string]}"
                )
            seen[token] = string

    def _check_symbols(self) -> None:
        if self.kind == "byte-level":
            missing = [byte for byte, char in enumerate(BYTE_TO_CHAR) if char not in self.vocab]
            if missing:
                first = ", ".join(f"0x{byte:02X}" for byte in missing[:3])
                more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
                raise _fault(f"it has no token for the bytes {first}{more}")
            if self.end_of_word or self.unk:
                raise _fault("a byte-level table has neither </w> nor an unknown token")
        elif self.kind != "classical" or self.end_of_word not in ("separate", "attached"):
            raise _fault(f"its kind is {self.kind!r} with end_of_word {self.end_of_word!r}")
        elif self.end_of_word == "separate" and MARK not in self.vocab:
            raise _fault(f"it has no token {MARK!r} for the end of a word")
        elif self.unk is not None and self.unk not in {*self.vocab, *self.specials}:
            raise _fault(f"the unknown token {self.unk!r} is not in the vocabulary")

    def _check_merges(self) -> None:
        if self.by_rank and self.merges:
            raise _fault("a table that merges by rank has no list of merges")
        if self.by_rank and self.kind != "byte-level":
            raise _fault("only byte-level tables merge by rank")
        for rank, (left, right) in enumerate(self.merges):
            for string in (left, right, left + right):
                if string not in self.vocab:
                    raise _fault(
                        f"merge {rank} ({left!r}, {right!r}) needs {string!r}, "
                        "which is not in the vocabulary"
                    )
        repeated = [pair for pair, n in Counter(self.merges).items() if n > 1]
        if repeated:
            raise _fault(f"the merge {repeated[0]} occurs twice")


def spelled_bytes(string: str) -> bytes:
    """Return the bytes that a byte-level token spells.

    A token with characters outside the byte alphabet is its UTF-8, as in Hugging Face.
    """
    try:
        return bytes([CHAR_TO_BYTE[char] for char in string])
    except KeyError:
        return string.encode("utf-8", "surrogateescape")


def _numbered(strings: Iterable[str], first: int) -> dict[str, int]:
    ids: dict[str, int] = {}
    for token, string in enumerate(strings, first):
        if string in ids:
            raise _fault(f"the token {string!r} occurs twice")
        ids[string] = token
    return ids


def _fault(what: str) -> InputError:
    return InputError(f"the tokenizer cannot be used: {what}", "mend it or train it again")
