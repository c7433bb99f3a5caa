"""The byte pair tokenizer: text to ids and back by a table."""

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.encoding import ID_TYPE, UNKNOWN, PieceEncoder
from tinygrad_tf.text.bpe.formats.huggingface import from_fields, to_fields
from tinygrad_tf.text.bpe.specials import WORD, Policy, Specials, well_formed
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.streaming import blocks, cut_words
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.token_bytes import BPEDecoder, TokenBytes
from tinygrad_tf.text.bpe.workers import in_workers
from tinygrad_tf.text.tokenizers import Decoder, Ids, Unknown

Offset = tuple[int, int, int]

_SLICE = 1 << 16
_SHARES = 4  # of each worker, so that none waits long for the others


class BPETokenizer:
    """Byte pair encoding by a table; InputError where the table is at fault.

    Byte-level tables give ids to every text and every string of bytes, and give back exactly
    those. Classical ones encode the words between whitespace, and decode with one space between
    words: runs of whitespace collapse.

    What special tokens in a text are is said once, by `policy`, or for each text: "refuse" is an
    InputError that names the first; "allow" gives them their ids; with "text" they are letters like
    any others.
    """

    kind = "bpe"

    def __init__(self, table: BPETable, policy: Policy = "refuse") -> None:
        self.policy = policy
        self.table = table.checked()
        self._encoder = PieceEncoder(table)
        self._specials = Specials(table.specials)
        self._splitter = Splitter(table.pattern) if table.kind == "byte-level" else None
        self._cut: Callable[[str], int] = cut_words
        self._split: Callable[[str], list[str]] = WORD.findall
        if self._splitter is not None:
            self._cut, self._split = self._splitter.cut, self._splitter.split

    def __repr__(self) -> str:
        kind, special = self.table.kind, len(self.table.specials)
        return f"BPETokenizer({kind}, vocab_size={self.vocab_size}, specials={special})"

    def __reduce__(self) -> tuple[type["BPETokenizer"], tuple[BPETable]]:
        return BPETokenizer, (self.table,)

    @property
    def vocab_size(self) -> int:
        """The highest id and one; ids below it may be unused in a table that was edited."""
        return self.table.size

    def encode(
        self,
        text: str,
        *,
        unknown: Unknown = "error",
        start: int = 0,
        specials: Policy | None = None,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> Ids:
        """Return the ids (N,) of a text; `start` is added to positions named in a fault.

        Bytes that Python smuggled into the text as U+DC80..DCFF come out as they were. Other lone
        surrogates, and characters for which a classical table has neither token nor `unk`, are an
        InputError, or are left out with `unknown="skip"`.
        `dropout` is the probability in 0..1 with which each chance to merge is missed
        (Provilkov et al. 2020), drawn from `seed`: 0 is plain encoding, 1 merges nothing.
        """
        if not 0 <= dropout <= 1:
            raise InputError(f"dropout is {dropout}", "give a probability from 0 to 1")
        packed = self._encoder.packed
        if dropout:
            packed = partial(self._dropping, dropout, random.Random(seed))
        text = well_formed(text, skip=unknown == "skip", start=start)
        found: list[bytes] = []
        for part, special in self._specials.cut(text, specials or self.policy, start):
            found += map(packed, self._pieces(part))
            if special is not None:
                found.append(array(ID_TYPE, [special]).tobytes())
        ids = np.frombuffer(b"".join(found), dtype=ID_TYPE).astype(np.int64)
        if self._splitter is None and ids.size and ids.min() == UNKNOWN:
            if unknown == "error":
                raise self._unknown(text, specials or self.policy, start)
            ids = ids[ids != UNKNOWN]
        return ids

    def encode_bytes(self, data: bytes, *, specials: Policy | None = None) -> Ids:
        """Return the ids (N,) of any bytes at all, UTF-8 or not."""
        return self.encode(data.decode("utf-8", "surrogateescape"), specials=specials)

    def encode_chunks(
        self, chunks: Iterable[str] | Iterable[bytes], *, specials: Policy | None = None
    ) -> Iterator[Ids]:
        """Yield the ids of a text that comes in chunks, in all exactly those of the whole text.

        Memory stays bounded where the splitter knows safe places to cut (user patterns: only at
        special tokens). Chunks of bytes may end within a character.
        """
        for start, block in blocks(chunks, self._specials, specials or self.policy, self._cut):
            yield self.encode(block, start=start, specials=specials)

    def encode_batch(
        self, texts: Sequence[str], *, workers: int = 1, specials: Policy | None = None
    ) -> list[Ids]:
        """Return the ids of each text, in order; `workers` processes share the work."""
        if workers < 1:
            raise InputError(f"{workers} workers cannot work", "give 1 or more")
        if workers == 1 or len(texts) < 2:
            return [self.encode(text, specials=specials) for text in texts]
        encode = partial(self.encode_batch, specials=specials or self.policy)
        share = max(1, len(texts) // (_SHARES * workers))
        batches = (texts[i : i + share] for i in range(0, len(texts), share))
        return list(chain.from_iterable(in_workers(encode, batches, workers, "encoded texts")))

    def count(self, text: str, *, specials: Policy | None = None) -> int:
        """Return how many ids a text has, without making them into an array."""
        if self._splitter is None:
            return len(self.encode(text, specials=specials))
        parts = self._specials.cut(well_formed(text), specials or self.policy)
        return sum(
            sum(map(self._encoder.count, self._pieces(part))) + (special is not None)
            for part, special in parts
        )

    def offsets(self, text: str, *, specials: Policy | None = None) -> list[Offset]:
        """Return (id, first byte, byte after the last) of each token in the UTF-8 of the text.

        Whitespace between the words of a classical table lies in no token, and a `</w>` alone is
        empty.
        """
        if self._splitter is None:
            return list(self._word_offsets(text, specials or self.policy))
        ids = self.encode(text, specials=specials)
        ends = np.cumsum(self._tokens.lengths[ids]).tolist()
        return list(zip(ids.tolist(), [0, *ends], ends, strict=False))

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of the ids (N,), with U+FFFD where they are not UTF-8."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: ArrayLike) -> bytes:
        """Return the ids (N,) as the bytes they are: the exact inverse of `encode_bytes`.

        Classical tables: the words with one space between them.
        """
        return self._tokens.join(ids)

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return BPEDecoder(self._tokens)

    def known_ids(self) -> Ids:
        """Return the ids (N,) that a token has, ascending."""
        return np.array(sorted(self.table.id_to_token), dtype=np.int64)

    def count_chars(self, ids: ArrayLike) -> int:
        """Return how many characters the ids (N,) begin; counts of parts add up to the whole's.

        Classical tables: every end of a word counts as the space that follows it.
        """
        return int(self._tokens.characters[self._tokens.checked(ids)].sum())

    def count_bytes(self, ids: ArrayLike) -> int:
        """Return how many bytes the ids (N,) are; counts of parts add up as in `count_chars`."""
        return int(self._tokens.lengths[self._tokens.checked(ids)].sum())

    def token_text(self, token: int) -> str:
        """Return one token as people may see it: bytes that are not UTF-8 as <0xE9>.

        Ids that the vocabulary leaves out are <unused 5>.
        """
        string = self.table.id_to_token.get(token)
        if string is None:
            return f"<unused {token}>"
        if self._splitter is None or self.table.is_special(token):
            return string
        text = self.token_bytes(token).decode("utf-8", "surrogateescape")
        return "".join(
            f"<0x{ord(char) - 0xDC00:02X}>" if "\udc80" <= char <= "\udcff" else char
            for char in text
        )

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token; InputError for an id that no token has."""
        return self.table.token_bytes(token)

    def to_json(self) -> dict[str, Any]:
        """Return Hugging Face's tokenizer.json, from which `from_json` builds the same.

        InputError where that format cannot hold the table.
        """
        return to_fields(self.table)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "BPETokenizer":
        """Build from the content of a tokenizer.json."""
        return cls(from_fields(fields))

    def sha256(self) -> str:
        """Return the hash of the table."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return self.table.sha256()

    @cached_property
    def _tokens(self) -> TokenBytes:
        return TokenBytes(self.table)

    def _pieces(self, part: str) -> Iterator[list[str]]:
        """Yield the pieces of a part without special tokens, those of a long one block by block.

        All pieces of a long text at once would take fifty times the memory of the text.
        """
        if len(part) <= _SLICE:
            yield self._split(part)
            return
        slices = (part[i : i + _SLICE] for i in range(0, len(part), _SLICE))
        for _, block in blocks(slices, self._specials, "text", self._cut):
            yield self._split(block)

    def _dropping(self, dropout: float, rng: random.Random, pieces: Sequence[str]) -> bytes:
        """Return packed ids, each piece encoded anew: chance must not be remembered."""
        ids = array(ID_TYPE)
        for piece in pieces:
            ids.extend(self._encoder.ids(piece, keep=lambda: rng.random() >= dropout))
        return ids.tobytes()

    def _word_offsets(self, text: str, policy: Policy) -> Iterator[Offset]:
        """Yield the offsets of a classical table's tokens, which their words contain in turn."""
        start = 0  # in bytes
        for part, special in self._specials.cut(well_formed(text), policy):
            before = 0  # in characters of the part
            for word in WORD.finditer(part):
                start += _width(part[before : word.start()])
                ids = self.encode(word[0], specials="text")
                for token, length in zip(ids.tolist(), self._spans(word[0], ids), strict=True):
                    yield token, start, start + length
                    start += length
                before = word.end()
            start += _width(part[before:])
            if special is not None:
                length = len(self.token_bytes(special))
                yield special, start, start + length
                start += length

    def _spans(self, word: str, ids: Ids) -> Iterator[int]:
        """Yield how many bytes of a word each of its ids covers; an unknown one, a character."""
        at = 0
        for token in ids.tolist():
            string = self.table.id_to_token[token]
            end = at + (1 if string == self.table.unk else len(string))
            yield _width(word[at:end])  # which ends before a </w>, as the word does
            at = end

    def _unknown(self, text: str, policy: Policy, start: int) -> InputError:
        """Return the fault of the first character without a token."""
        at = start
        for part, special in self._specials.cut(text, policy, start):
            for word in WORD.finditer(part):
                symbols = self._encoder.symbols(word[0])
                if UNKNOWN in symbols:
                    i = symbols.index(UNKNOWN)
                    return _no_token(word[0], i, at + word.start() + i)
            at += len(part) + (0 if special is None else len(self.token_text(special)))
        raise AssertionError("every character has a token")


def _no_token(word: str, i: int, position: int) -> InputError:
    char = word[i]
    return InputError(
        f"the vocabulary has no token for {char!r} (U+{ord(char):04X}, position {position}) "
        f"as in {word[:40]!r}, and no unknown token",
        'write it with known characters, or use `unknown="skip"` to leave it out',
    )


def _width(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
