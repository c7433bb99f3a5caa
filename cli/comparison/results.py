"""The report of a comparison: its tables, its curve, and their results in sentences."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cli.comparison.report import Curves, Exhibit, Matrix, Part, Quotes, ReportTable
from cli.comparison.runner import Outcome
from cli.format import counted
from toymodels.comparison import ADD, LARGE, SMALL_EFFORT, WINDOW, Amount, Result
from toymodels.markov import LARGEST_MATRIX, Markov, matrix_size

_DRAWN = 80  # words or characters up to which a matrix is shown
_ENOUGH = 0.95  # accuracy at far words from which a model counts as knowing them

HOW_VOTES_COUNT = (
    "Votes are no probabilities. To be counted in bits they are raised to a power and divided by "
    "their sum, and n-grams of the last words (Witten-Bell) are mixed in with a small weight; "
    "power and weight are those of a few that suit the training text best."
)


def comparison_part(outcome: Outcome) -> Part:
    """Make the part of the report about one comparison."""
    return Part(
        "comparison",
        f"Every model on the held-out part of {outcome.split.title}: "
        + counted(outcome.split.targets, outcome.split.unit)
        + (
            ""
            if outcome.split.unit == "character"
            else f", {counted(outcome.split.chars, 'character')}"
        ),
        tuple(remarks(outcome)),
        tuple(exhibits(outcome)),
    )


def remarks(outcome: Outcome) -> Iterator[str]:
    """Yield the winner, the results at far words, and how everything was counted."""
    yield verdict(outcome.results, outcome.floor)
    yield from far_remarks(outcome)
    yield HOW_VOTES_COUNT
    if outcome.split.train.end is None:
        yield (
            f"Skips look back {WINDOW} tokens; their masks are learned from the "
            f"{SMALL_EFFORT['candidates']} words that tell most in each context."
        )
    if outcome.split.train.vocab_size > LARGE:
        yield (
            "Selective skips after two words are left out: pairs of "
            f"{outcome.split.train.vocab_size:,} {outcome.split.unit}s are too many to learn a "
            "mask for each."
        )
    yield f"Markov models add {ADD:g} to each count, so that nothing is impossible."
    yield from (note[:1].upper() + note[1:] + "." for note in outcome.notes)
    yield matrix_remark(outcome)
    yield from (f"With more text: {line}." for line in explain_curve(outcome.curve))


def far_remarks(outcome: Outcome) -> Iterator[str]:
    """Yield the models that know the words which one far back decides, if there are such words."""
    far = outcome.split.far
    rows = {r.model: r for r in outcome.results if r.far is not None}
    if far is None or not rows:
        return
    knowing = [f"{r.model} by {r.unit}s ({r.far:.1%})" for r in rows.values() if _knows(r)]
    yield (
        f"{len(far.start):,} words follow for certain from one more than {far.beyond} words back; "
        f"to guess among the words that could stand there is right in {far.chance:.1%}. "
        + (
            f"Above {_ENOUGH:.0%}: {', '.join(knowing)}."
            if knowing
            else f"None is above {_ENOUGH:.0%}."
        )
    )
    one, two = (rows.get(f"selective skips {order}") for order in (1, 2))
    if one is not None and two is not None and _knows(two) and not _knows(one):
        yield (
            f"Selective skips need contexts of two words for that: after one word the same "
            f"question has several answers, and they reach {one.far:.1%}."
        )


def _knows(result: Result) -> bool:
    return result.far is not None and result.far > _ENOUGH


def matrix_remark(outcome: Outcome) -> str:
    """Return the size of the matrix of the second order, and of its stored part."""
    split = outcome.split
    size = matrix_size(split.train.vocab_size, 2)
    stored = next((r.parameters for r in outcome.results if r.reach == 2 and r.unit == split.unit),
                  0)  # fmt: skip
    whole = "would be" if size.numbers <= LARGEST_MATRIX else "is too large to be made:"
    return (
        f"The dense matrix of the second order {whole} {size.rows:,} rows and {size.columns:,} "
        f"columns, {_bytes(size.memory_bytes)}; the sparse one, which is used, stores {stored:,} "
        "numbers."
    )


def exhibits(outcome: Outcome) -> Iterator[Exhibit]:
    """Yield the tables, the examples, the curve, and the first-order matrix if it is small."""
    yield costs(outcome)
    yield stores(outcome)
    yield Quotes(
        "an example from each", tuple((f"{r.model}, {r.unit}s", r.example) for r in outcome.results)
    )
    yield ReportTable(
        "how votes became bits",
        ("model", "votes to the power", "n-grams mixed in"),
        tuple((r.model, *r.mixed) for r in outcome.results if r.mixed is not None),
    )
    if outcome.curve:
        yield lines(outcome)
        yield amounts(outcome)
    split = outcome.split
    if split.train.vocab_size <= _DRAWN:
        chain = Markov.fit(split.train, 1)
        labels = tuple(split.show(np.array([token])) for token in chain.inner)
        yield Matrix("what follows each " + split.unit, labels, labels, chain.matrix())


def costs(outcome: Outcome) -> ReportTable:
    """Make the table of cost and accuracy of each model, with the floor where it is known."""
    far = outcome.split.far
    headings = ["model", "by", "nats", "bits", "bits/char", "top-1"]
    rows: list[tuple[object, ...]] = [
        (r.model, r.unit, r.nats, r.bits, r.bits_per_char, r.accuracy, r.far)
        for r in outcome.results
    ]
    if outcome.floor is not None and outcome.split.floor_nats is not None:
        nats = outcome.split.floor_nats / outcome.split.targets
        unit = outcome.split.unit
        rows.append(("the floor", unit, nats, nats / math.log(2), outcome.floor, None, None))
    if far is None:
        rows = [row[:-1] for row in rows]
    else:
        headings.append(f"beyond {far.beyond}")
    return ReportTable("what each pays per token, and gets right", tuple(headings), tuple(rows))


def stores(outcome: Outcome) -> ReportTable:
    """Make the table of size, training time and reach of each model."""
    rows = [
        (r.model, r.unit, r.parameters, _bytes(r.memory_bytes), r.seconds,
         "the sentence" if r.reach is None else r.reach)
        for r in outcome.results
    ]  # fmt: skip
    headings = ("model", "by", "numbers", "memory", "seconds", "sees")
    return ReportTable("what each stores", headings, tuple(rows))


def lines(outcome: Outcome) -> Curves:
    """Make the curves of held-out cost against the amount of training text.

    The GPT, trained on all of it, is a level where it predicts the same tokens.
    """
    names = outcome.curve[0].nats
    return Curves(
        f"held-out nats per {outcome.split.unit} after so much training text",
        f"{outcome.split.unit}s",
        {name: [(a.tokens, a.nats[name]) for a in outcome.curve] for name in names},
        {
            r.model: r.nats
            for r in outcome.results
            if r.model.startswith("GPT") and r.unit == outcome.split.unit
        },
    )


def amounts(outcome: Outcome) -> ReportTable:
    """Make the table of the curves, with the shares of longer contexts that had occurred."""
    names = list(outcome.curve[0].nats)
    lengths = [k for k in outcome.curve[0].met if k in (3, max(outcome.curve[0].met))]
    short = [name.replace("Witten-Bell", "WB").replace("Kneser-Ney", "KN") for name in names]
    return ReportTable(
        "the same in numbers, and the share of places whose last tokens had been met",
        (f"{outcome.split.unit}s", *short, *(f"met {k}" for k in lengths)),
        tuple(
            (a.tokens, *(a.nats[n] for n in names), *(a.met[k] for k in lengths))
            for a in outcome.curve
        ),
    )


def verdict(results: Sequence[Result], floor_bits_per_char: float | None = None) -> str:
    """Name the model with the lowest cost, in a sentence or two.

    Models of different units are compared by bits per character.
    """
    ranked = sorted(results, key=lambda r: r.bits_per_char)
    best = ranked[0]
    one_unit = len({r.unit for r in results}) == 1

    def cost(r: Result) -> str:
        per_char = f"{r.bits_per_char:.4g} bits per character"
        return f"{r.nats:.4f} nats per {r.unit} ({per_char})" if one_unit else per_char

    alike = [r.model for r in ranked[1:] if r.bits_per_char - best.bits_per_char < 1e-9]
    if alike:
        return f"{best.model} and {', '.join(alike)} are equal, with {cost(best)}: nobody wins."
    text = f"{best.model} wins with {cost(best)}"
    if floor_bits_per_char:
        ratio = best.bits_per_char / floor_bits_per_char
        text += f", {ratio:.3f} times the floor of {floor_bits_per_char:.4f}"
    if len(ranked) > 1:
        text += f"; next is {ranked[1].model} with {cost(ranked[1])}"
    gpt = next((r for r in ranked if r.model.startswith("GPT")), None)
    if gpt is not None and gpt is not best:
        ahead = [r.model for r in ranked[: ranked.index(gpt)]]
        text += f". {gpt.model} comes {_ordinal(len(ahead) + 1)} with {cost(gpt)}"
    return text + "."


def explain_curve(amounts: Sequence[Amount]) -> list[str]:
    """Name the amounts of text from which an order of Witten-Bell is best, and how many of its
    contexts had occurred there."""
    sentences = []
    previous = ""
    for amount in amounts:
        smoothed = [name for name in amount.nats if name.startswith("Witten-Bell")]
        name = min(smoothed, key=amount.nats.__getitem__)
        if name == previous:
            continue
        order = int(name.split()[-1])
        sentences.append(
            f"from {amount.tokens:,} tokens on {name} is the best order of Witten-Bell "
            f"({amount.nats[name]:.3f} nats): at "
            f"{amount.met[order]:.0%} of the held-out places its context had been met"
        )
        previous = name
    return sentences


def _ordinal(number: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    return names[number - 1] if number <= len(names) else f"number {number}"


def _bytes(number: int) -> str:
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if number >= 1000**power:
            return f"{number / 1000**power:,.1f} {unit}"
    return f"{number} B"
