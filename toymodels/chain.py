"""A Markov model as a picture: contexts as nodes, and what may follow as edges between them."""

from dataclasses import dataclass

from toymodels.markov import Markov
from toymodels.onehot import Vocabulary

START, END = "START", "END"


@dataclass(frozen=True)
class Edge:
    """From one node to another, by their places in `Chain.nodes`, with its probability."""

    source: int
    target: int
    probability: float


@dataclass(frozen=True)
class Chain:
    """Nodes, named by their words, and the edges between them."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    def dot(self) -> str:
        """The chain in Graphviz's language."""
        lines = ["digraph {", "  rankdir=LR;", "  node [shape=ellipse];"]
        lines += [f'  n{i} [label="{_quoted(node)}"];' for i, node in enumerate(self.nodes)]
        lines += [
            f'  n{edge.source} -> n{edge.target} [label="{edge.probability:.3g}"];'
            for edge in self.edges
        ]
        return "\n".join([*lines, "}", ""])


def chain_of(model: Markov, vocabulary: Vocabulary, *, with_ends: bool = False) -> Chain:
    """The contexts that occurred, and what may follow each, for a model of order 1 or more.

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
    """The words of a context; what lies before a sentence is named once."""
    words = [vocabulary.words[token] for token in context if token < len(vocabulary)]
    return " ".join([START] * (len(words) < len(context)) + words)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
