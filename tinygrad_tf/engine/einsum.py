"""Einstein's sums: the record, and the reading of subscripts.

The record wants its labels in order: none twice in one operand, none with two lengths, and each
in the output or in another operand. Then the gradient of one operand is the Einstein sum of the
upstream gradient and the other operands.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Op


def _einsum(*xs: Any, inputs: tuple[str, ...], output: str) -> Any:
    return np.einsum(f"{','.join(inputs)}->{output}", *xs, optimize=len(xs) > 1)


def _einsum_rule(
    g: Any, _y: Any, *xs: Any, inputs: tuple[str, ...], output: str, which: int
) -> Any:
    others = [i for i in range(len(xs)) if i != which]
    return einsum(
        g,
        *(xs[i] for i in others),
        inputs=(output, *(inputs[i] for i in others)),
        output=inputs[which],
    )


einsum = Op("einsum", _einsum, (_einsum_rule,), variadic=True)


def parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """One letter per axis for every operand and for the output; the ellipsis becomes letters.

    Without "->" the output has the letters that occur once, in alphabetical order, after the
    ellipsis, as in NumPy. Raises ValueError for subscripts that do not fit the ranks.
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{subscripts!r} names {len(terms)} operands, but {len(ranks)} are given")
    letters = [_letters(term, subscripts) for term in terms]
    spans = [
        _span(term, names, rank) for term, names, rank in zip(terms, letters, ranks, strict=True)
    ]
    free = [c for c in string.ascii_letters if c not in text][: max(spans, default=0)]
    rest = "".join(free)
    inputs = [
        term.replace("...", rest[len(rest) - span :])
        for term, span in zip(terms, spans, strict=True)
    ]
    if arrow:
        _letters(right, subscripts)
        if rest and "..." not in right:
            raise ValueError(f"the output of {subscripts!r} must say where the ellipsis goes")
        output = right.replace("...", rest)
    else:
        every = "".join(letters)
        output = rest + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    known = set("".join(inputs))
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(f"the output of {subscripts!r} must name axes of the inputs, each once")
    return inputs, output


def lengths(inputs: list[str], shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """The length of each label; an axis of length 1 stands for any length."""
    found: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            known = found.get(label, 1)
            if n != 1 and known not in (1, n):
                raise ValueError(f"an axis of the einsum has the lengths {known} and {n}")
            found[label] = known if n == 1 else n
    return found


def _letters(term: str, subscripts: str) -> str:
    names = term.replace("...", "", 1)
    if not all(c in string.ascii_letters for c in names):
        raise ValueError(f"{subscripts!r} has something other than letters, commas, -> and ...")
    return names


def _span(term: str, names: str, rank: int) -> int:
    """How many axes the ellipsis of a term stands for."""
    if rank < len(names) or (rank > len(names) and "..." not in term):
        raise ValueError(f"{term!r} names {len(names)} axes of an operand that has {rank}")
    return rank - len(names)
