"""Patterns that would take for ever: found out before a text is split, and stopped while it is."""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations, product

from tinygrad_tf.errors import InputError

# Splits a text, or otherwise goes through all its matches.
Match = Callable[[str], object]

_CPU_SECONDS = 0.1
_LENGTHS = (8, 10, 12, 14, 16, *(int(18 * 1.125**step) for step in range(29)))  # up to 487
_SAMPLES = " a0A\n.'_"
_FOREIGN = "é中\u0301²…"  # a letter with and one without case, a mark, a number, punctuation
_ENDINGS = ("", "\n", "!", "a")
_SYNTAX = frozenset("\\()[]{}|?*+^$")
# No sensible pattern is slower than that on this or any machine.
_PATIENCE = 5.0
_CHARS_PER_SECOND = 100_000


class TooSlow(Exception):
    """A search went on for longer than any sensible pattern takes."""


def slow_text(match: Match, source: str) -> str | None:
    """Return a short text on which the pattern takes more than 0.1 s of computing, if one is found.

    The texts repeat what the pattern's source is made of, and then break the pattern off. They
    grow by an eighth at a time: work that grows exponentially, at whatever base, then mostly grows
    by less than ten times a step; where it does not, the probe is stopped.
    """
    text = ""
    for unit in _units(source):
        try:
            with stopped_after(_PATIENCE):
                for ending, length in product(_ENDINGS, _LENGTHS):
                    text = (unit * length)[:length] + ending
                    if _seconds(match, text) > _CPU_SECONDS:
                        return text
        except TooSlow:
            return text
    return None


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise TooSlow when what is done within takes longer than that.

    Python's regular expressions let no other thread run while they search, but they do look out
    for signals: so it is done where there is an alarm, which Windows lacks, and in main threads.
    """
    main = threading.current_thread() is threading.main_thread()
    can_ring = main and hasattr(signal, "setitimer")
    if not can_ring or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
        yield
        return

    def ring(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def patience(source: str, text: str) -> Iterator[None]:
    """Splitting a text within this context; InputError where the pattern takes for ever."""
    try:
        with stopped_after(_PATIENCE + len(text) / _CHARS_PER_SECOND):
            yield
    except TooSlow:
        raise InputError(
            f"the pattern {source!r} backtracks too much on this text of {len(text):,} characters",
            "let no repetition hold another that matches the same text",
        ) from None


def _units(source: str) -> Iterator[str]:
    literal = [char for char in source if char not in _SYNTAX]
    own = list(dict.fromkeys(char for char in literal if char.isalnum() and char.isascii()))
    marks = list(dict.fromkeys(char for char in literal if not char.isalnum()))[:8]
    foreign = [*(c for c in own if not c.isascii()), *(c for c in literal if not c.isascii())]
    if "\\p" in source or "\\P" in source or foreign:
        foreign += _FOREIGN
    yield from list(dict.fromkeys([*_SAMPLES, *marks, *foreign, *own]))[:40]
    yield from ("".join(two) for two in permutations(own[:4], 2))
    yield from dict.fromkeys(re.findall(r"[^\W_]{2,8}", source))
    yield from (f"a{mark}" for mark in marks)
    yield from (f"{first}a{second}" for first, second in permutations(marks[:4], 2))
    yield from ("a ", "a1", "a.")


def _seconds(match: Match, text: str) -> float:
    """Return the thread's own time for one search: another program's work does not count."""
    start = time.thread_time()
    match(text)
    return time.thread_time() - start
