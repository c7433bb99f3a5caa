"""Learning a mask: which earlier words decide what comes next, and which only make noise.

For each context words are let in one after the other, each time the one whose vote lowers the cost
of the training text most, until none lowers it by enough. Nobody says which words those are.
"""

from dataclasses import dataclass

import numpy as np

from tinygrad_tf.types import Floats, Ids
from toymodels.skips import Skips
from toymodels.text import Text

_WHISPER = 0.01  # votes that the context has beside others, so that no cost is infinite


@dataclass(frozen=True)
class _Examples:
    """Places of one context: which candidate words are there (n, F), which of the K followers came
    (n,), and how much the place counts (n,)."""

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
    """Second order with skips whose masks are learned from the text: the selective model of
    source document S4.

    For each context only the `candidates` most informative words are tried, on at most `examples`
    of its places, evenly spread. A word is let in if it saves `least` nats where the lightest
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
        seen = _merged(_Examples(there, came, text.weight[at]))
        enough = least * float(text.weight.min())
        chosen = _choose(seen, shares[:, followers], enough)
        kept += rows[chosen].tolist()
    model = plain.keep(np.array(sorted(kept), np.int64), f"selective skips {order}")
    model.calibrate(text)
    return model


def information(skips: Skips) -> Floats:
    """What each row tells beyond its context, (R,): weight times Σ p ln(p / q) in nats.

    p are the shares of what followed the feature, q those of what followed the context: 0 for a
    word whose presence changes nothing.
    """
    context = skips.counts.rows[skips.order]
    entry_row = skips.rows.row_of_entry()
    own = context.find(skips.rows.keys // skips.vocab_size)[entry_row]
    q = context.weight_of(own, skips.rows.token) / context.total[own]
    gain = skips.rows.weight * np.log(skips.shares.weight / q)
    told: Floats = np.bincount(entry_row, gain, len(skips.rows)).astype(float)
    return told


def _trials(skips: Skips, candidates: int) -> dict[int, Ids]:
    """For each context that leaves something open: its most informative rows, best first."""
    told = information(skips)
    context = skips.rows.keys // skips.vocab_size
    order = np.lexsort((-told, context))
    order = order[told[order] > 0]
    groups = np.split(order, np.flatnonzero(np.diff(context[order])) + 1) if len(order) else []
    return {int(context[group[0]]): group[:candidates] for group in groups}


def _places(skips: Skips, text: Text, contexts: set[int], limit: int) -> dict[int, Ids]:
    """The places of each of the contexts, at most `limit`, evenly spread."""
    history = text.history
    number = skips.counts.contexts.find(history, history.everywhere, skips.order)[-1]
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    found = {int(number[group[0]]): group for group in groups}
    return {
        context: found[context][np.linspace(0, n - 1, min(n, limit)).astype(np.int64)]
        for context in contexts
        if (n := len(found[context]))
    }


def _incidence(skips: Skips, text: Text, at: Ids) -> dict[int, Ids]:
    """For each row, the places of `at` where its feature is."""
    at = np.sort(at)
    portions = list(skips.features(text.history, at))
    none: Ids = np.empty(0, np.int64)
    places = np.concatenate([none, *(at[which] for which, _ in portions)])
    rows = np.concatenate([none, *(rows for _, rows in portions)])
    order = np.lexsort((places, rows))
    groups = np.split(order, np.flatnonzero(np.diff(rows[order])) + 1)
    return {int(rows[group[0]]): places[group] for group in groups if len(group)}


def _merged(examples: _Examples) -> _Examples:
    """Equal places as one, of their weight together."""
    both = np.column_stack([examples.there, examples.came])
    distinct, which = np.unique(both, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), examples.weight).astype(float)
    return _Examples(distinct[:, :-1], distinct[:, -1].astype(np.int64), weight)


def _choose(examples: _Examples, shares: Floats, enough: float) -> list[int]:
    """Candidates (of F) to let in, greedily: their shares are (F, K), by follower."""
    context = np.bincount(examples.came, examples.weight, shares.shape[1])
    context = context / context.sum()
    hits = [np.flatnonzero(column) for column in examples.there.T]
    votes = np.zeros((len(examples.came), shares.shape[1]))
    cost = -examples.weight * np.log(context[examples.came])  # nobody votes: the context decides

    def cost_of(at: Ids, votes: Floats) -> Floats:
        heard = votes + _WHISPER * context
        heard /= heard[np.arange(len(at)), examples.came[at], None]
        powers = np.square(np.square(heard))  # to the power 4: who is first counts, not the lead
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
