"""Keeping freed memory in the process, so that no step has to request it from the system again."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 30


def keep_freed_memory() -> bool:
    """Make glibc keep large freed arrays for the next step; return whether it does.

    By default it hands arrays above some size back to the kernel, which clears each page again
    when the next step touches it: a step of a small GPT then takes up to twice as long. Elsewhere
    than on Linux with glibc nothing is done, and nothing is lost but time.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGE) and mallopt(_M_TRIM_THRESHOLD, _LARGE))
