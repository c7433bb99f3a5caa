"""Finding out, before a text is split, that a pattern would take for ever."""

import re
import time
from collections.abc import Iterator
from itertools import permutations

_CPU_SECONDS = 0.1
_LENGTHS = (8, 10, 12, 14, 16, *(int(18 * 1.125**step) for step in range(29)))  # up to 487
_SAMPLES = " a0A\n.'_"
_ENDINGS = ("", "\n", "!", "a")


def slow_text(regex: re.Pattern[str], source: str) -> str | None:
    """Return a short text on which the pattern takes more than 0.1 s of computing, if one is found.

    The texts repeat one or two characters, those of the pattern's source first, and then break
    the pattern off. They grow by an eighth at a time: work that grows exponentially, at whatever
    base, then grows by less than ten times a step, so that a probe never runs for long.
    """
    for unit in _units(source):
        for ending in _ENDINGS:
            for length in _LENGTHS:
                text = (unit * length)[:length] + ending
                if _seconds(regex, text) > _CPU_SECONDS:
                    return text
    return None


def _units(source: str) -> Iterator[str]:
    own = dict.fromkeys(char for char in source if char.isalnum() and char.isascii())
    chars = list(dict.fromkeys([*_SAMPLES, *own]))[:24]
    yield from chars
    yield from ("".join(two) for two in permutations(list(own)[:4], 2))
    yield from ("a ", "a1", "a.")


def _seconds(regex: re.Pattern[str], text: str) -> float:
    """Return the thread's own time for one search: another program's work does not count."""
    start = time.thread_time()
    for _ in regex.finditer(text):
        pass
    return time.thread_time() - start
