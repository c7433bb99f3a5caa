"""`tt coreference`: the learned attention beside the designed one."""

import json

import pytest

from tests.cli.conftest import Outcome


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("the cat drank the milk", "0 times 'it'"),
        ("it saw it", "2 times 'it'"),
        ("the cat drank the wine because it was sweet", "lacks 'wine'"),
        ("", "0 times 'it'"),
        ("it was hungry", "has no noun that 'it' could refer to"),
        (
            "the cat drank " + "the " * 30 + "milk because it was sweet",
            "tokens, and the most is 24",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_before_any_training(tt, sentence, fault):
    outcome: Outcome = tt("coreference", sentence)
    assert outcome.code == 2 and fault in outcome.err
    assert outcome.err.count("\n") == 1 and outcome.out == ""


@pytest.mark.slow
def test_it_is_found(tt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentences = {
        "the cat drank the milk because it was hungry": "cat",
        "the cat drank the milk because it was sweet": "milk",
        "the bread was eaten by the dog because it was salty": "bread",
    }
    outcome = tt("coreference", *sentences, "--json", "--save", "it.html")
    told = json.loads(outcome.out)
    judged = told["held_out"]
    assert judged["sentences"] == 500
    assert judged["accuracy"] >= 0.98 and judged["above_half"] >= 0.98 and judged["weight"] > 0.5
    for one, noun in zip(told["learned"], sentences.values(), strict=True):
        assert one["answer"] == noun and sum(one["weights"]) == pytest.approx(1.0, abs=1e-5)
    assert [one["answer"] for one in told["designed"]] == ["cat", "milk"]
    assert max(told["designed"][0]["weights"]) == pytest.approx(0.9782018695979414)
    assert (tmp_path / "it.html").exists()
