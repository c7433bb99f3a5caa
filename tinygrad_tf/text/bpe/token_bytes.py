"""From ids to bytes and text, whole or one id at a time."""

import codecs

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.table import BPETable


class TokenBytes:
    """The bytes of every id of a table, and the number of characters that these begin."""

    def __init__(self, table: BPETable) -> None:
        size = table.size
        self.bytes_of = [b""] * size
        self._known = np.zeros(size, dtype=bool)
        self._ends_word = np.zeros(size, dtype=bool)
        for token in table.id_to_token:
            self.bytes_of[token] = table.token_bytes(token)
            self._known[token] = True
            self._ends_word[token] = token in table.word_ends
        self.lengths = np.array([len(data) for data in self.bytes_of], dtype=np.int64)
        self.characters = np.array(
            [sum(byte & 0xC0 != 0x80 for byte in data) for data in self.bytes_of], dtype=np.int64
        )

    def checked(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return ids as an array (N,); InputError for one that no token has."""
        array = np.asarray(ids)
        if array.size == 0:
            return array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise TypeError(f"token ids are integers, not {array.dtype}")
        for extreme in (array.min(), array.max()):
            if not 0 <= extreme < len(self.bytes_of):
                raise _stranger(int(extreme), f"outside the vocabulary of {len(self.bytes_of)}")
        if not self._known[array].all():
            raise _stranger(
                int(array[~self._known[array]][0]), "one that the vocabulary leaves out"
            )
        return array.astype(np.int64)

    def join(self, ids: ArrayLike) -> bytes:
        """Return the bytes of the ids (N,), without the space after the last word."""
        array = self.checked(ids)
        joined = b"".join(map(self.bytes_of.__getitem__, array.tolist()))
        return joined[:-1] if array.size and self._ends_word[array[-1]] else joined

    def ends_word(self, token: int) -> bool:
        """Return True if a token ends with `</w>`."""
        return bool(self._ends_word[token])


class BPEDecoder:
    """Ids to text one at a time, giving out a character only when it is whole.

    The space after a word waits for the next word.
    """

    def __init__(self, tokens: TokenBytes) -> None:
        self._tokens = tokens
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._space = b""

    def push(self, token: int) -> str:
        """Take one id; return the characters that it completes, maybe none."""
        (token,) = self._tokens.checked([token]).tolist()
        data = self._space + self._tokens.bytes_of[token]
        self._space = data[-1:] if self._tokens.ends_word(token) else b""
        return self._utf8.decode(data[: len(data) - len(self._space)])

    def flush(self) -> str:
        """Return what an unfinished character leaves (U+FFFD), and start afresh."""
        self._space = b""
        return self._utf8.decode(b"", final=True)


def _stranger(token: int, why: str) -> InputError:
    return InputError(
        f"token id {token} is {why}", "decode with the tokenizer that the text was encoded with"
    )
