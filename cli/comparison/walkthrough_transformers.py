"""The last two parts of the walkthrough: a transformer wired by hand, and a trained one."""

from collections.abc import Sequence

import numpy as np

from cli.comparison.report import Matrix, Part, ReportTable
from tinygrad_tf.types import Floats
from toymodels.handwired import HandWired, wire
from toymodels.learned import Learned, Place, deciding_places
from toymodels.sentences import Language

BETAS = (0.0, 1.0, 5.0, 10.0)


def wired_by_hand(language: Language, betas: Sequence[float] = BETAS) -> Part:
    """Show the transformer whose weights are put together from the counted votes."""
    wired, places = wire(language, betas[-1]), deciding_places(language)
    words = language.vocabulary.words
    names = [f"{words[u]}, {words[c]}" for u, c in wired.features]
    currents = sorted({c for _, c in wired.features} - set(wired.earlier_words))
    inputs = [*wired.earlier_words, *currents]
    return Part(
        "hand-wired",
        "The same as a transformer, wired by hand",
        (
            "The current word asks (W_q) with the strength beta for the words of its mask; the "
            "residual keeps it; the feature layer with ReLU finds the pair; the last matrix says "
            "what follows.",
        ),
        (
            Matrix(
                "feature layer",
                (*(words[i] for i in inputs), "bias"),
                tuple(names),
                wired.feature_matrix(),
            ),
            _features(wired, inputs, words),
            Matrix("what follows each feature", tuple(names), words, wired.w_transition.data),
            *(_betas(language, place, betas) for place in places),
        ),
    )


def found_by_learning(language: Language, learned: Sequence[Learned]) -> Part:
    """Show the trained one-layer models: a row per seed, and the mask beside mean attention."""
    text = language.vocabulary.text
    names = [text(d.place.prompt[d.place.mask > 0]) for d in learned[0].decisions]
    current = text(learned[0].decisions[0].place.prompt[-1:])
    rows = [
        (
            row.seed,
            row.loss,
            row.probability,
            *(d.on_deciding for d in row.decisions),
            max(d.on_other for d in row.decisions),
            row.agrees,
        )
        for row in learned
    ]
    sets = []
    for i, name in enumerate(names):
        place = learned[0].decisions[i].place
        mean = np.mean([row.decisions[i].attention for row in learned], axis=0)
        sets.append(
            Matrix(
                f"mask and mean attention of `{current}` ({name})",
                ("mask", "attention"),
                tuple(text([word]) for word in place.prompt),
                np.stack([place.mask, mean]),
            )
        )
    agree = sum(row.agrees for row in learned)
    strong = sum(row.on_deciding > 0.9 for row in learned)
    return Part(
        "learned",
        "A transformer that found the mask by itself",
        (
            f"One layer, one head, trained on the sentences alone. In {agree} of {len(learned)} "
            f"seeds the word that decides gets more of the attention of `{current}` than any "
            f"other, in {strong} more than 0.9 of it; the right next word gets at least "
            f"{min(row.probability for row in learned):.4f}.",
        ),
        (
            ReportTable(
                f"{len(learned)} seeds: loss in nats per word, and the attention of `{current}`",
                (
                    "seed",
                    "loss",
                    "P(right)",
                    *(f"on {name}" for name in names),
                    "most elsewhere",
                    "as the mask",
                ),
                tuple(rows),
            ),
            *sets,
        ),
    )


def _features(wired: HandWired, inputs: Sequence[int], words: Sequence[str]) -> ReportTable:
    """Show the feature layer for every combination of its words being there or not."""
    matrix, rows = wired.feature_matrix(), []
    for number in range(2 ** len(inputs)):
        there = [number >> (len(inputs) - 1 - bit) & 1 for bit in range(len(inputs))]
        before: Floats = np.array([*there, 1.0]) @ matrix
        rows.append((*there, _numbers(before), _numbers(np.maximum(before, 0))))
    return ReportTable(
        "features of every combination",
        (*(words[i] for i in inputs), "before ReLU", "features"),
        tuple(rows),
    )


def _betas(language: Language, place: Place, betas: Sequence[float]) -> ReportTable:
    words, rows = language.vocabulary.words, []
    deciding = int(place.mask.argmax())
    for beta in betas:
        done = wire(language, beta).forward(place.prompt)
        weights, logits = done.weights.data[-1], done.logits.data[-1]
        others = np.delete(weights, deciding)
        rows.append((beta, float(weights[deciding]), float(others.max()),
                     *(float(x) for x in done.before_relu.data[-1]),
                     float(logits.max()), words[int(logits.argmax())]))  # fmt: skip
    wired = wire(language)
    return ReportTable(
        f"after `{language.vocabulary.text(place.prompt)}`: attention, features before ReLU",
        (
            "beta",
            f"on {words[place.prompt[deciding]]}",
            "each other",
            *(f"{words[u]}, {words[c]}" for u, c in wired.features),
            "logit",
            "next",
        ),
        tuple(rows),
    )


def _numbers(values: Floats) -> str:
    return " ".join(f"{value + 0.0:g}" for value in values)
