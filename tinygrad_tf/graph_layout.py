"""Lay out the boxes of a graph in layers, each box to the right of all its inputs.

The steps are those of Sugiyama, Tagawa and Toda 1981: layers by longest path, a point in every
layer that a long edge crosses, an order in each layer by the means of neighbours, coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]
GAP_ACROSS, GAP_DOWN, MARGIN = 70.0, 16.0, 20.0
SWEEPS = 6


@dataclass(frozen=True)
class Placed:
    """The centre of each box, the points of each edge (input, user), and the whole size."""

    centres: list[Point]
    paths: dict[tuple[int, int], list[Point]]
    width: float
    height: float


def layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each box: the length of the longest path from it to box 0, the final one."""
    uses = [0] * len(inputs)
    for parents in inputs:
        for parent in parents:
            uses[parent] += 1
    depth = [0] * len(inputs)
    ready = [0]
    for box in ready:  # the list grows: a box is ready when all its users have a layer
        for parent in inputs[box]:
            depth[parent] = max(depth[parent], depth[box] + 1)
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)
    return depth


def place(inputs: Sequence[Sequence[int]], sizes: Sequence[Point]) -> Placed:
    """Lay out boxes of the given (width, height), box 0 rightmost."""
    depth = layers(inputs)
    rows: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    heights = [size[1] for size in sizes]
    chains: dict[tuple[int, int], list[int]] = {}
    right: list[list[int]] = [[] for _ in inputs]
    left: list[list[int]] = [[] for _ in inputs]
    for box in _depth_first(inputs):
        rows[depth[box]].append(box)
        for parent in dict.fromkeys(inputs[box]):
            layers_between = range(depth[box] + 1, depth[parent])
            points = list(range(len(heights), len(heights) + len(layers_between)))
            for layer, point in zip(layers_between, points, strict=True):
                heights.append(0.0)
                right.append([])
                left.append([])
                rows[layer].append(point)
            chain = [box, *points, parent]
            chains[parent, box] = chain[::-1]
            for near, far in pairwise(chain):
                left[near].append(far)
                right[far].append(near)
    _order(rows, left, right)
    ys = _heights(rows, left, right, heights)
    widest = [max([sizes[b][0] for b in row if b < len(inputs)], default=0.0) for row in rows]
    centre_of_layer = [0.0] * len(rows)
    x = MARGIN
    for layer in reversed(range(len(rows))):
        centre_of_layer[layer] = x + widest[layer] / 2
        x += widest[layer] + GAP_ACROSS
    centres = [(centre_of_layer[depth[box]], ys[box]) for box in range(len(inputs))]
    paths = {}
    for (parent, box), chain in chains.items():
        start = centres[parent][0] + sizes[parent][0] / 2, ys[parent]
        end = centres[box][0] - sizes[box][0] / 2, ys[box]
        layer = depth[parent]
        bends = [(centre_of_layer[layer - i], ys[p]) for i, p in enumerate(chain[1:-1], 1)]
        paths[parent, box] = [start, *bends, end]
    bottom = max(ys[box] + sizes[box][1] / 2 for box in range(len(inputs)))
    bottom = max([bottom, *ys[len(inputs) :]])
    return Placed(centres, paths, x - GAP_ACROSS + MARGIN, bottom + MARGIN)


def _depth_first(inputs: Sequence[Sequence[int]]) -> Iterator[int]:
    """The boxes in the order of a tree, which keeps trees free of crossings."""
    visited: set[int] = set()
    stack = [0]
    while stack:
        box = stack.pop()
        if box not in visited:
            visited.add(box)
            yield box
            stack.extend(reversed(inputs[box]))


def _order(rows: list[list[int]], left: list[list[int]], right: list[list[int]]) -> None:
    """Sort each layer by the mean place of its neighbours, in sweeps from end to end and back."""
    for sweep in range(SWEEPS):
        outward = sweep % 2 == 0
        neighbours = right if outward else left
        sequence = rows if outward else rows[::-1]
        for before, row in pairwise(sequence):
            place_of = {box: i for i, box in enumerate(before)}
            # A box without a neighbour there keeps its place.
            moving = [i for i, box in enumerate(row) if neighbours[box]]
            mean = {row[i]: _mean([place_of[n] for n in neighbours[row[i]]], i) for i in moving}
            ordered = sorted(mean, key=mean.__getitem__)
            for i, box in zip(moving, ordered, strict=True):
                row[i] = box


def _heights(
    rows: list[list[int]], left: list[list[int]], right: list[list[int]], heights: list[float]
) -> list[float]:
    """The y of each box's centre: near its neighbours, in order, without overlap."""
    ys = [0.0] * len(heights)
    for row in rows:
        _stack(row, [0.0] * len(row), ys, heights)
    for sweep in range(SWEEPS):
        outward = sweep % 2 == 0
        neighbours = right if outward else left
        for row in (rows if outward else rows[::-1])[1:]:
            wanted = [_mean([ys[n] for n in neighbours[box]], ys[box]) for box in row]
            _stack(row, wanted, ys, heights)
    top = min(y - h / 2 for y, h in zip(ys, heights, strict=True))
    return [y - top + MARGIN for y in ys]


def _stack(row: list[int], wanted: list[float], ys: list[float], heights: list[float]) -> None:
    """Put the boxes of a layer as near to the wanted places as their order allows."""
    floor = float("-inf")
    placed = []
    for box, y in zip(row, wanted, strict=True):
        y = max(y, floor + heights[box] / 2)
        placed.append(y)
        floor = y + heights[box] / 2 + GAP_DOWN
    shift = sum(w - y for w, y in zip(wanted, placed, strict=True)) / len(row)
    for box, y in zip(row, placed, strict=True):
        ys[box] = y + shift


def _mean(numbers: list[float] | list[int], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
