"""A Markov model as a picture: contexts as nodes, and what may follow as edges between them."""

import html
import math
from dataclasses import dataclass

from toymodels.markov import Markov
from toymodels.onehot import Vocabulary

START, END = "START", "END"


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes, given by their indices in `Chain.nodes`, and its probability."""

    source: int
    target: int
    probability: float


@dataclass(frozen=True)
class Chain:
    """Nodes, named by their words, and the edges between them."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    def dot(self) -> str:
        """Return the chain in the DOT language of Graphviz."""
        lines = ["digraph {", "  rankdir=LR;", "  node [shape=ellipse];"]
        lines += [f'  n{i} [label="{_quoted(node)}"];' for i, node in enumerate(self.nodes)]
        lines += [
            f'  n{edge.source} -> n{edge.target} [label="{edge.probability:.3g}"];'
            for edge in self.edges
        ]
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """Return the chain as a self-contained SVG: nodes on a circle, in reading order.

        The likelier an edge the thicker it is; one that leads back to its own node is a loop.
        """
        radius = max(120.0, 34.0 * len(self.nodes))
        size = 2 * radius + 200
        places = [
            (size / 2 + radius * math.sin(turn), size / 2 - radius * math.cos(turn))
            for turn in (2 * math.pi * i / max(1, len(self.nodes)) for i in range(len(self.nodes)))
        ]
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size:.0f} {size:.0f}" '
            'font-family="sans-serif" font-size="14">',
            '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" '
            'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
            '<path d="M0,0 L8,4 L0,8z"/></marker></defs>',
        ]
        widths = [9.0 * len(node) + 20 for node in self.nodes]
        parts += [_arrow(edge, places, widths) for edge in self.edges]
        for node, width, (x, y) in zip(self.nodes, widths, places, strict=True):
            parts.append(
                f'<rect x="{x - width / 2:.1f}" y="{y - 14:.1f}" width="{width:.1f}" height="28" '
                'rx="14" fill="#eef3fb" stroke="#2158ab"/>'
                f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{html.escape(node)}</text>'
            )
        return "\n".join([*parts, "</svg>", ""])


def chain_of(model: Markov, vocabulary: Vocabulary, *, with_ends: bool = False) -> Chain:
    """Make the chain of a model of order 1 or more: its contexts, and what may follow each.

    Without `with_ends` only words are drawn, and the edges of a node are shared out among them.
    """
    nodes: dict[str, int] = {}
    edges = []
    for context, followers in model.sparse_rows():
        source = _name(context, vocabulary)
        goes_on = {token: p for token, p in followers.items() if with_ends or token != model.end}
        if not with_ends:
            if START in source:
                continue
            whole = sum(goes_on.values())
            goes_on = {token: p / whole for token, p in goes_on.items()}
        start = nodes.setdefault(source, len(nodes))
        for token, probability in goes_on.items():
            following = (*context, token)[1:]
            name = END if token == model.end else _name(following, vocabulary)
            edges.append(Edge(start, nodes.setdefault(name, len(nodes)), probability))
    return Chain(tuple(nodes), tuple(edges))


def _name(context: tuple[int, ...], vocabulary: Vocabulary) -> str:
    """Return the words of a context; the padding before a sentence is named once."""
    words = [vocabulary.words[token] for token in context if token < len(vocabulary)]
    return " ".join([START] * (len(words) < len(context)) + words)


def _arrow(edge: Edge, places: list[tuple[float, float]], widths: list[float]) -> str:
    """Return an edge as a curve around the middle, with its probability beside it."""
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    dx, dy = x2 - x1, y2 - y1
    if not math.hypot(dx, dy):
        path = f"M{x1 - 12:.1f},{y1 - 14:.1f} c-30,-50 54,-50 24,0"
        at = x1, y1 - 56
    else:
        # Bent to its left, so that there and back are two curves.
        bend_x, bend_y = (x1 + x2) / 2 + 0.18 * dy, (y1 + y2) / 2 - 0.18 * dx
        start = _rim(x1, y1, bend_x - x1, bend_y - y1, widths[edge.source])
        end = _rim(x2, y2, bend_x - x2, bend_y - y2, widths[edge.target])
        path = f"M{start} Q{bend_x:.1f},{bend_y:.1f} {end}"
        at = (x1 + x2) / 4 + bend_x / 2, (y1 + y2) / 4 + bend_y / 2
    width = 0.8 + 2.2 * edge.probability
    return (
        f'<path d="{path}" fill="none" stroke="#333" stroke-width="{width:.2f}" '
        f'marker-end="url(#end)"/><text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="middle" '
        f'fill="#a5192f">{edge.probability:.3g}</text>'
    )


def _rim(x: float, y: float, dx: float, dy: float, width: float) -> str:
    """Return the point where a line from the centre of a node's box leaves the box."""
    out = min(width / 2 / max(abs(dx), 1e-9), 15.0 / max(abs(dy), 1e-9))
    return f"{x + out * dx:.1f},{y + out * dy:.1f}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
