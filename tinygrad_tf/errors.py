"""Errors that a user can correct: one line with the problem, its reason and the remedy."""


class TinygradError(Exception):
    """An error with a remedy: `what` is the problem and its reason, `next` the remedy.

    `exit_code` is 2 for bad input, 1 for a failure.
    """

    exit_code = 1

    def __init__(self, what: str, next: str = "") -> None:
        super().__init__(what, next)
        self.what = what
        self.next = next

    def __str__(self) -> str:
        return f"{self.what}; {self.next}" if self.next else self.what


class InputError(TinygradError, ValueError):
    """An input that cannot be used: a file, a setting, a prompt, a checkpoint."""

    exit_code = 2


class FailedError(TinygradError, RuntimeError):
    """A failure at work: a full disk, no permission, a loss that is not finite."""
