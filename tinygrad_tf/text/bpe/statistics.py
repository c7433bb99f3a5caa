"""The fit of a tokenizer to a text: tokens, bytes per token, and unused vocabulary."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.text.bpe.specials import WORD
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

Chunks = Iterable[bytes]


@dataclass(frozen=True)
class Statistics:
    """A tokenizer on a text of `size` bytes.

    `unused` is the share of the vocabulary that the text never takes, `longest` are the longest
    tokens that it does take, as bytes, the longest first.
    """

    name: str
    vocab_size: int
    tokens: int
    size: int
    unused: float
    longest: tuple[bytes, ...] = ()

    @property
    def bytes_per_token(self) -> float:
        """The mean number of bytes of UTF-8 per token."""
        return self.size / self.tokens if self.tokens else 0.0


def measure(name: str, tokenizer: BPETokenizer, chunks: Chunks, longest: int = 5) -> Statistics:
    """Encode a text and count; special tokens in it are allowed."""
    used = np.zeros(tokenizer.vocab_size, dtype=np.int64)
    sizes: list[int] = []
    for ids in tokenizer.encode_chunks(_measured(chunks, sizes), specials="allow"):
        used += np.bincount(ids, minlength=len(used))
    known = tokenizer.known_ids()
    taken = np.flatnonzero(used).tolist()
    texts = sorted((tokenizer.token_bytes(i) for i in taken), key=lambda t: (-len(t), t))
    unused = 1.0 - len(taken) / max(1, len(known))
    return Statistics(name, len(known), int(used.sum()), sum(sizes), unused, tuple(texts[:longest]))


def baselines(chunks: Chunks) -> list[Statistics]:
    """The same text by its characters, and by words between white space, for comparison."""
    text = b"".join(chunks)
    decoded = text.decode("utf-8", "replace")
    words = Counter(WORD.findall(decoded))
    return [
        Statistics("characters", len(set(decoded)), len(decoded), len(text), 0.0),
        Statistics("words", len(words), words.total(), len(text), 0.0),
    ]


def _measured(chunks: Chunks, sizes: list[int]) -> Chunks:
    for chunk in chunks:
        sizes.append(len(chunk))
        yield chunk
