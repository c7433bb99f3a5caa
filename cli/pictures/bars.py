"""Bar charts in text."""

from collections.abc import Sequence

from rich.text import Text


def bars(
    labels: Sequence[str], values: Sequence[float], *, width: int = 40, ascii: bool = False
) -> Text:
    """Draw one bar a label, its length relative to the largest value, and the number after it."""
    picture, full = Text(no_wrap=True), "#" if ascii else "█"
    left, most = max(map(len, labels), default=0), max(values, default=0.0)
    for line, (label, value) in enumerate(zip(labels, values, strict=True)):
        length = round(value / most * width) if most > 0 else 0
        picture.append("\n" * (line > 0) + f"{label:>{left}} ", "bold")
        picture.append(full * length, "cyan").append(f" {value:g}" if length else f"{value:g}")
    return picture
