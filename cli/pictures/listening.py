"""Picture of speech attention: the sound, and below it the attention of each word over it."""

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from cli.pictures.heatmap import LABEL_WIDTH, heatmap

if TYPE_CHECKING:
    from tinygrad_tf.tasks.transcriber import Listening

BANDS = 20  # rows of the spectrum
FLOOR = -60.0  # decibels; what is quieter is drawn as silence


def terminal_columns() -> int:
    """Return the width of the terminal in columns; 100 without a terminal."""
    return shutil.get_terminal_size((100, 24)).columns


def listening_picture(
    look: "Listening", columns: int, *, colour: bool = True, ascii: bool = False
) -> Text:
    """Draw mel bands over time, and words over the same time, in at most `columns` columns.

    If there are more steps, neighbours are merged: the loudest band, the sum of the weights.
    """
    blocks = colour and not ascii  # half blocks: one column a cell, but two rows a line
    room = max(1, columns - (2 * LABEL_WIDTH + 2)) // (1 if blocks else 2)
    steps = look.weights.shape[1]
    starts = np.arange(0, steps, -(-steps // max(1, room)))

    def draw(
        values: npt.NDArray[Any], rows: Sequence[str], low: float, high: float, heads: bool
    ) -> Text:
        return heatmap(
            values.tolist(),
            rows=rows,
            columns=_second_marks(starts.tolist(), look.seconds) if heads else (),
            low=low,
            high=high,
            numbers=False,
            colour=colour,
            ascii=ascii,
        )

    loudness, hertz = _bands(look)
    sound = np.maximum.reduceat(np.maximum(loudness, FLOOR), starts, axis=1)
    weights = np.add.reduceat(look.weights, starts, axis=1)
    high, words = float(weights.max()), [word[:LABEL_WIDTH] for word in look.words]
    if blocks:  # a word has both rows of its line
        weights, words = np.repeat(weights, 2, axis=0), [w for word in words for w in (word, "")]
    wide, narrow = max(map(len, words)), max(map(len, hertz))
    # Time must run in the same columns in both.
    shift = [(max(wide, narrow) - own) * (2 if blocks else 1) for own in (narrow, wide)]
    picture = Text("the sound: hertz over seconds, decibels below the loudest\n", no_wrap=True)
    picture.append_text(_shifted(draw(sound, hertz, FLOOR, 0.0, True), shift[0]))
    picture.append("\n\nattention of each word over the sound, as a share\n")
    return picture.append_text(_shifted(draw(weights, words, 0.0, high, False), shift[1]))


def _bands(look: "Listening") -> tuple[npt.NDArray[Any], list[str]]:
    """Merge the mel bands into BANDS (BANDS, T), highest first, a label for every fourth."""
    groups = np.array_split(np.arange(len(look.hertz)), min(BANDS, len(look.hertz)))
    loudness = np.stack([look.loudness[group].max(axis=0) for group in groups])
    hertz = [
        f"{look.hertz[group[len(group) // 2]]:.0f}" if i % 4 == 3 else ""
        for i, group in enumerate(groups)
    ]
    return loudness[::-1], hertz[::-1]


def _shifted(picture: Text, by: int) -> Text:
    """Shift a picture to the right."""
    lines = picture.split("\n")
    return Text("\n", no_wrap=True).join(Text(" " * by).append_text(line) for line in lines)


def _second_marks(starts: Sequence[int], seconds: float) -> list[str]:
    """Return a label at each new half second, empty between: 0, .5, 1 ..."""
    labels, last = [], -1
    for start in starts:
        half = int(start * seconds / 0.5 + 1e-9)
        whole, rest = divmod(half, 2)
        labels.append("" if half == last else ".5" if rest else str(whole))
        last = half
    return labels
