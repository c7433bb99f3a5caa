"""Tables that list no merges: a pair merges when its joined bytes are a token, lowest id first."""

from collections.abc import Mapping
from itertools import pairwise


def splits(token: str, vocab: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return every way to make a token of two tokens."""
    halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
    return [(left, right) for left, right in halves if left in vocab and right in vocab]


def parts_before(token: str, vocab: Mapping[str, int]) -> list[str]:
    """Return what the merges of lower rank make of a token, before it is merged itself."""
    own = vocab[token]
    parts = list(token)
    while len(parts) > 1:
        ranks = [vocab.get(a + b, own) for a, b in pairwise(parts)]
        lowest = min(ranks)
        if lowest >= own:
            break
        i = ranks.index(lowest)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def merges_of_ranks(vocab: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return merges that do what the ranks of a byte-level vocabulary do.

    A token that lower ranks make of exactly two parts has that one merge. Any other is out of the
    reach of lower ranks, and has every split into two tokens, as higher ranks may yet make one.
    """
    merges: list[tuple[str, str]] = []
    for token in sorted(vocab, key=vocab.__getitem__):
        if len(token) > 1:
            parts = parts_before(token, vocab)
            merges += [(parts[0], parts[1])] if len(parts) == 2 else splits(token, vocab)
    return merges


def ambiguous(vocab: Mapping[str, int]) -> str | None:
    """Return a token of which `merges_of_ranks` cannot tell the ranks' choice, if there is one.

    Where two occurrences of a token overlap and are joined of different halves, ranks take the
    left one, but a list of merges the one whose halves it lists first.
    """
    for token in vocab:
        beyond_lower_ranks = len(token) > 2 and len(parts_before(token, vocab)) != 2
        if beyond_lower_ranks and _overlaps_itself(token) and len(splits(token, vocab)) > 1:
            return token
    return None


def _overlaps_itself(token: str) -> bool:
    return any(token.startswith(token[start:]) for start in range(1, len(token)))
