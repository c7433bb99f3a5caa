"""Entry point of `tt`: run a command, report an error in one line, return the exit code."""

import os
import sys
import warnings
from collections.abc import Sequence

import click

from cli.console import one_line, prepare_streams, print_error, say, silence
from cli.group import tt
from tinygrad_tf.errors import TinygradError

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
CLOSED_PIPE = 141  # the exit code of a program that SIGPIPE ended: 128 + 13


def main() -> None:
    """Run `tt` with the arguments of this process and leave with its exit code."""
    warnings.showwarning = _show_warning
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run `tt` with `arguments` and return the exit code: 0, 1, 2, 130, or 141 (pipe closed)."""
    prepare_streams()
    try:
        result = tt.main(list(arguments), prog_name="tt", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else DONE
    except SystemExit as leaving:
        # click raises it after completing a line (0), and when the reader of a pipe is gone (1).
        return CLOSED_PIPE if leaving.code else DONE
    except BrokenPipeError:
        silence(sys.stdout)
        return CLOSED_PIPE
    except BaseException as error:
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        return _report(error)


def _report(error: BaseException) -> int:
    """Print `error` in one line and return its exit code."""
    match error:
        case KeyboardInterrupt() | click.Abort():
            print_error("interrupted")
            return INTERRUPTED
        case TinygradError():
            print_error(str(error))
            return error.exit_code
        case click.UsageError():
            print_error(_usage_line(error))
            return USAGE
        case click.ClickException():
            print_error(_sentence(error.format_message()))
            return error.exit_code
        case MemoryError():
            detail = f" ({error})" if str(error) else ""
            print_error(f"out of memory{detail}; try a smaller --batch-size or --block-size")
        case OSError():
            if error.filename is None:
                silence(sys.stdout)  # what stdout still holds would fail again at exit
            print_error(_system_line(error))
        case _:
            name = type(error).__name__
            print_error(f'unexpected {name}: {error}; run "tt --debug ..." to see where')
    return FAILED


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of the library in one line, without the place in the code."""
    say(f"tt: warning: {message}")


def _usage_line(error: click.UsageError) -> str:
    """Return the line for a faulty command line: the error, and what to type instead."""
    command = error.ctx.command_path if error.ctx else "tt"
    near = getattr(error, "possibilities", None)
    if near:
        return f"{_sentence(error.message)}; did you mean {near[0]}?"
    return f'{_sentence(error.format_message())}; see "{command} --help"'


def _system_line(error: OSError) -> str:
    """Return the line for an error of the operating system: the file and the reason."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fspath(error.filename)!s}: {reason}" if error.filename else reason


def _sentence(message: str) -> str:
    """Return `message` as one line that begins in lower case and has no full stop."""
    line = one_line(message).removesuffix(".")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line
