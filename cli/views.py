"""Four ways to follow a training run: JSON Lines, plain lines, a live picture, the result only."""

import sys
import time
from types import TracebackType
from typing import Protocol, Self

from cli.console import has_glyphs, is_terminal, print_json, printable, rich_console, say
from cli.progress import Event, TrainingProgress, done_line, eval_line, plan_lines

STOPPING = "finishing the step and saving; press Ctrl-C again to stop at once"
LINE_EVERY = 5.0  # seconds between plain lines
DRAW_EVERY = 0.2  # seconds between pictures


class View(Protocol):
    """A receiver of every event of a run."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def show(self, event: Event) -> None:
        """Record one event and show it if it is time."""

    def stopping(self) -> None:
        """Report that Ctrl-C was pressed."""


def choose_view(*, json: bool, quiet: bool) -> View:
    """Return the view for the options and the terminal."""
    if json:
        return JsonView()
    if quiet:
        return QuietView()
    if is_terminal(sys.stderr) and rich_console(sys.stderr).is_interactive:
        return LiveView()
    return PlainView()


class QuietView:
    """A view of only warnings and the result."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: Event) -> None:
        """Show a warning or the result."""
        if event["event"] == "warning":
            say(f"warning: {event['message']}")
        elif event["event"] == "done":
            say(done_line(event))

    def stopping(self) -> None:
        """Report that Ctrl-C was pressed."""
        say(STOPPING)


class JsonView(QuietView):
    """A view of every event as a line of JSON on stdout."""

    def show(self, event: Event) -> None:
        """Print the event and flush."""
        print_json(event)


class PlainView(QuietView):
    """A view for logs, lines on stderr: the plan, evaluations, and a step every few seconds."""

    def __init__(self) -> None:
        self.progress = TrainingProgress()
        self._next_line = 0.0

    def show(self, event: Event) -> None:
        """Print the line of this event, if it has one."""
        self.progress.absorb(event)
        match event["event"]:
            case "plan":
                for line in plan_lines(event):
                    say(line)
            case "step" if time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + LINE_EVERY
                say(self.progress.status())
            case "eval":
                say(eval_line(event))
            case "checkpoint":
                say(f"step {event['step']:,}: saved {event['path']}")
            case _:
                super().show(event)


class LiveView(QuietView):
    """A live picture on stderr: status, bar and loss curve."""

    def __init__(self) -> None:
        from rich.live import Live

        self.progress = TrainingProgress()
        self._console = rich_console(sys.stderr)
        self._ascii = not has_glyphs(sys.stderr)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._notice = ""
        self._result: list[str] = []  # printed under the final picture
        self._next_picture = 0.0

    def __exit__(self, *_: object) -> None:
        if self._live.is_started:
            self._draw()
            self._live.stop()
        self._say(self._result)

    def show(self, event: Event) -> None:
        """Record the event; draw at most a few times a second."""
        self.progress.absorb(event)
        match event["event"]:
            case "plan":
                self._say(plan_lines(event))
            case "warning":
                self._say([f"warning: {event['message']}"])
            case "done":
                self._notice, self._result = "", [done_line(event)]
            case "step" | "eval":
                if not self._live.is_started:
                    self._live.start()
                if time.monotonic() >= self._next_picture:
                    self._draw()

    def stopping(self) -> None:
        """Report under the picture that Ctrl-C was pressed."""
        self._notice = STOPPING
        self._draw()

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self._console.print(printable(line))

    def _draw(self) -> None:
        from cli.pictures.training import training

        self._next_picture = time.monotonic() + DRAW_EVERY
        size = self._console.size
        picture = training(
            self.progress,
            width=min(100, size.width - 1),
            height=max(4, min(16, size.height - 8)),
            notice=self._notice,
            ascii=self._ascii,
        )
        self._live.update(picture, refresh=self._live.is_started)
