"""Learning the merges of byte pair encoding from distinct words and their counts.

All words lie in one array, a token in as many cells as it has base symbols. Its first and its
last cell hold its id, so the next token begins `length` cells on and the previous one ends in
the cell before: merging moves nothing and needs no links. Fences (-1) stand around each word.

    "low", "lo"        -1  l  o  w -1  l  o -1
    l + o -> 12        -1 12 12  w -1 12 12 -1
    12 + w -> 13       -1 13 -1 13 -1 12 12 -1

A pair can only come to be in the merge that makes the newer of its two symbols; from then on
its occurrences only vanish. So it is enough to note, when it is made, where it occurs. It waits
under its count of that time, which is never too low, and is counted anew when its turn comes.
Nothing is updated in between, and most pairs never have their turn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain
from operator import mul
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError

Ties = Literal["lowest-id", "first-seen", "largest"]

Ints: TypeAlias = NDArray[np.integer[Any]]
Positions: TypeAlias = list[int] | Ints  # ascending cells; a list where there are few
Pair: TypeAlias = tuple[int, int, int, Positions]  # count, left, right, where it begins
Key: TypeAlias = int | tuple[bytes, bytes]
Entry: TypeAlias = tuple[Key, int, int, Positions]

_FENCE = -1
_FEW = 128  # below this NumPy's price per call exceeds Python's per element (measured)


@dataclass(frozen=True, slots=True)
class Merge:
    """The pair `left`, `right` became the symbol `new`, having occurred `count` times."""

    left: int
    right: int
    new: int
    count: int


def learn_merges(
    words: Sequence[Sequence[int]],
    counts: Sequence[int],
    *,
    first_id: int,
    merges: int,
    ties: Ties = "lowest-id",
    min_frequency: int = 1,
    names: Sequence[str] | Sequence[bytes] | None = None,
    skip: Callable[[int, int], bool] | None = None,
    on_merge: Callable[[Merge], None] | None = None,
) -> list[Merge]:
    """Return up to `merges` merges of the most frequent adjacent pair, in the order made.

    `words` are distinct sequences of base symbols 0 .. first_id - 1, `counts` how often each
    occurs; new symbols are numbered from `first_id`. A run of n equal symbols holds n - 1 pairs
    and is replaced from the left. Among pairs of equal count `ties` chooses the lowest
    (left, right); the one whose first occurrence comes first, words taken in the order given;
    or the largest (left, right) by the `names` of the base symbols, compared as strings.
    Learning ends early when no pair occurs `min_frequency` times. A pair (left, right) whose
    turn comes and that `skip` says true of is never merged. `on_merge` is called with each
    merge. Time grows with the symbols in `words` and the merges made of them, however long a
    word is. InputError for symbols, counts, names and rules that do not fit
    (Sennrich et al. 2016, algorithm 1).
    """
    if min_frequency < 1:
        raise InputError(f"the minimum frequency is {min_frequency}", "give 1 or more")
    if ties not in get_args(Ties):
        raise InputError(
            f"there is no tie rule {ties!r}", f"take one of {', '.join(get_args(Ties))}"
        )
    spelled = _spell(names, first_id) if ties == "largest" else []
    text = _Text(words, counts, first_id)
    queue = _Queue(_key_rule(ties, spelled), min_frequency)
    for pair in text.pairs():
        queue.put(*pair)
    learned: list[Merge] = []
    while len(learned) < merges and (entry := queue.pop()):
        _, left, right, positions = entry
        count, positions = text.occurrences(left, right, positions)
        if count < queue.count:
            queue.put(count, left, right, positions)  # by a new key too, if it goes by position
            continue
        if skip is not None and skip(left, right):
            continue
        merge = Merge(left, right, first_id + len(learned), count)
        if spelled:
            spelled.append(spelled[left] + spelled[right])
        for pair in text.merge(left, right, positions):
            queue.put(*pair)
        learned.append(merge)
        if on_merge is not None:
            on_merge(merge)
    return learned


class _Text:
    """The words in one array, fenced, and what their pairs are."""

    def __init__(
        self, words: Sequence[Sequence[int]], counts: Sequence[int], first_id: int
    ) -> None:
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        if len(counts) != len(words):
            raise InputError(f"{len(words)} words have {len(counts)} counts", "give one for each")
        fences = np.concatenate([[0], np.cumsum(sizes + 1)])
        inside = np.ones(fences[-1] + 1, dtype=bool)
        inside[fences] = False
        symbols = _flatten(words)
        if symbols.size and not 0 <= symbols.min() <= symbols.max() < first_id:
            raise InputError(
                f"the words hold symbols {symbols.min()} to {symbols.max()}",
                f"number them from 0 to {first_id - 1}",
            )
        if sum(map(mul, counts, sizes.tolist())) >= 2**63 or min(counts, default=1) < 1:
            raise InputError(
                "the counts are below 1, or in all beyond 64 bits", "give counts of 1 or more"
            )
        self.cells = np.full(inside.size, _FENCE, dtype=np.int32)
        self.cells[inside] = symbols
        self.counts = np.zeros(inside.size, dtype=np.int64)  # of the word that a cell lies in
        self.counts[inside] = np.repeat(np.asarray(counts, dtype=np.int64), sizes)
        self.first_id = first_id
        self.lengths = [1] * first_id
        # Python reads and writes single elements far faster through these.
        self._cell, self._count = self.cells.data, self.counts.data

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs of base symbols."""
        starts = np.flatnonzero((self.cells[:-1] != _FENCE) & (self.cells[1:] != _FENCE))
        codes = self.cells[starts] * np.int64(self.first_id) + self.cells[starts + 1]
        for code, count, positions in self._grouped(codes, starts):
            yield count, *divmod(code, self.first_id), positions

    def occurrences(self, left: int, right: int, positions: Positions) -> tuple[int, Positions]:
        """Return how often a pair occurs still, and where, of the positions it had once.

        A cell that held the first symbol of a token never comes to hold that symbol again once
        the token is gone, so one look at it and one at the next token tell.
        """
        n = self.lengths[left]
        if isinstance(positions, list):
            cell, count = self._cell, self._count
            still = [i for i in positions if cell[i] == left and cell[i + n] == right]
            return sum([count[i] for i in still]), still
        live = (self.cells[positions] == left) & (self.cells[positions + n] == right)
        kept = positions[live]
        return int(self.counts[kept].sum()), kept

    def merge(self, left: int, right: int, positions: Positions) -> Iterator[Pair]:
        """Replace the pair at `positions` by a new symbol; yield the pairs that this makes."""
        n = self.lengths[left]
        new, length = len(self.lengths), n + self.lengths[right]
        self.lengths.append(length)
        if left == right:
            positions = _every_other(positions, n)
        if isinstance(positions, list):
            return self._merge_few(new, n, length, positions)
        return self._merge_many(new, n, length, positions)

    def _merge_few(self, new: int, n: int, length: int, positions: list[int]) -> Iterator[Pair]:
        cell, count, lengths = self._cell, self._count, self.lengths
        for i in positions:
            cell[i] = new
            cell[i + n] = _FENCE  # the right token is gone; this comes before its last cell
            cell[i + length - 1] = new
        before: defaultdict[int, list[int]] = defaultdict(list)
        after: defaultdict[int, list[int]] = defaultdict(list)
        for i in positions:
            symbol = cell[i - 1]
            if symbol != _FENCE and symbol != new:  # new + new is seen from its left
                before[symbol].append(i - lengths[symbol])
            symbol = cell[i + length]
            if symbol != _FENCE:
                after[symbol].append(i)
        for symbol, starts in before.items():
            yield sum([count[i] for i in starts]), symbol, new, starts
        for symbol, starts in after.items():
            yield sum([count[i] for i in starts]), new, symbol, starts

    def _merge_many(self, new: int, n: int, length: int, positions: Ints) -> Iterator[Pair]:
        self.cells[positions] = new
        self.cells[positions + n] = _FENCE
        self.cells[positions + (length - 1)] = new
        before = self.cells[positions - 1]
        kept = (before != _FENCE) & (before != new)
        for symbol, count, starts in self._grouped(before[kept], positions[kept]):
            shift = self.lengths[symbol]
            if isinstance(starts, list):
                yield count, symbol, new, [i - shift for i in starts]
            else:
                yield count, symbol, new, starts - shift
        after = self.cells[positions + length]
        kept = after != _FENCE
        for symbol, count, starts in self._grouped(after[kept], positions[kept]):
            yield count, new, symbol, starts

    def _grouped(self, keys: Ints, positions: Ints) -> Iterator[tuple[int, int, Positions]]:
        """Yield each key with the count and the positions, ascending, that belong to it."""
        if not keys.size:
            return
        if keys.max() < 2**16:
            keys = keys.astype(np.uint16)  # which NumPy sorts by radix
        order = np.argsort(keys, kind="stable")
        keys, positions = keys[order], positions[order]
        edges = np.flatnonzero(np.diff(keys, prepend=keys[0] ^ 1))
        counts = np.add.reduceat(self.counts[positions], edges)
        begins = edges.tolist()
        ends = [*begins[1:], len(positions)]
        for key, count, i, j in zip(
            keys[edges].tolist(), counts.tolist(), begins, ends, strict=True
        ):
            yield key, count, positions[i:j].tolist() if j - i < _FEW else positions[i:j]


def _every_other(positions: Positions, n: int) -> Positions:
    """Return, of the places of a pair of equal symbols, those that a run yields from its left."""
    steps = np.diff(positions, prepend=-1)
    index = np.arange(len(positions))
    run = np.maximum.accumulate(np.where(steps != n, index, 0))
    kept = np.asarray(positions)[(index - run) % 2 == 0]
    return [*kept.tolist()] if isinstance(positions, list) else kept


class _Queue:
    """Pairs by falling count, and by key among those of one count."""

    def __init__(self, key: Callable[[int, int, Positions], Key], min_frequency: int) -> None:
        self.count = 0  # that of the pair last popped
        self._key, self._min_frequency = key, min_frequency
        self._level: list[Entry] = []  # a heap: the pairs of that count
        self._waiting: defaultdict[int, list[Entry]] = defaultdict(list)
        self._counts: list[int] = []  # a heap of the negated keys of `_waiting`

    def put(self, count: int, left: int, right: int, positions: Positions) -> None:
        if count < self._min_frequency:
            return
        entry = (self._key(left, right, positions), left, right, positions)
        if count == self.count:
            heappush(self._level, entry)
            return
        if count not in self._waiting:
            heappush(self._counts, -count)
        self._waiting[count].append(entry)

    def pop(self) -> Entry | None:
        """Take the next pair; None when there is none. `count` becomes its count."""
        if not self._level:
            if not self._counts:
                return None
            self.count = -heappop(self._counts)
            self._level = self._waiting.pop(self.count)
            heapify(self._level)
        return heappop(self._level)


def _key_rule(ties: Ties, spelled: list[bytes]) -> Callable[[int, int, Positions], Key]:
    """Return the function whose smallest value is the pair that a tie goes to."""
    if ties == "lowest-id":
        return lambda left, right, _: left << 32 | right
    if ties == "first-seen":
        return lambda _, __, positions: int(positions[0])
    return lambda left, right, _: (spelled[left] + b"\xff", spelled[right] + b"\xff")


# UTF-8 sorts like code points and has no byte above 0xF4. So these complements, closed with
# 0xFF, sort in the opposite order, a string after those that continue it.
_COMPLEMENT = bytes(max(0xFE - byte, 0) for byte in range(256))


def _spell(names: Sequence[str] | Sequence[bytes] | None, first_id: int) -> list[bytes]:
    """Return strings whose order is the reverse of that of the base symbols' names."""
    if names is None or len(names) != first_id:
        raise InputError(
            f"ties by name need a name for each of the {first_id} base symbols", "give `names`"
        )
    texts = (n.decode("latin-1") if isinstance(n, bytes) else n for n in names)
    return [text.encode("utf-8", "surrogatepass").translate(_COMPLEMENT) for text in texts]


def _flatten(words: Sequence[Sequence[int]]) -> Ints:
    if all(isinstance(word, bytes) for word in words):
        return np.frombuffer(b"".join(cast(Sequence[bytes], words)), dtype=np.uint8)
    return np.fromiter(chain.from_iterable(words), dtype=np.int32)
