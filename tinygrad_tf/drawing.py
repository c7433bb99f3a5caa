"""Draw a graph: the Values or Tensors that a result was computed from, as text, DOT or SVG.

print(draw(loss, model.named_parameters()))
draw(loss).save("loss.svg")
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.graph_layout import Placed, Point, place
from tinygrad_tf.scalar import Value

if TYPE_CHECKING:
    from tinygrad_tf.engine.graph import Node
    from tinygrad_tf.engine.tensor import Tensor

KINDS = (".svg", ".html", ".dot", ".txt")
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
CHARACTER, LINE, PADDING = 7.3, 16.0, 7.0  # pixels, for a font size of 12


@dataclass(frozen=True)
class Box:
    """A node: its title, its facts as (name, text), its inputs as (box number, local slope).

    `hidden` counts the inputs that are left out of a large drawing.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[int, str], ...]
    is_leaf: bool
    hidden: int = 0


@dataclass(frozen=True)
class Drawing:
    """A graph as boxes, the result first; `source` holds the Value or Node behind each box."""

    boxes: tuple[Box, ...]
    source: tuple[Any, ...]
    notice: str = ""

    def with_facts(self, facts: Mapping[int, tuple[str, str]]) -> Drawing:
        """Return the same drawing with a further (name, text) in the boxes of these numbers."""
        boxes = [
            replace(box, facts=(*box.facts, facts[i])) if i in facts else box
            for i, box in enumerate(self.boxes)
        ]
        return replace(self, boxes=tuple(boxes))

    def __repr__(self) -> str:
        return f"Drawing({len(self.boxes)} boxes)"

    def __str__(self) -> str:
        return self.text()

    def text(self, *, ascii: bool = False) -> str:
        """The graph as a tree, in columns: the facts of each node and its local slope.

        Every box is a line below the box that uses it; a box with several users has its inputs
        below the first one only.
        """
        names = list(dict.fromkeys(name for box in self.boxes for name, _ in box.facts))
        locals_ = ["local"] if any(slope for box in self.boxes for _, slope in box.inputs) else []
        lines = [["", *names[:2], *locals_, *names[2:]]]
        for label, local, facts in self._tree(ascii=ascii):
            cells = [facts.get(name, "") for name in names]
            lines.append([label, *cells[:2], *([local] if locals_ else []), *cells[2:]])
        return _aligned(lines) + (f"\n{self.notice}" if self.notice else "")

    def _tree(self, *, ascii: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """The label, the local slope and the facts of each line of the tree."""
        fork, last, bar = ("|- ", "`- ", "|  ") if ascii else ("├─ ", "└─ ", "│  ")
        uses = Counter(number for box in self.boxes for number, _ in box.inputs)
        shared = [i for i in range(len(self.boxes)) if uses[i] > 1 and not self.boxes[i].is_leaf]
        tags = {number: f" #{tag}" for tag, number in enumerate(shared, 1)}
        shown: set[int] = set()
        stack = [(0, "", "", "")]
        while stack:
            number, local, branch, below = stack.pop()
            box = self.boxes[number]
            label = branch + box.title + tags.get(number, "")
            if number in shown:
                yield f"{label} (above)", local, {}
                continue
            shown.add(number)
            yield f"{label} ({_hidden(box)})" if box.hidden else label, local, dict(box.facts)
            ends = [last] + [fork] * (len(box.inputs) - 1)
            for (parent, slope), end in zip(reversed(box.inputs), ends, strict=False):
                deeper = below + ("   " if end == last else bar)
                stack.append((parent, slope, below + end, deeper))

    def dot(self) -> str:
        """The graph in DOT, the language of Graphviz."""
        lines = ["digraph {", "  rankdir=LR;", '  node [shape=box, fontname="monospace"];']
        for number, box in enumerate(self.boxes):
            label = "\\n".join(_quoted(line) for line in _lines(box))
            style = ', style=filled, fillcolor="#e3eefb"' if box.is_leaf else ""
            lines.append(f'  n{number} [label="{label}"{style}];')
        for number, box in enumerate(self.boxes):
            for parent, slope in box.inputs:
                mark = f' [label="{_quoted(slope)}"]' if slope else ""
                lines.append(f"  n{parent} -> n{number}{mark};")
        if self.notice:
            lines.append(f'  label="{_quoted(self.notice)}";')
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """The graph as a self-contained SVG: the leaves to the left, the result to the right."""
        sizes = []
        for box in self.boxes:
            lines = _lines(box)
            width, height = CHARACTER * max(map(len, lines)), LINE * len(lines)
            sizes.append((width + 2 * PADDING, height + 2 * PADDING))
        placed = place([[parent for parent, _ in box.inputs] for box in self.boxes], sizes)
        height = placed.height + (30.0 if self.notice else 0.0)
        width = max(placed.width, CHARACTER * len(self.notice) + 40.0)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="{FONT}" font-size="12">',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        ]
        parts += _svg_edges(self.boxes, placed, sizes)
        for number, box in enumerate(self.boxes):
            parts += _svg_box(box, placed, number, sizes[number])
        if self.notice:
            parts.append(f'<text x="20" y="{height - 14:.0f}">{html.escape(self.notice)}</text>')
        return "\n".join([*parts, "</svg>", ""])

    def _repr_svg_(self) -> str:
        return self.svg()

    def html(self, title: str = "graph") -> str:
        """The SVG and the tree on one self-contained HTML page."""
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{html.escape(_shown(title))}</title>\n</head>\n<body>\n{self.svg()}"
            f'<pre style="font-family: {FONT}">{html.escape(self.text())}</pre>\n'
            f"</body>\n</html>\n"
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the drawing in the format of the suffix: .svg, .html, .dot or .txt.

        Raises InputError for another suffix, and for an existing file unless `force`. Raises
        FailedError where the file cannot be written, and then leaves nothing behind.
        """
        from tinygrad_tf.storage.atomic import write_atomically  # its package needs NumPy

        path = Path(path)
        check_target(path, force=force)
        match path.suffix.lower():
            case ".svg":
                text = self.svg()
            case ".html":
                text = self.html(path.stem)
            case ".dot":
                text = self.dot()
            case _:
                text = self.text() + "\n"
        write_atomically(path, text.encode())


def check_target(path: Path, *, force: bool = False) -> None:
    """Raise InputError, before any work, for a file that a drawing cannot be saved as."""
    if path.suffix.lower() not in KINDS:
        raise InputError(
            f"{path}: graphs are saved as {', '.join(KINDS)}, not as {path.suffix or 'this'}",
            f"name it {path.stem}.svg",
        )
    if path.exists() and not force:
        raise InputError(
            f"{path} exists already", "name another file or overwrite it with `force=True`"
        )


def draw(
    result: Value | Tensor,
    names: Mapping[str, Any] | None = None,
    *,
    max_nodes: int = 200,
) -> Drawing:
    """Draw the graph of a result: of a Value with numbers and gradients, of a Tensor with shapes.

    names: Values or Tensors by name, such as `model.named_parameters()`. Of a graph with more
    than `max_nodes` nodes, those nearest to the result are drawn, and a notice says so. Raises
    InputError for a Tensor that nothing was recorded for, or whose graph was freed.
    """
    if max_nodes < 1:
        raise InputError(f"`max_nodes` is {max_nodes}", "draw at least 1")
    named = {_node(x): name for name, x in (names or {}).items()}
    root = _node(result)
    if root is None:
        raise InputError(
            "nothing was recorded for this Tensor",
            "make its inputs with requires_grad=True, outside no_grad()",
        )
    if root is not result and root.parents is None:
        raise InputError(
            "this graph was freed by backward()", "draw it before, or use retain_graph=True"
        )
    order = [root]
    numbers = {root: 0}
    for node in order:  # by distance from the result; the list grows in the loop
        for parent, _ in _inputs(node):
            if parent not in numbers:
                numbers[parent] = len(order)
                order.append(parent)
    drawn = order[:max_nodes]
    boxes = []
    for node in drawn:
        inputs = [(numbers[parent], slope) for parent, slope in _inputs(node)]
        kept = tuple(edge for edge in inputs if edge[0] < max_nodes)
        title, facts = _describe(node, named.get(node))
        boxes.append(Box(title, facts, kept, not inputs, len(inputs) - len(kept)))
    left_out = len(order) - len(drawn)
    more = "1 more node is" if left_out == 1 else f"{left_out:,} more nodes are"
    notice = f"{more} not drawn; max_nodes is {max_nodes}" if left_out else ""
    return Drawing(tuple(boxes), tuple(drawn), notice)


def _node(x: Any) -> Any:
    """The node of x in the graph: a Value itself, or the node of a Tensor."""
    if isinstance(x, Value):
        return x
    if not hasattr(x, "node"):
        raise InputError(f"a {type(x).__name__} has no graph", "draw a Value or a Tensor")
    return x.node


def _inputs(node: Value | Node) -> list[tuple[Any, str]]:
    if isinstance(node, Value):
        return [(parent, f"{slope:.6g}") for parent, slope in node.edges]
    return [(parent, "") for parent in node.parents or () if parent is not None]


def _describe(node: Value | Node, name: str | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The title and the facts of a node."""
    if isinstance(node, Value):
        title = name or operation(node) or "value"
        return _shown(title), (("value", f"{node.data:.6g}"), ("gradient", f"{node.grad:.6g}"))
    operation_name = node.op.name if node.op is not None else ""
    title = " = ".join(part for part in (name, operation_name) if part) or "leaf"
    if node.op is not None and node.parents is None:
        title += " (freed)"
    return _shown(title), (("shape", str(node.shape)), ("dtype", str(node.dtype)))


def operation(value: Value) -> str:
    """Name the operation of a Value, with a constant where it was written: "tanh", "* 3"."""
    parts = (value.op,) if isinstance(value.op, str) else value.op
    return " ".join(part if isinstance(part, str) else f"{part:.6g}" for part in parts)


def _aligned(lines: list[list[str]]) -> str:
    """Lines of cells as text in which every column is aligned."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)


def _lines(box: Box) -> list[str]:
    """The text of a box, line by line."""
    facts = [f"{name} {value}" for name, value in box.facts]
    return [box.title, *facts, *([_hidden(box)] if box.hidden else [])]


def _hidden(box: Box) -> str:
    return f"{box.hidden} more input{'s' * (box.hidden > 1)}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _svg_box(box: Box, placed: Placed, number: int, size: Point) -> Iterator[str]:
    (x, y), (width, height) = placed.centres[number], size
    left, top = x - width / 2, y - height / 2
    fill = "#e3eefb" if box.is_leaf else "#fdf3dc" if number == 0 else "#f6f6f6"
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="5" fill="{fill}" stroke="#555555"/>'
    )
    for i, line in enumerate(_lines(box)):
        weight = ' font-weight="bold"' if i == 0 else ""
        base = top + PADDING + LINE * (i + 0.75)
        yield (
            f'<text x="{x:.1f}" y="{base:.1f}" text-anchor="middle"{weight}>'
            f"{html.escape(line)}</text>"
        )


def _svg_edges(boxes: tuple[Box, ...], placed: Placed, sizes: list[Point]) -> Iterator[str]:
    """A curve for every edge, from the right of the input to the left of what uses it."""
    for number, box in enumerate(boxes):
        paths = [(placed.paths[parent, number], slope) for parent, slope in box.inputs]
        paths.sort(key=lambda path: path[0][-2][1])  # from the top, so that none cross at the end
        spread = min(14.0, (sizes[number][1] - PADDING) / max(1, len(paths)))
        for i, (points, slope) in enumerate(paths):
            x, y = points[-1]
            y += spread * (i - (len(paths) - 1) / 2)
            curve = f"M {points[0][0]:.1f} {points[0][1]:.1f}"
            for (x0, y0), (x1, y1) in pairwise([*points[:-1], (x, y)]):
                middle = (x0 + x1) / 2
                curve += f" C {middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
            yield f'<path d="{curve}" fill="none" stroke="#999999" stroke-width="1.3"/>'
            if slope:
                yield (
                    f'<text x="{x - 4:.1f}" y="{y - 3:.1f}" text-anchor="end" font-size="10" '
                    f'fill="#a03010">{html.escape(slope)}</text>'
                )
