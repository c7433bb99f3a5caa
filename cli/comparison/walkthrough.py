"""The story of source document S4 in six parts, each computed from a few sentences.

A chain of words, a second word, votes of all words, the mask, the same as a transformer, and a
transformer that found the mask by itself. Every number is counted or computed here and now.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cli.comparison.report import Bars, Matrix, Part, ReportTable
from cli.comparison.walkthrough_transformers import found_by_learning, wired_by_hand
from tinygrad_tf.types import Ids
from toymodels.learned import SEEDS, Place, deciding_places, learn
from toymodels.markov import Markov, matrix_size
from toymodels.masks import selective
from toymodels.model import LanguageModel
from toymodels.sentences import CMD3, LOGS, PAIR, Language
from toymodels.skips import Skips

_MOST_SENTENCES = 64


def story(seeds: Sequence[int] = SEEDS) -> Iterator[Part]:
    """Yield all parts in order; the last trains one model for each of the `seeds`."""
    commands, pair, logs = map(Language.of, (CMD3, PAIR, LOGS))
    yield one_word_back(commands)
    yield two_words_back(pair)
    yield all_words_vote(logs)
    yield masked_votes(logs)
    yield wired_by_hand(logs)
    yield found_by_learning(logs, learn(logs, seeds))


def one_word_back(language: Language) -> Part:
    """Show a first-order Markov chain: its matrix, where it branches, and its sentences."""
    chain, words = Markov.fit(language.text, 1), language.vocabulary.words
    branches = [(words[context[0]], chain.row_entropy(np.array(context)))
                for context in chain.branches()]  # fmt: skip
    first = language.sentences[0][:1]
    return Part(
        "first order",
        "One word back: a Markov chain",
        (
            f"Only `{'`, `'.join(word for word, _ in branches)}` leaves anything open.",
            "A row of zeros is where a sentence ends.",
            f"Greedily from `{language.vocabulary.text(first)}`: {_whole(language, chain, first)}.",
        ),
        (
            Matrix("what follows each word", words, words, chain.matrix()),
            ReportTable(
                "what is left open",
                ("after", "nats", "bits"),
                tuple((word, nats, nats / math.log(2)) for word, nats in branches),
            ),
            _likelihoods(language, [chain]),
        ),
    )


def two_words_back(language: Language) -> Part:
    """Show first against second order: the rows that branch, and the mass that leaks."""
    models = [Markov.fit(language.text, order) for order in (1, 2)]
    words, text = language.vocabulary.words, language.vocabulary.text
    first, second = (model.matrix() for model in models)
    used = np.flatnonzero(second.any(axis=1))
    labels = tuple(text(divmod(int(row), len(words))) for row in used)
    open_rows = [[text(context) for context in model.branches()] for model in models]
    start = language.sentences[0][:1]
    costs = [(m.name, language.leaked_mass(m), nats, nats / math.log(2))
             for m in models for nats in [language.cross_entropy(m)]]  # fmt: skip
    return Part(
        "second order",
        "Two words back: what one word cannot decide",
        (
            f"With one word `{'` and `'.join(open_rows[0])}` leave something open, with two only "
            f"`{'`, `'.join(open_rows[1])}`.",
            f"{len(words)} words become {len(second)} pairs, of which {len(used)} are followed by "
            "a word.",
            f"Greedily from `{text(start)}`: {_whole(language, models[1], start)}.",
        ),
        (
            Matrix("one word back", words, words, first),
            Matrix("two words back (rows that are not 0)", labels, words, second[used]),
            _likelihoods(language, models),
            ReportTable(
                "what a sentence costs",
                ("model", "mass on sentences nobody says", "nats", "bits"),
                tuple(costs),
            ),
        ),
    )


def all_words_vote(language: Language) -> Part:
    """Show second order with skips: votes after the deciding word, and sentences by votes."""
    model, places = Skips.fit(language.text), deciding_places(language)
    words, text = language.vocabulary.words, language.vocabulary.text
    current = places[0].prompt[-1:]
    table = model.table(current)[: len(words), : len(words)]
    chosen = np.flatnonzero(table.any(axis=0))
    span = max(len(p.prompt) - int(p.mask.argmax()) for p in places)
    naive, pairs = matrix_size(len(words), span), matrix_size(len(words), 2)
    bars = [_votes(language, place, model) for place in places]
    return Part(
        "skips",
        "All words vote: second order with skips",
        (
            f"The word that decides stands {span} words back: a matrix of all contexts would have "
            f"{naive.rows:,} rows, pairs of words take {pairs.rows:,}.",
            f"{_pairs_of_words(model, len(words))} pairs have a vote, "
            f"{int(table.any(axis=1).sum())} of them with `{text(current)}`.",
            "Of words with equally many votes the first of the vocabulary is taken.",
        ),
        (
            Matrix(
                f"what each earlier word votes for after `{text(current)}`",
                words,
                tuple(words[i] for i in chosen),
                table[:, chosen],
            ),
            *bars,
            *(_walk(language, model, place) for place in places),
        ),
    )


def masked_votes(language: Language) -> Part:
    """Show the mask that is learned from the sentences, and the votes under it."""
    model, places = selective(language.text), deciding_places(language)
    words, text = language.vocabulary.words, language.vocabulary.text
    current = places[0].prompt[-1:]
    mask = model.mask(current)[: len(words)]
    active = [model.activities(place.prompt)[: len(words)] for place in places]
    titles = [text(place.prompt[place.mask > 0]) for place in places]
    deciding = np.flatnonzero(mask)
    rows = zip(words, *active, mask, *(a * mask for a in active), strict=True)
    return Part(
        "mask",
        "The mask: only the words that decide may vote",
        (
            f"Which words those are was learned from the sentences: after `{text(current)}` it is "
            f"{' and '.join(f'`{words[i]}`' for i in deciding)}.",
            _ratios(language, places, Skips.fit(language.text), model),
        ),
        (
            ReportTable(
                f"words before `{text(current)}`, and those that the mask lets through",
                (
                    "word",
                    *titles,
                    "mask",
                    *(f"{t}, masked" for t in titles),
                ),
                tuple((word, *(int(x) for x in row)) for word, *row in rows),
            ),
            Matrix(
                "votes under the mask",
                tuple(f"{words[i]}, {text(current)}" for i in deciding),
                words,
                model.table(current)[deciding][:, : len(words)],
            ),
            *(_votes(language, place, model) for place in places),
            Matrix(
                "the masks of all words: a one-hot query times this matrix is its mask (Q K^T)",
                words,
                words,
                model.masks()[: len(words), : len(words)],
            ),
        ),
    )


def possible_sentences(language: Language, model: LanguageModel) -> list[Ids]:
    """Return every sentence with a probability above 0 under a model, in the order of the
    vocabulary; where these are many, return the sentences of the language instead."""
    sentences: list[Ids] = []
    open_ = [np.empty(0, np.int64)]
    longest = 2 * max(map(len, language.sentences))
    while open_:
        begun = open_.pop()
        for token in np.flatnonzero(model.next_probs(begun))[::-1]:
            if token == language.end:
                sentences.append(begun)
            else:
                open_.append(np.append(begun, token))
        if len(sentences) + len(open_) > _MOST_SENTENCES or len(begun) > longest:
            return [np.array(ids) for ids in language.probabilities]
    return sentences


def _likelihoods(language: Language, models: Sequence[Markov]) -> ReportTable:
    truth, text = language.probabilities, language.vocabulary.text
    rows = [
        (text(ids), truth.get(tuple(ids.tolist()), 0.0),
         *(language.likelihood(model, text(ids)) for model in models))
        for ids in possible_sentences(language, models[0])
    ]  # fmt: skip
    return ReportTable(
        "how likely each sentence is",
        ("sentence", "truth", *(f"order {model.order}" for model in models)),
        tuple(rows),
    )


def _whole(language: Language, model: LanguageModel, prompt: Ids) -> str:
    longest = max(map(len, language.sentences))
    return language.vocabulary.text([*prompt, *model.continue_(prompt, longest)])


def _votes(language: Language, place: Place, model: Skips) -> Bars:
    words = language.vocabulary.words
    history = model.history(place.prompt)
    votes = model.votes(history, np.array([len(place.prompt)]))[0]
    shown = [i for i in range(len(words)) if votes[i] > 0 or i in _rivals(language)]
    return Bars(
        f"votes after `{language.vocabulary.text(place.prompt)}`",
        tuple(words[i] for i in shown),
        tuple(float(votes[i]) for i in shown),
    )


def _rivals(language: Language) -> set[int]:
    return {place.right for place in deciding_places(language)}


def _ratios(language: Language, places: Sequence[Place], plain: Skips, masked: Skips) -> str:
    """Return the lead of the right word, without the mask and under it."""
    leads = []
    for model in (plain, masked):
        place = places[0]
        bars = _votes(language, place, model)
        right = language.vocabulary.words[place.right]
        votes = dict(zip(bars.labels, bars.values, strict=True))
        other = max(v for word, v in votes.items() if word != right)
        leads.append(f"{votes[right]:g} to {other:g}")
    lead = leads[0].split(" to ")
    share = float(lead[0]) / float(lead[1]) - 1
    return f"A lead of {leads[0]} ({share:.0%}) becomes {leads[1]}."


def _walk(language: Language, model: Skips, place: Place) -> ReportTable:
    """Show the walk by votes that begins with a sentence up to the word that decides."""
    prompt = place.prompt[: int(place.mask.argmax()) + 1]
    words, rows = (*language.vocabulary.words, "END"), []
    tokens = prompt
    for _ in range(2 * max(map(len, language.sentences))):
        votes = model.votes(model.history(tokens), np.array([len(tokens)]))[0][: language.end]
        if not votes.any():
            break
        best = int(votes.argmax())
        others = {words[i]: float(v) for i, v in enumerate(votes) if v > 0 and i != best}
        rows.append((words[best], float(votes[best]),
                     ", ".join(f"{word} {v:g}" for word, v in others.items())))  # fmt: skip
        tokens = np.append(tokens, best)
    return ReportTable(
        f"greedily by votes from `{language.vocabulary.text(prompt)}`",
        ("word", "votes", "others"),
        tuple(rows),
    )


def _pairs_of_words(model: Skips, words: int) -> int:
    """Count the features whose votes are for words, not for the end of the sentence alone."""
    return sum(
        1 for u, context, votes in model.pairs()
        if max(u, *context) < words and any(token < words for token in votes)
    )  # fmt: skip
