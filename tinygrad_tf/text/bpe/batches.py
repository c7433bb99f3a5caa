"""Many texts encoded by several processes."""

import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from tinygrad_tf.errors import FailedError
from tinygrad_tf.text.bpe.specials import Policy
from tinygrad_tf.text.tokenizers import Ids

if TYPE_CHECKING:
    from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

_SHARES = 4  # of each worker, so that none waits long for the others


def encode_in_workers(
    tokenizer: "BPETokenizer", texts: Sequence[str], workers: int, specials: Policy
) -> list[Ids]:
    """Return the ids of each text in order; FailedError when a process dies."""
    share = max(1, len(texts) // (_SHARES * workers))
    # Spawned, for a fork of a process with threads, as NumPy's, may lock up.
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_begin, initargs=(tokenizer,)
    )
    try:
        return list(pool.map(partial(_encode, specials), texts, chunksize=share))
    except BrokenProcessPool:
        raise FailedError(
            "a process that encoded texts died, perhaps for want of memory",
            "try again with fewer workers",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_tokenizer: "BPETokenizer"  # of a worker process


def _begin(tokenizer: "BPETokenizer") -> None:
    """Prepare a worker; its parent alone answers to Ctrl-C."""
    global _tokenizer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tokenizer = tokenizer


def _encode(specials: Policy, text: str) -> Ids:
    return _tokenizer.encode(text, specials=specials)
