"""Counting the distinct pieces of a text, in constant memory and by several processes."""

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import get_context, parent_process

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.bpe.specials import Specials, well_formed
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.streaming import blocks

_CHUNK = 1 << 16  # characters; longer chunks are sliced, for a split takes 50 bytes for each
_BATCH = 32  # blocks that a worker counts at a time: 2 million characters
_START = "spawn"  # a fork of a process with threads, as NumPy's, may lock up

Block = tuple[int, str]


@dataclass(frozen=True)
class PieceCounts:
    """The distinct pieces of a text in order of first occurrence, and how often each occurs.

    `total_bytes` is the length of the text without its special tokens.
    """

    pieces: list[bytes]
    counts: list[int]
    total_bytes: int


def count_pieces(
    chunks: Iterable[str] | Iterable[bytes],
    splitter: Splitter,
    specials: Sequence[str] = (),
    workers: int = 1,
) -> PieceCounts:
    """Count the pieces of a text that comes in chunks; special tokens part it, uncounted.

    The result depends neither on the number of workers nor on how the text is cut into chunks.
    Memory is that of the distinct pieces and a few blocks, where the splitter knows places to
    cut; for "none" and users' own patterns it is that of the text between special tokens.
    InputError for fewer than one worker and lone surrogates, FailedError when a worker dies.
    """
    if workers < 1:
        raise InputError(f"{workers} workers cannot count", "give 1 or more")
    finder = Specials(dict.fromkeys(specials, 0))
    cut = blocks(_sliced(chunks), finder, "allow", splitter.cut)
    if workers == 1:
        return _as_bytes(_count(cut, splitter, finder))
    batches = iter(lambda: list(islice(cut, _BATCH)), [])
    first = list(islice(batches, 2))
    if len(first) < 2:  # not worth the start of a process
        return _as_bytes(_count(chain.from_iterable(first), splitter, finder))
    return _as_bytes(_count_in_workers(chain(first, batches), splitter, finder, workers))


def _sliced(chunks: Iterable[str] | Iterable[bytes]) -> Iterator[str] | Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _CHUNK):
            yield chunk[start : start + _CHUNK]


def _count(cut: Iterable[Block], splitter: Splitter, finder: Specials) -> Counter[str]:
    """Count the pieces of blocks, each of which splits as it would within the whole text."""
    counts: Counter[str] = Counter()
    for start, block in cut:
        text = block if block.isascii() else well_formed(block, start=start)
        for part, _ in finder.cut(text, "allow"):
            counts.update(splitter.pieces(part))
    return counts


def _count_in_workers(
    batches: Iterable[list[Block]], splitter: Splitter, finder: Specials, workers: int
) -> Counter[str]:
    """Count by processes; their results are added in the order of the text."""
    counts: Counter[str] = Counter()
    waiting: deque[Future[Counter[str]]] = deque()
    pool = ProcessPoolExecutor(
        workers, get_context(_START), initializer=_begin, initargs=(splitter, finder)
    )
    try:
        for batch in batches:
            waiting.append(pool.submit(_count_batch, batch))
            if len(waiting) > 2 * workers:
                counts.update(waiting.popleft().result())
        while waiting:
            counts.update(waiting.popleft().result())
    except BrokenProcessPool:
        raise FailedError(
            "a process that counted pieces died, perhaps for want of memory",
            "try again with fewer workers",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
    return counts


_work: Callable[[Iterable[Block]], Counter[str]]  # of a worker process


def _begin(splitter: Splitter, finder: Specials) -> None:
    """Prepare a worker: it ends with its parent, which alone answers to Ctrl-C."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def work(batch: Iterable[Block]) -> Counter[str]:
        return _count(batch, splitter, finder)

    _work = work


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _count_batch(batch: list[Block]) -> Counter[str]:
    return _work(batch)


def _as_bytes(counts: Counter[str]) -> PieceCounts:
    """Return the counts by bytes; a character and its bytes as surrogate escapes are one."""
    by_bytes: dict[bytes, int] = {}
    for piece, count in counts.items():
        data = piece.encode("utf-8", "surrogateescape")
        by_bytes[data] = by_bytes.get(data, 0) + count
    total = sum(len(piece) * count for piece, count in by_bytes.items())
    return PieceCounts(list(by_bytes), list(by_bytes.values()), total)
