"""The runs and reports of comparisons: notes, remarks and verdicts."""

import math

import numpy as np
import pytest

from cli.comparison.results import comparison_part, explain_curve, verdict
from cli.comparison.runner import Callbacks, Config, compare_file, compare_stories
from toymodels.comparison import Amount, Result

TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 90


@pytest.fixture(autouse=True)
def _short_examples(monkeypatch):
    monkeypatch.setattr("toymodels.comparison.EXAMPLE", 4)


@pytest.mark.slow
def test_a_gpt_takes_part_within_its_budget(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text(TEXT, encoding="utf-8")
    lines = []
    outcome = compare_file(book, Config(budget=1.5, curve=True), Callbacks(lines.append))
    gpt = outcome.results[-1]
    assert gpt.model == "GPT 4x128" and 0 < gpt.seconds < 10 and np.isfinite(gpt.nats)
    assert any("windows of 64 tokens" in note for note in outcome.notes)
    assert any("training a GPT" in line for line in lines)
    levels = next(e for e in comparison_part(outcome).exhibits if hasattr(e, "levels")).levels
    assert levels == {"GPT 4x128": gpt.nats}


def test_a_text_too_short_for_a_gpt_is_compared_without(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("the cat and the dog", encoding="utf-8")
    outcome = compare_file(path, Config(budget=1))
    assert any(note.startswith("there is no GPT") for note in outcome.notes)


def test_the_matrix_that_would_be_too_large_is_named(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text(" ".join(f"w{i} w{i // 3}" for i in range(1200)), encoding="utf-8")
    outcome = compare_file(path, Config("word", budget=0, curve=False))
    remarks = " ".join(comparison_part(outcome).remarks)
    assert "too large to be made: " in remarks and "the sparse one" in remarks
    assert "two words are left out: pairs of 1,0" in remarks
    assert "selective skips 2" not in {r.model for r in outcome.results}


@pytest.mark.slow
def test_stories_with_little_of_everything():
    outcome = compare_stories(Config(chars=9000, budget=1.0, seed=3))
    assert {r.unit for r in outcome.results} == {"word", "character"}
    assert outcome.results[-1].model == "GPT 2x96"
    assert all(r.bits_per_char > outcome.floor for r in outcome.results)
    table = comparison_part(outcome).exhibits[0]
    assert table.rows[-1][0] == "the floor" and "beyond 5" in table.headings


def row(model, bits, unit="character"):
    return Result(model, unit, 1, 8, 0.1, bits * math.log(2), bits, bits, 0.5, None, 1, "")


def test_of_equal_models_none_wins():
    equal = verdict([row("Markov 1", 2.0), row("another", 2.0)])
    assert equal.startswith("Markov 1 and another are equal")


def test_the_amount_from_which_an_order_is_best():
    curve = [
        Amount(10, {"Witten-Bell 1": 2.0, "Witten-Bell 2": 3.0}, {1: 0.9, 2: 0.2}),
        Amount(20, {"Witten-Bell 1": 1.9, "Witten-Bell 2": 2.0}, {1: 0.9, 2: 0.2}),
        Amount(40, {"Witten-Bell 1": 1.8, "Witten-Bell 2": 1.5}, {1: 1.0, 2: 0.7}),
    ]
    first, second = explain_curve(curve)
    assert first.startswith(
        "from 10 tokens on Witten-Bell 1 is the best order of Witten-Bell (2.000 nats): at 90%"
    )
    assert second.startswith(
        "from 40 tokens on Witten-Bell 2 is the best order of Witten-Bell (1.500 nats): at 70%"
    )


def test_the_verdict_names_the_winner():
    text = verdict([row("Markov 1", 3.0), row("GPT", 2.0), row("Witten-Bell 4", 1.5)], 1.25)
    assert text.startswith("Witten-Bell 4 wins with 1.0397 nats per character (1.5 bits")
    assert "1.200 times the floor of 1.2500" in text and "next is GPT" in text
    assert "GPT comes second" in text
    mixed = verdict([row("Markov 1", 3.0, "word"), row("GPT", 2.0)])
    assert mixed.startswith("GPT wins with 2 bits per character; next is Markov 1")
