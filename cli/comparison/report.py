"""The items of a report: tables, matrices, bars, curves and texts, as numbers without drawing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinygrad_tf.types import Floats


@dataclass(frozen=True)
class ReportTable:
    """A table: cells are numbers, words, or None for an empty cell."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the rows as objects by heading."""
        rows = [dict(zip(self.headings, row, strict=True)) for row in self.rows]
        return {"title": self.title, "table": rows}


@dataclass(frozen=True)
class Matrix:
    """A matrix (R, C) with a label for each row and each column."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats

    def as_json(self) -> dict[str, Any]:
        """Return the labels and numbers."""
        return {
            "title": self.title,
            "rows": self.rows,
            "columns": self.columns,
            "matrix": np.asarray(self.values).tolist(),
        }


@dataclass(frozen=True)
class Bars:
    """A number for each label, to be compared by length."""

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the numbers by label."""
        return {"title": self.title, "values": dict(zip(self.labels, self.values, strict=True))}


@dataclass(frozen=True)
class Curves:
    """Curves through (x, y) points, each with a name, and horizontal lines to compare with."""

    title: str
    x_label: str
    curves: dict[str, Sequence[tuple[float, float]]]
    levels: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the points by name."""
        return {
            "title": self.title,
            "x": self.x_label,
            "curves": {name: [list(point) for point in c] for name, c in self.curves.items()},
            "levels": self.levels,
        }


@dataclass(frozen=True)
class Quotes:
    """Texts, each with the name of its author."""

    title: str
    texts: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return names and texts in order."""
        return {"title": self.title, "texts": [list(pair) for pair in self.texts]}


Exhibit = ReportTable | Matrix | Bars | Curves | Quotes


@dataclass(frozen=True)
class Part:
    """A part of the report: its heading, remarks and exhibits."""

    name: str
    heading: str
    remarks: tuple[str, ...]
    exhibits: tuple[Exhibit, ...]

    def as_json(self) -> dict[str, Any]:
        """Return name, heading, remarks and exhibits."""
        return {
            "name": self.name,
            "heading": self.heading,
            "remarks": list(self.remarks),
            "exhibits": [exhibit.as_json() for exhibit in self.exhibits],
        }
