"""Encoding as its definition says, without any haste: what the encoder is compared with."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from tinygrad_tf.text.bpe.alphabet import to_chars
from tinygrad_tf.text.bpe.table import BPETable


def by_pairs(symbols: Sequence[str], merges: Sequence[tuple[str, str]]) -> list[str]:
    """Merge the pair of the lowest rank, of equals the leftmost, until no pair is listed."""
    symbols = list(symbols)
    while True:
        found = [
            (merges.index((a, b)), i)
            for i, (a, b) in enumerate(pairwise(symbols))
            if (a, b) in merges
        ]
        if not found:
            return symbols
        _, i = min(found)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]


def by_ranks(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """tiktoken's rule: a piece that is a token whole, else the joined bytes of lowest rank."""
    if piece in ranks:
        return [ranks[piece]]
    parts = [bytes([byte]) for byte in piece]
    while True:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            return [ranks[part] for part in parts]
        _, i = min(found)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def rank_table(tokens: Sequence[bytes], pattern: str = "none") -> BPETable:
    """A table of tiktoken's kind: the 256 bytes, then the tokens."""
    every = [*(bytes([byte]) for byte in range(256)), *tokens]
    return BPETable(
        vocab={to_chars(token): rank for rank, token in enumerate(every)},
        pattern=pattern,
        ignore_merges=True,
        by_rank=True,
    ).checked()


@st.composite
def merge_lists(draw: st.DrawFn, letters: str = "abc", most: int = 12) -> list[tuple[str, str]]:
    """Merges over a few letters in any order, also such as training would never give."""
    symbols = list(letters)
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, most))):
        pair = draw(st.tuples(st.sampled_from(symbols), st.sampled_from(symbols)))
        if pair[0] + pair[1] not in symbols:
            symbols.append(pair[0] + pair[1])
            merges.append(pair)
    return draw(st.permutations(merges))


RANDOM_TOKENS = st.lists(st.text("abc", min_size=2, max_size=5), unique=True, max_size=14).map(
    lambda tokens: [token.encode() for token in tokens]
)
