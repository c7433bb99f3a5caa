"""Scores of an answer: exact match, token accuracy, BLEU, chrF and word error rate.

Every score is over a whole corpus, answers beside references in the same order. InputError where
there are none, or not as many of one as of the other. Matches, accuracies and error rates are
shares (1.0 is all); BLEU and chrF go from 0 to 100, as is the custom.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from tinygrad_tf.errors import InputError

A = TypeVar("A")

BLEU_ORDER = 4
CHRF_ORDER = 6
CHRF_BETA = 2.0  # recall counts so many times as much as precision


def exact_match(hypotheses: Sequence[object], references: Sequence[object]) -> float:
    """The share of answers that equal their reference."""
    pairs = _pairs(hypotheses, references)
    return sum(answer == right for answer, right in pairs) / len(pairs)


def token_accuracy(
    hypotheses: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]
) -> float:
    """The share of places that hold the right token.

    There are as many places as tokens in the longer of answer and reference: what is missing and
    what is too much is wrong. Two empty sequences have no place; a corpus of nothing else gives 1.
    """
    right = places = 0
    for answer, reference in _pairs(hypotheses, references):
        right += sum(a == b for a, b in zip(answer, reference, strict=False))
        places += max(len(answer), len(reference))
    return right / places if places else 1.0


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU, 0 to 100, with one reference for each answer (Papineni et al. 2002).

    As sacrebleu computes it by default: words are cut by `mteval_words`; the k-th of the n-gram
    precisions that are 0 counts as 1 / (2^k its n-grams) (Chen and Cherry 2014, method 3). A
    corpus without any n-gram of the highest order, 4, scores 0.
    """
    matches, totals = [0] * BLEU_ORDER, [0] * BLEU_ORDER
    length = reference_length = 0
    for answer, reference in _pairs(hypotheses, references):
        words, right = mteval_words(answer), mteval_words(reference)
        length += len(words)
        reference_length += len(right)
        for order in range(BLEU_ORDER):
            found = _ngrams(words, order + 1)
            totals[order] += found.total()
            matches[order] += (found & _ngrams(right, order + 1)).total()
    if not any(matches) or not all(totals):
        return 0.0
    log_precision, halvings = 0.0, 0
    for matched, total in zip(matches, totals, strict=True):
        halvings += matched == 0
        log_precision += math.log((matched or 0.5**halvings) / total)
    brevity = min(0.0, 1 - reference_length / length)
    return 100 * math.exp(brevity + log_precision / BLEU_ORDER)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2, 0 to 100: F score of character n-grams up to 6 (Popović 2015).

    As sacrebleu computes it by default: no whitespace, and orders that one side has no n-grams of
    are left out of the means.
    """
    matched, answered, referred = ([0] * CHRF_ORDER for _ in range(3))
    for answer, reference in _pairs(hypotheses, references):
        letters, right = "".join(answer.split()), "".join(reference.split())
        for order in range(CHRF_ORDER):
            found, wanted = _ngrams(letters, order + 1), _ngrams(right, order + 1)
            matched[order] += (found & wanted).total()
            referred[order] += wanted.total()
            # What the reference is too short for is neither right nor wrong.
            answered[order] += found.total() if wanted else 0
    orders = [n for n in range(CHRF_ORDER) if answered[n] and referred[n]]
    if not any(matched):
        return 0.0
    precision = sum(matched[n] / answered[n] for n in orders) / len(orders)
    recall = sum(matched[n] / referred[n] for n in orders) / len(orders)
    weight = CHRF_BETA**2
    return 100 * (1 + weight) * precision * recall / (weight * precision + recall)


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Edits per word of the references: insertions, deletions and substitutions.

    Words stand between whitespace. More than 1 where answers are much too long. InputError where
    the references have no word at all.
    """
    edits = words = 0
    for answer, reference in _pairs(hypotheses, references):
        edits += edit_distance(answer.split(), reference.split())
        words += len(reference.split())
    if not words:
        raise InputError("the references have no words", "give references that are not empty")
    return edits / words


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and substitutions between two (Levenshtein 1966)."""
    # row[j]: from what was read of `one` to the first j of `other`.
    row = list(range(len(other) + 1))
    for read, token in enumerate(one, 1):
        diagonal, row[0] = row[0], read
        for j, wanted in enumerate(other, 1):
            substituted = diagonal + (token != wanted)
            diagonal = row[j]
            row[j] = min(substituted, row[j] + 1, row[j - 1] + 1)
    return row[-1]


_WITHIN_WORDS = "',-."
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_MARKS = re.compile(f"([{re.escape(''.join(set(string.punctuation) - set(_WITHIN_WORDS)))}])")
_STOP_AFTER_TEXT = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_TEXT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")


def mteval_words(text: str) -> list[str]:
    """Words and marks as in NIST's mteval-v13a, for languages of the Latin alphabet.

    Marks are words of their own, but for apostrophes, hyphens not behind a digit, and full stops
    and commas between digits.
    """
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for name, character in _ENTITIES:
        text = text.replace(name, character)
    text = _MARKS.sub(r" \1 ", f" {text} ")
    text = _STOP_AFTER_TEXT.sub(r"\1 \2 ", text)
    text = _STOP_BEFORE_TEXT.sub(r" \1 \2", text)
    return _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text).split()


def _ngrams(tokens: Sequence[str], order: int) -> Counter[Sequence[str]]:
    """Return the count of each run of `order` tokens."""
    return Counter(_runs(tokens, order))


def _runs(tokens: Sequence[str], order: int) -> Iterator[Sequence[str]]:
    for start in range(len(tokens) - order + 1):
        run = tokens[start : start + order]
        yield run if isinstance(run, str) else tuple(run)


def _pairs(hypotheses: Sequence[A], references: Sequence[A]) -> list[tuple[A, A]]:
    if len(hypotheses) != len(references):
        raise InputError(
            f"there are {len(hypotheses)} answers for {len(references)} references",
            "give one answer for each reference",
        )
    if not references:
        raise InputError("there is nothing to score", "give at least one answer and its reference")
    return list(zip(hypotheses, references, strict=True))
