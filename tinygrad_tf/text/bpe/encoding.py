"""From pieces to ids: merges in exact rank order, remembered from piece to piece."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR, CHAR_TO_BYTE
from tinygrad_tf.text.bpe.ranks import splits
from tinygrad_tf.text.bpe.table import MARK, BPETable, spelled_bytes

IntArray = NDArray[np.int64]

UNKNOWN = -1
"""The id of a character that a classical table has no token for."""

ID_TYPE = "i"
ID_BYTES = array(ID_TYPE).itemsize
"""The `array` type of packed ids."""

_GONE = -2

# Up to this length, looking for the lowest rank again after each merge is the faster way.
_SHORT = 48
# So many sequences are merged side by side faster than one by one.
_MANY = 400
_CACHE_PIECES = 1 << 17
_CACHE_LENGTH = 64


class PieceEncoder:
    """The encoding of pieces of text by one table, with a memory of the short ones.

    Pieces are strings that the table's splitter has cut; U+DC80..DCFF in them are bytes.
    """

    def __init__(self, table: BPETable) -> None:
        self.table = table
        self._merger = Merger(table)
        self._cache: dict[str, bytes] = {}
        byte_level = table.kind == "byte-level"
        self._byte_ids = [table.vocab[char] for char in BYTE_TO_CHAR] if byte_level else []
        self._whole: dict[bytes, int] = {}
        if byte_level and table.ignore_merges:
            self._whole = {spelled_bytes(token): i for token, i in table.vocab.items()}
        self._unknown = UNKNOWN
        if table.unk is not None:
            self._unknown = {**table.specials, **table.vocab}[table.unk]

    def packed(self, pieces: Sequence[str]) -> bytes:
        """Return the ids of all pieces, one after the other, as packed 32-bit numbers."""
        return b"".join(self._each(pieces))

    def count(self, pieces: Sequence[str]) -> int:
        """Return how many ids the pieces have."""
        return sum(map(len, self._each(pieces))) // ID_BYTES

    def _each(self, pieces: Sequence[str]) -> list[bytes]:
        cache = self._cache
        new = list(set(pieces).difference(cache))
        cache.update(zip(new, self._merger.packed(list(map(self.symbols, new))), strict=True))
        found = list(map(cache.__getitem__, pieces))
        if len(cache) > _CACHE_PIECES:
            cache.clear()
        for piece in new:
            if len(piece) > _CACHE_LENGTH:
                cache.pop(piece, None)
        return found

    def ids(self, piece: str, keep: Callable[[], bool] | None = None) -> list[int]:
        """Return the ids of one piece, without the memory of others.

        `keep` decides at each chance to merge whether to take it (BPE dropout, Provilkov et al.
        2020); a piece that is a token is then not taken whole.
        """
        return self._merger.merged(self.symbols(piece, whole=keep is None), keep)

    def symbols(self, piece: str, *, whole: bool = True) -> list[int]:
        """Return the ids of a piece before any merge, UNKNOWN among them.

        With `whole`, a piece that is a token is only that where the table ignores merges.
        """
        if self.table.kind == "classical":
            return self._letters(piece, whole=whole)
        data = piece.encode("utf-8", "surrogateescape")
        if whole and data in self._whole:
            return [self._whole[data]]
        return [self._byte_ids[byte] for byte in data]

    def _letters(self, word: str, *, whole: bool) -> list[int]:
        vocab = self.table.vocab
        if whole and self.table.ignore_merges and word + MARK in vocab:
            return [vocab[word + MARK]]
        letters = list(word)
        if self.table.end_of_word == "attached":
            letters[-1] += MARK
        else:
            letters.append(MARK)
        return [vocab.get(letter, self._unknown) for letter in letters]


def unreachable(table: BPETable) -> str | None:
    """Return a token of a byte-level table that merges do not make of its own bytes, or None."""
    merger = Merger(table)
    vocab = table.vocab
    for token, i in vocab.items():
        ids = [vocab[char] for char in token if char in CHAR_TO_BYTE]
        if len(ids) < len(token) or merger.merged(ids) != [i]:
            return token
    return None


class Rounds:
    """The merges of many short sequences side by side: in each NumPy round one merge of every one.

    `ranks` are those of pairs of ids below `size`, `made` the ids that merges of a rank make.
    """

    def __init__(
        self, ranks: Mapping[tuple[int, int], int], made: Mapping[int, int], size: int
    ) -> None:
        self._none = max(made, default=0) + 1
        self._made = np.zeros(self._none, dtype=np.int32)
        self._made[list(made)] = list(made.values())
        self._base = size + 2
        pairs = np.array([*ranks, (size, size)], dtype=np.int64)  # the last never occurs
        codes = self._code(pairs[:, 0], pairs[:, 1])
        order = np.argsort(codes)
        self._codes = codes[order]
        self._ranks = np.array([*ranks.values(), self._none], dtype=np.int64)[order]

    def merged(self, sequences: Sequence[Sequence[int]]) -> list[bytes]:
        """Return what the merges make of each sequence, none of them empty, as 32-bit ids."""
        found = [b""] * len(sequences)
        which = np.arange(len(sequences))
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int32)
        ranks = np.full(len(ids), self._none)  # of the pair that begins at each place
        ranks[:-1] = self._rank(ids, np.arange(len(ids) - 1))
        ranks[np.cumsum(lengths) - 1] = self._none
        while which.size:
            ends = np.cumsum(lengths)
            starts = ends - lengths
            lowest = np.minimum.reduceat(ranks, starts)
            go_on = lowest < self._none
            if not go_on.all():
                done = ~go_on
                for i, start, end in zip(which[done], starts[done], ends[done], strict=True):
                    found[i] = ids[start:end].tobytes()
                keep = np.repeat(go_on, lengths)
                ids, ranks = ids[keep], ranks[keep]
                which, lengths = which[go_on], lengths[go_on]
                continue
            places = np.flatnonzero(ranks == np.repeat(lowest, lengths))
            at = places[np.searchsorted(places, starts)]  # the leftmost of each sequence
            ids[at] = self._made[lowest]
            ids, ranks = np.delete(ids, at + 1), np.delete(ranks, at + 1)
            before = np.arange(len(at))  # so many places went before each sequence
            at, starts, ends = at - before, starts - before, ends - before - 1
            lengths = lengths - 1
            ranks[at] = self._none
            for changed in (at[at + 1 < ends], at[at > starts] - 1):
                ranks[changed] = self._rank(ids, changed)
        return found

    def _rank(self, ids: NDArray[np.int32], places: IntArray) -> IntArray:
        """Return the ranks of the pairs that begin at the places."""
        codes = self._code(ids[places], ids[places + 1])
        at = np.searchsorted(self._codes, codes)
        return np.where(self._codes[at] == codes, self._ranks[at], self._none)

    def _code(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> IntArray:
        """Return a number for each pair, of which one id may be -1: an unknown character."""
        return (left.astype(np.int64) + 1) * self._base + right + 1


class Merger:
    """The merges of a table, applied to ids: always the lowest rank, leftmost first."""

    def __init__(self, table: BPETable) -> None:
        vocab = table.vocab
        self._size = table.size
        self._ranks: dict[tuple[int, int], int] = {}
        if table.by_rank:
            # All pairs that join to a token have one rank, that token's id.
            for token, rank in vocab.items():
                for left, right in splits(token, vocab):
                    self._ranks[vocab[left], vocab[right]] = rank
            self._made = {rank: rank for rank in vocab.values()}
        else:
            self._made = {}
            for rank, (left, right) in enumerate(table.merges):
                self._ranks[vocab[left], vocab[right]] = rank
                self._made[rank] = vocab[left + right]
        self._none = max(self._made, default=0) + 1

    def packed(self, sequences: Sequence[list[int]]) -> list[bytes]:
        """Return what the merges make of each sequence, as packed 32-bit numbers.

        The sequences are used up.
        """
        short = [i for i, ids in enumerate(sequences) if len(ids) <= _SHORT]
        if len(short) < _MANY:
            return [array(ID_TYPE, self.merged(ids)).tobytes() for ids in sequences]
        found = [b""] * len(sequences)
        for i, packed in zip(
            short, self._rounds.merged([sequences[i] for i in short]), strict=True
        ):
            found[i] = packed
        for i, ids in enumerate(sequences):
            if not found[i]:
                found[i] = array(ID_TYPE, self.merged(ids)).tobytes()
        return found

    @cached_property
    def _rounds(self) -> Rounds:
        return Rounds(self._ranks, self._made, self._size)

    def merged(self, ids: list[int], keep: Callable[[], bool] | None = None) -> list[int]:
        """Return what the merges make of ids, which are used up."""
        if keep is None and len(ids) <= _SHORT:
            return self._by_scanning(ids)
        return self._by_queue(ids, keep)

    def _by_scanning(self, ids: list[int]) -> list[int]:
        rank_of, made, none = self._ranks.get, self._made, self._none
        ranks = [rank_of(pair, none) for pair in pairwise(ids)]
        while ranks:
            lowest = min(ranks)
            if lowest == none:
                break
            i = ranks.index(lowest)
            new = ids[i] = made[lowest]
            del ids[i + 1], ranks[i]
            if i:
                ranks[i - 1] = rank_of((ids[i - 1], new), none)
            if i < len(ranks):
                ranks[i] = rank_of((new, ids[i + 1]), none)
        return ids

    def _by_queue(self, ids: list[int], keep: Callable[[], bool] | None) -> list[int]:
        """Merge in n log n: a queue of (rank, position), in which what has passed is skipped.

        Places that were merged away are _GONE, which no pair has, and so is the one past the
        end, which Python also finds before the beginning, at -1.
        """
        rank_of, made, end = self._ranks.get, self._made, len(ids)
        after, before = list(range(1, end + 1)), list(range(-1, end))
        pairs = enumerate(pairwise(ids))
        queue = [rank * end + i for i, pair in pairs if (rank := rank_of(pair)) is not None]
        heapify(queue)
        ids.append(_GONE)
        dropped: list[int] = []
        while queue:
            entry = heappop(queue)
            rank, i = divmod(entry, end)
            j = after[i]
            if rank_of((ids[i], ids[j])) != rank:
                continue
            if keep is not None and not keep():
                dropped.append(entry)
                continue
            ids[i], ids[j] = made[rank], _GONE
            after[i] = following = after[j]
            before[following] = i
            if (rank_left := rank_of((ids[before[i]], ids[i]))) is not None:
                heappush(queue, rank_left * end + before[i])
            if (rank_right := rank_of((ids[i], ids[following]))) is not None:
                heappush(queue, rank_right * end + i)
            while dropped:  # each merge is a new step, with a new chance for all
                heappush(queue, dropped.pop())
        return [token for token in ids if token != _GONE]
