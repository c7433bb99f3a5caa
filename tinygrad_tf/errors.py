"""Faults that a user can mend, told in one line: what, why, and what to type next."""


class TinygradError(Exception):
    """A fault with a remedy; `what` says what and why, `next` what to type next.

    `exit_code` is the status with which a command ends: 2 for bad input, 1 for a failure.
    """

    exit_code = 1

    def __init__(self, what: str, next: str = "") -> None:
        super().__init__(what, next)
        self.what = what
        self.next = next

    def __str__(self) -> str:
        return f"{self.what}; {self.next}" if self.next else self.what


class InputError(TinygradError, ValueError):
    """What was given cannot be used: a file, an option, a prompt, a checkpoint."""

    exit_code = 2


class FailedError(TinygradError, RuntimeError):
    """What was asked could not be done: a full disk, no permission, a loss that is not finite."""
