"""Ctrl-C while training: the first one ends the run after its step, the second one at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def graceful_interrupt(stop: Callable[[], None], notify: Callable[[], None]) -> Iterator[None]:
    """Call `stop` and `notify` at the first SIGINT; raise KeyboardInterrupt at the second.

    Signals that are ignored (a background job) stay ignored; outside the main thread, where
    signals cannot be handled, nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before == signal.SIG_IGN:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()
        with suppress(RuntimeError):  # the signal came in the middle of a write to stderr
            notify()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
