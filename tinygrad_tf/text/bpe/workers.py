"""Processes that share the work on one text or on many."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from tinygrad_tf.errors import FailedError

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_START = "spawn"  # a fork of a process with threads, as NumPy's, may lock up


def in_workers(
    function: Callable[[Batch], Result], batches: Iterable[Batch], workers: int, work: str
) -> Iterator[Result]:
    """Yield the function's result for each batch, in order, computed by `workers` processes.

    At most two batches a worker wait at a time, so memory stays bounded. FailedError when a process
    dies; its message says that it did `work`, as in "counted pieces".
    """
    waiting: deque[Future[Result]] = deque()
    pool = ProcessPoolExecutor(
        workers, get_context(_START), initializer=_begin, initargs=(function,)
    )
    try:
        for batch in batches:
            waiting.append(pool.submit(_call, batch))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise FailedError(
            f"a process that {work} died, perhaps for want of memory",
            "try again with fewer workers",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]  # of a worker process


def _begin(function: Callable[[Any], Any]) -> None:
    """Prepare a worker: it ends with its parent, which alone answers to Ctrl-C."""
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _function = function


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(batch: Any) -> Any:
    return _function(batch)
