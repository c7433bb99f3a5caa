"""Pictures of a training run: status, bar and loss curve."""

from rich.text import Text

from cli.pictures.curve import Reference, Series, curve
from cli.progress import Event, TrainingProgress, references

TRAIN_STYLE, VALIDATION_STYLE = "cyan", "bright_yellow"


def training(
    progress: TrainingProgress,
    *,
    width: int,
    height: int = 14,
    notice: str = "",
    ascii: bool = False,
) -> Text:
    """Draw the state of a run, `width` columns wide; `notice` is a last line under the curve."""
    picture = Text(no_wrap=True, overflow="ellipsis")
    picture.append(progress.status(width) + "\n", "bold")
    picture.append_text(bar(progress.share, width, ascii=ascii)).append("\n")
    picture.append_text(
        losses(progress, width=width, height=height, x_end=progress.steps, ascii=ascii)
    )
    if notice:
        picture.append("\n" + notice, "bold")
    return picture


def bar(share: float, width: int, *, ascii: bool = False) -> Text:
    """Draw a bar that is filled up to `share` (0 to 1)."""
    full, empty = ("#", ".") if ascii else ("━", "─")
    filled = round(share * width)
    return Text(full * filled, "green", no_wrap=True).append(empty * (width - filled), "grey50")


def losses(
    progress: TrainingProgress,
    *,
    width: int,
    height: int = 14,
    x_end: float | None = None,
    log_x: bool = False,
    ascii: bool = False,
) -> Text:
    """Draw the loss curve of a run, in nats per token, with the reference lines of its plan."""
    return curve(
        [
            Series("training loss", progress.train, TRAIN_STYLE, "."),
            Series("validation loss", progress.validation, VALIDATION_STYLE, "o"),
        ],
        reference_lines(progress.plan),
        width=width,
        height=height,
        x_end=x_end,
        log_x=log_x,
        ascii=ascii,
    )


def reference_lines(plan: Event) -> list[Reference]:
    """Return the reference losses of a plan as lines of a picture."""
    return [Reference(name, value) for name, value in references(plan).items()]
