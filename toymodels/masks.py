"""Learning a mask: the earlier words that decide the next one, without those that add only noise.

For each context words are added to the mask one after the other, each time the one whose vote
lowers the cost of the training text most, until none lowers it by enough. The text alone decides.
"""

from dataclasses import dataclass

import numpy as np

from tinygrad_tf.types import Floats, Ids
from toymodels.skips import Skips
from toymodels.text import Text

_CONTEXT_VOTE = 0.01  # votes of the context itself, so that no cost is infinite


@dataclass(frozen=True)
class _Examples:
    """Places of one context: the candidate words that are there (n, F), the number of the follower
    that came, of K (n,), and the weight of the place (n,)."""

    there: Floats
    came: Ids
    weight: Floats


def selective(
    text: Text,
    order: int = 1,
    window: int | None = None,
    *,
    candidates: int = 64,
    examples: int = 2000,
    least: float = 0.5,
) -> Skips:
    """Count second order with skips, with masks learned from the text: the selective model of
    source document S4.

    For each context only the `candidates` most informative words are tried, on at most `examples`
    of its places, evenly spread. A word is added if it saves `least` nats where the lightest
    sentence counts 1.
    """
    plain = Skips.fit(text, order, window)
    trials = _trials(plain, candidates)
    places = _places(plain, text, set(trials), examples)
    incidence = _incidence(plain, text, np.concatenate([*places.values(), np.empty(0, np.int64)]))
    kept: list[int] = []
    for context, rows in trials.items():
        at = places[context]
        there = np.zeros((len(at), len(rows)))
        for column, row in enumerate(rows):
            there[np.searchsorted(at, incidence.get(row, ())), column] = 1
        followers, came = np.unique(text.tokens[at], return_inverse=True)
        shares = np.zeros((len(rows), plain.vocab_size))
        plain.shares.add_to(shares, rows)
        distinct = _merged(_Examples(there, came, text.weight[at]))
        enough = least * float(text.weight.min())
        chosen = _choose(distinct, shares[:, followers], enough)
        kept += rows[chosen].tolist()
    model = plain.keep(np.array(sorted(kept), np.int64), f"selective skips {order}")
    model.calibrate(text)
    return model


def information(skips: Skips) -> Floats:
    """Return the information of each row beyond its context, (R,): weight · Σ p ln(p / q), nats.

    p are the shares of what followed the feature, q those of what followed the context: 0 for a
    word whose presence changes nothing.
    """
    context = skips.counts.rows[skips.order]
    entry_row = skips.rows.row_of_entry()
    own = context.find(skips.rows.keys // skips.vocab_size)[entry_row]
    q = context.weight_of(own, skips.rows.token) / context.total[own]
    gain = skips.rows.weight * np.log(skips.shares.weight / q)
    nats: Floats = np.bincount(entry_row, gain, len(skips.rows)).astype(float)
    return nats


def _trials(skips: Skips, candidates: int) -> dict[int, Ids]:
    """Return the most informative rows, best first, of each context with several followers."""
    nats = information(skips)
    context = skips.rows.keys // skips.vocab_size
    order = np.lexsort((-nats, context))
    order = order[nats[order] > 0]
    groups = np.split(order, np.flatnonzero(np.diff(context[order])) + 1) if len(order) else []
    return {int(context[group[0]]): group[:candidates] for group in groups}


def _places(skips: Skips, text: Text, contexts: set[int], limit: int) -> dict[int, Ids]:
    """Return the places of each of the contexts, at most `limit`, evenly spread."""
    history = text.history
    number = skips.counts.contexts.find(history, history.everywhere, skips.order)[-1]
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    places = {int(number[group[0]]): group for group in groups}
    return {
        context: places[context][np.linspace(0, n - 1, min(n, limit)).astype(np.int64)]
        for context in contexts
        if (n := len(places[context]))
    }


def _incidence(skips: Skips, text: Text, at: Ids) -> dict[int, Ids]:
    """Return, for each row, the places of `at` where its feature occurs."""
    at = np.sort(at)
    portions = list(skips.features(text.history, at))
    none: Ids = np.empty(0, np.int64)
    places = np.concatenate([none, *(at[which] for which, _ in portions)])
    rows = np.concatenate([none, *(rows for _, rows in portions)])
    order = np.lexsort((places, rows))
    groups = np.split(order, np.flatnonzero(np.diff(rows[order])) + 1)
    return {int(rows[group[0]]): places[group] for group in groups if len(group)}


def _merged(examples: _Examples) -> _Examples:
    """Merge equal places into one, with the sum of their weights."""
    both = np.column_stack([examples.there, examples.came])
    distinct, which = np.unique(both, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), examples.weight).astype(float)
    return _Examples(distinct[:, :-1], distinct[:, -1].astype(np.int64), weight)


def _choose(examples: _Examples, shares: Floats, enough: float) -> list[int]:
    """Choose candidates (of F) for the mask, greedily; `shares` (F, K) are by follower."""
    context = np.bincount(examples.came, examples.weight, shares.shape[1])
    context = context / context.sum()
    hits = [np.flatnonzero(column) for column in examples.there.T]
    votes = np.zeros((len(examples.came), shares.shape[1]))
    cost = -examples.weight * np.log(context[examples.came])  # without votes the context decides

    def cost_of(at: Ids, votes: Floats) -> Floats:
        total = votes + _CONTEXT_VOTE * context
        total /= total[np.arange(len(at)), examples.came[at], None]
        powers = np.square(np.square(total))  # to the power 4: the order counts, not the lead
        costs: Floats = examples.weight[at] * np.log(powers.sum(axis=1))
        return costs

    chosen: list[int] = []
    while len(chosen) < len(hits):
        saved = np.full(len(hits), -np.inf)
        for j in set(range(len(hits))) - set(chosen):
            after = cost_of(hits[j], votes[hits[j]] + shares[j])
            saved[j] = cost[hits[j]].sum() - after.sum()
        best = int(saved.argmax())
        if saved[best] < enough:
            break
        chosen.append(best)
        votes[hits[best]] += shares[best]
        cost[hits[best]] = cost_of(hits[best], votes[hits[best]])
    return chosen
