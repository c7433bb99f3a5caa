"""Colour maps: from a number to a red-green-blue triple of bytes."""

from collections.abc import Sequence

Colour = tuple[int, int, int]

# Dark blue to pale yellow, ever lighter; and blue over white to red, white at zero.
SEQUENTIAL: Sequence[Colour] = (
    (20, 11, 52), (82, 31, 109), (160, 52, 97), (224, 97, 65), (250, 170, 58), (250, 245, 160),
)  # fmt: skip
DIVERGING: Sequence[Colour] = (
    (33, 88, 171),
    (130, 177, 220),
    (245, 245, 245),
    (233, 148, 120),
    (165, 25, 41),
)


def mix(colours: Sequence[Colour], share: float) -> Colour:
    """Return the colour at `share` (0 to 1) of the way through `colours`."""
    place = min(1.0, max(0.0, share)) * (len(colours) - 1)
    index = min(int(place), len(colours) - 2)
    part = place - index
    low, high = colours[index], colours[index + 1]
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def css(colour: Colour) -> str:
    """Return the colour in hexadecimal, as rich and style sheets read it."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def ink(colour: Colour) -> str:
    """Return black or white, whichever is readable on `colour`."""
    red, green, blue = colour
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"
