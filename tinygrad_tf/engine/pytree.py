"""Trees: arrays in dicts, lists and tuples, as the parameters of a model are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Rebuild = Callable[[Sequence[Any]], Any]


def leaves(tree: Any) -> list[Any]:
    """List the leaves of dicts, lists and tuples, in order; anything else but None is a leaf."""
    if isinstance(tree, Mapping):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    if isinstance(tree, list | tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def rebuilt(tree: Any, values: Sequence[Any]) -> Any:
    """Return a tree of the same structure with other leaves, of which there must be as many."""
    remaining = iter(values)
    return _fill(tree, remaining)


def matched(tree: Any, other: Any, what: str) -> list[Any]:
    """Return the leaves of `other`; raises ValueError unless it has the structure of `tree`."""
    if _build(tree) != _build(other):
        raise ValueError(f"{what} is not built of the same dicts, lists and tuples")
    return leaves(_in_order_of(tree, other))


def _fill(tree: Any, values: Iterator[Any]) -> Any:
    if isinstance(tree, Mapping):
        filled = {key: _fill(part, values) for key, part in tree.items()}
        return filled if type(tree) is dict else type(tree)(filled)  # type: ignore[call-arg]
    if isinstance(tree, list | tuple):
        parts = [_fill(part, values) for part in tree]
        # A named tuple takes its fields one by one.
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return None if tree is None else next(values)


def _build(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _build(part) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [_build(part) for part in tree]
    return tree is None


def _in_order_of(tree: Any, other: Any) -> Any:
    """Put the dicts of `other` in the order of those of `tree`: leaves are matched in order."""
    if isinstance(tree, Mapping):
        return [_in_order_of(part, other[key]) for key, part in tree.items()]
    if isinstance(tree, list | tuple):
        return [_in_order_of(a, b) for a, b in zip(tree, other, strict=True)]
    return other
