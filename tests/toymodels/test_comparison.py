"""Comparisons: how texts are cut, what is measured, who wins."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cli.comparison.results import comparison_part, explain_curve, verdict
from cli.comparison.runner import Config, compare_file, compare_stories, hold_out_stories
from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.text import CharTokenizer
from toymodels.comparison import (
    Amount,
    Result,
    candidates,
    compare,
    far_accuracy,
    last_part,
    learning_curve,
    measure,
)
from toymodels.held_out import UNKNOWN, spell_stories, split_stories, split_tokens, split_words
from toymodels.model import Score, score
from toymodels.sentences import PAIR, Language
from toymodels.stories import story_words
from toymodels.text import Text

TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 30


def letters(text=TEXT, fraction=0.1):
    tokenizer = CharTokenizer.from_text(text)
    return split_tokens("a text", tokenizer.encode(text), tokenizer, fraction)


def test_the_held_out_part_is_the_end_and_has_the_rest_before_it():
    split = letters()
    assert split.targets == split.chars == len(TEXT) // 10
    assert split.show(split.held_out) == TEXT[-len(TEXT) // 10 - split.first :]
    assert split.show(split.train.tokens) == TEXT[: len(TEXT) - len(TEXT) // 10]


def test_words_that_training_never_saw_are_one_token():
    split = split_words("a text", "a b, a b. " * 9 + "a new, newer b.", 7 / 60)
    # The last 7 tokens: . a new , newer b .
    assert split.show(split.held_out[split.first :]) == f". a {UNKNOWN}, {UNKNOWN} b."
    assert "2 of the 7" in split.notes[0] and split.chars == len(". a new, newer b.")
    with pytest.raises(InputError, match="'new' is not among"):
        split.read("a new")


@pytest.mark.parametrize("make", [letters, lambda t, f: split_words("a text", t, f)])
def test_an_empty_held_out_part_is_refused(make):
    with pytest.raises(InputError, match="held-out part of a text is empty"):
        make("one two three", 1e-9)


@pytest.fixture(scope="module")
def stories():
    train, held_out = hold_out_stories(12_000, 0.2, 5)
    return train, held_out, corpus.floor(held_out)


def test_stories_are_dealt_once_and_by_the_seed(stories):
    train, held_out, _ = stories
    whole = corpus.generate(12_000).stories
    assert sorted([*train, *held_out]) == sorted(whole)
    assert len(held_out) == round(0.2 * len(whole))
    assert hold_out_stories(12_000, 0.2, 5)[1] == held_out != hold_out_stories(12_000, 0.2, 6)[1]


def test_words_and_characters_ask_for_the_same_far_words(stories):
    train, held_out, floor = stories
    words = split_stories(train, held_out, floor.nats)
    spelled = spell_stories(
        train, held_out, CharTokenizer.from_text(corpus.generate(12_000).text), floor.nats
    )
    assert words.chars == spelled.chars == spelled.targets == floor.chars
    assert spelled.show(spelled.held_out) == "".join(f"{s}\n" for s in held_out)
    far = [
        split.show(split.held_out[a:b])
        for split in (words, spelled)
        for a, b in zip(split.far.start, split.far.stop, strict=True)
    ]
    assert len(far) > 20 and far[: len(far) // 2] == far[len(far) // 2 :]
    assert words.far.chance == spelled.far.chance and 0.1 < words.far.chance < 0.5
    assert words.targets == sum(len(story_words(s)) + 1 for s in held_out)


def test_a_far_word_is_right_if_all_of_it_is():
    train, held_out = hold_out_stories(12_000, 0.2, 5)
    words = split_stories(train, held_out, 0.0)
    right = np.zeros(len(words.held_out), bool)
    right[words.far.start[::2]] = True
    assert far_accuracy(Score(right * 1.0, right), words) == pytest.approx(0.5, abs=0.05)
    spelled = spell_stories(train, held_out, CharTokenizer.from_text(TEXT + "".join(
        corpus.generate(12_000).stories)), 0.0)  # fmt: skip
    right = np.ones(len(spelled.held_out), bool)
    assert far_accuracy(Score(right * 1.0, right), spelled) == 1
    right[spelled.far.stop - 1] = False
    assert far_accuracy(Score(right * 1.0, right), spelled) == 0


def test_figures_of_a_row_are_those_of_the_model():
    split = letters()
    rows = list(compare(split, candidates(split, (1, 2))))
    names = [row.model for row in rows]
    assert names == [
        "Markov 1, add 0.1", "Markov 2, add 0.1", "Witten-Bell 2", "Kneser-Ney 2", "skips 1",
        "selective skips 1", "selective skips 2",
    ]  # fmt: skip
    for row, candidate in zip(rows, candidates(split, (1, 2)), strict=True):
        model = candidate.make()
        found = score(model, split.held_out, split.first)
        assert row.nats == pytest.approx(found.mean_nats) and row.far is None
        assert row.bits == pytest.approx(row.nats / math.log(2))
        assert row.bits_per_char == pytest.approx(row.bits)
        assert row.accuracy == found.accuracy and row.parameters == model.parameters
        assert (row.mixed is None) == (not candidate.votes) and row.example


def test_equals_are_not_told_to_win():
    split = letters()
    row = next(iter(compare(split, candidates(split, (1, 2)))))
    same = replace(row, model="another")
    assert verdict([row, same]).startswith(f"{row.model} and another are equal")
    better = replace(row, model="better", bits_per_char=row.bits_per_char / 2)
    assert verdict([row, better]).startswith("better wins with")


def test_bits_per_character_are_those_of_the_words():
    split = split_words("a text", TEXT, 0.1)
    row = measure(next(candidates(split)).make(), split, 0.0)
    assert row.bits_per_char * split.chars == pytest.approx(row.bits * split.targets)


def test_ever_more_text_from_the_end():
    text = Text(np.arange(100) % 7, 7)
    assert last_part(text, 0.25).tokens.tolist() == text.tokens[75:].tolist()
    pair = Language.of(PAIR).text
    part = last_part(pair, 0.6)  # whole sentences: the beginning of the second is left out
    assert part.tokens.tolist() == pair.tokens.tolist() or part.tokens[-1] == pair.end
    split = letters()
    curve = learning_curve(split, (0.5, 1.0), (1, 3))
    assert [a.tokens for a in curve] == [round(0.5 * len(split.train)), len(split.train)]
    assert set(curve[0].nats) == {"Witten-Bell 1", "Witten-Bell 3", "Kneser-Ney 3"}
    rows = {r.model: r for r in compare(split, candidates(split, (1, 3)))}
    assert curve[-1].nats["Witten-Bell 3"] == pytest.approx(rows["Witten-Bell 3"].nats)
    assert curve[-1].met[1] == curve[-1].met[3] == 1.0


def test_where_an_order_begins_to_win_is_said():
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


def row(model, bits, unit="character"):
    return Result(model, unit, 1, 8, 0.1, bits * math.log(2), bits, bits, 0.5, None, 1, "")


def test_who_wins_is_said_plainly():
    said = verdict([row("Markov 1", 3.0), row("GPT", 2.0), row("Witten-Bell 4", 1.5)], 1.25)
    assert said.startswith("Witten-Bell 4 wins with 1.0397 nats per character (1.5 bits")
    assert "1.200 times the floor of 1.2500" in said and "next is GPT" in said
    assert "GPT comes second" in said
    mixed = verdict([row("Markov 1", 3.0, "word"), row("GPT", 2.0)])
    assert mixed.startswith("GPT wins with 2 bits per character; next is Markov 1")


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT * 3, encoding="utf-8")
    return path


@pytest.mark.parametrize("tokenizer", ["char", "word", "byte"])
def test_a_file_by_any_tokenizer(book, tokenizer):
    outcome = compare_file(book, Config(tokenizer, budget=0, curve=False))
    assert not outcome.curve and not any(r.model.startswith("GPT") for r in outcome.results)
    assert min(r.bits_per_char for r in outcome.results) < 0.2
    assert {r.unit for r in outcome.results} == {tokenizer.replace("char", "character")}
    part = comparison_part(outcome)
    assert part.remarks[0].endswith(".") and part.exhibits[0].rows


def test_a_gpt_takes_part_within_its_budget(book):
    heard = []
    from cli.comparison.runner import Callbacks

    outcome = compare_file(book, Config(budget=1.5), Callbacks(heard.append))
    gpt = outcome.results[-1]
    assert gpt.model == "GPT 4x128" and 0 < gpt.seconds < 10 and np.isfinite(gpt.nats)
    assert any("windows of 64 tokens" in note for note in outcome.notes)
    assert any("training a GPT" in line for line in heard)
    levels = next(e for e in comparison_part(outcome).exhibits if hasattr(e, "levels")).levels
    assert levels == {"GPT 4x128": gpt.nats}


@pytest.mark.parametrize("text", ["hello", "hello\n", "\n\n"])
def test_a_text_of_one_word_is_refused(tmp_path, text):
    path = tmp_path / "one.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="what follows what takes at least 2"):
        compare_file(path, Config())


def test_a_text_too_short_for_a_gpt_is_compared_without(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("the cat and the dog", encoding="utf-8")
    outcome = compare_file(path, Config(budget=1))
    assert any(note.startswith("there is no GPT") for note in outcome.notes)


def test_the_matrix_that_would_be_too_large_is_named(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text(" ".join(f"w{i} w{i // 3}" for i in range(1200)), encoding="utf-8")
    outcome = compare_file(path, Config("word", budget=0, curve=False))
    said = " ".join(comparison_part(outcome).remarks)
    assert "too large to be made: " in said and "the sparse one" in said
    assert "two words are left out: pairs of 1,0" in said
    assert "selective skips 2" not in {r.model for r in outcome.results}


def test_stories_with_little_of_everything():
    outcome = compare_stories(Config(chars=9000, budget=1.0, seed=3))
    assert {r.unit for r in outcome.results} == {"word", "character"}
    assert outcome.results[-1].model == "GPT 2x96"
    assert all(r.bits_per_char > outcome.floor for r in outcome.results)
    sheet = comparison_part(outcome).exhibits[0]
    assert sheet.rows[-1][0] == "the floor" and "beyond 5" in sheet.headings


@pytest.mark.slow
def test_figures_on_tinyshakespeare(shared_data):
    path = shared_data / "tinyshakespeare.txt"
    outcome = compare_file(path, Config(budget=0, curve=False))
    nats = {r.model: r.nats for r in outcome.results}
    assert nats["Markov 2, add 0.1"] == pytest.approx(2.0458, abs=2e-4)
    for order, wanted in {2: 2.0492, 3: 1.7738, 4: 1.6688, 5: 1.6980}.items():
        assert nats[f"Witten-Bell {order}"] == pytest.approx(wanted, abs=2e-4)
    assert nats["Kneser-Ney 5"] == pytest.approx(1.558, abs=5e-4) == min(nats.values())
    assert outcome.split.targets == 111_540
