"""`tt compare-markov`: what it prints, saves and refuses."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.comparison.report import Bars, Curves, Matrix, Part, Quotes, ReportTable
from cli.pictures.bars import bars
from cli.pictures.report import picture, plain
from tests.language_runs import create
from tinygrad_tf.models import GPTConfig

TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 60
FAST = ("--budget", "0", "--no-curve")


@pytest.fixture(autouse=True)
def _short_examples(monkeypatch):
    monkeypatch.setattr("toymodels.comparison.EXAMPLE", 4)  # most of the time goes there


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_piped_it_is_tables_and_sentences(tt, book):
    outcome = tt("compare-markov", str(book), *FAST)
    assert outcome.code == 0
    assert outcome.out.startswith("# Every model on the held-out part of book.txt: 300 characters")
    rows = {row[0]: row for row in reversed(lines(outcome.out)) if len(row) == 6}
    assert "\nmodel\tby\tnats\tbits\tbits/char\ttop-1\n" in outcome.out
    for name in ("Markov 1, add 0.1", "Witten-Bell 5", "Kneser-Ney 5", "selective skips 2"):
        assert float(rows[name][2]) > 0 and rows[name][1] == "character"
    assert " wins with " in outcome.out and "Votes are no probabilities" in outcome.out
    assert "Witten-Bell 5 by characters" in outcome.err and "\x1b" not in outcome.out


def test_json_holds_every_figure(tt, book):
    outcome = tt("compare-markov", str(book), "--budget", "0", "--json", "--val-fraction", "0.2")
    figures = json.loads(outcome.out)
    assert outcome.err == "" and figures["tokens_held_out"] == 600 and figures["text"] == "book.txt"
    assert figures["results"][0]["model"] == "Markov 1, add 0.1"
    assert all(row["nats"] > 0 for row in figures["results"])
    assert figures["curve"][-1]["tokens"] == figures["tokens_train"] == 2400
    assert (
        figures["verdict"] in figures["parts"][0]["remarks"]
        and figures["floor_bits_per_char"] is None
    )


@pytest.mark.parametrize("tokenizer", ["word", "bpe"])
def test_other_tokenizers(tt, book, tokenizer):
    outcome = tt("compare-markov", str(book), *FAST, "--tokenizer", tokenizer, "--json")
    figures = json.loads(outcome.out)
    unit = {"bpe": "token"}.get(tokenizer, tokenizer)
    assert {row["unit"] for row in figures["results"]} == {unit}
    if tokenizer == "word":
        assert "one unknown token" in " ".join(figures["notes"])


def test_it_can_be_saved_and_quiet_prints_no_progress(tt, book, tmp_path):
    target = tmp_path / "picture.svg"
    arguments = ("compare-markov", str(book), "--budget", "0", "--save", str(target))
    outcome = tt(*arguments, "--quiet")
    assert outcome.code == 0 and outcome.err == ""
    saved = target.read_text(encoding="utf-8")
    assert "Kneser-Ney" in saved.replace("&#160;", " ")
    again = tt(*arguments)
    assert again.code == 2 and "exists already" in again.err and again.out == ""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "book.txt").write_text(TEXT, encoding="utf-8")
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 16, "block_size": 16, "batch_size": 4}
    place = {"texts": (folder / "book.txt",), "out": folder / "run"}
    options = {"steps": 40, "eval_every": 20, "val_fraction": 0.2, **sizes, **place}
    for _ in create(options).run():
        pass
    return folder / "run"


def test_the_gpt_of_a_run_is_compared_on_what_the_run_held_out(tt, run):
    figures = json.loads(
        tt("compare-markov", str(run.parent / "book.txt"), "--gpt", str(run), "--json",
           "--no-curve").out
    )  # fmt: skip
    assert figures["tokens_held_out"] == 600 and f"that of {run}" in " ".join(figures["notes"])
    gpt = figures["results"][-1]
    assert (
        gpt["model"] == "GPT of run"
        and gpt["parameters"] == GPTConfig(14, 16, 1, 1, 16, bias=False).parameter_count()
    )
    assert gpt["seconds"] > 0 and 0 < gpt["nats"] < 3


def test_a_run_of_another_text_may_take_part_and_it_is_said(tt, run, tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("the mat sat on the cat? " * 80, encoding="utf-8")
    figures = json.loads(
        tt("compare-markov", str(path), "--gpt", str(run), "--json", "--no-curve").out
    )
    notes = " ".join(figures["notes"])
    assert "had another text" in notes and "80 characters" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.txt",), "there is no file nothing.txt"),
        (("{book}", "--gpt", "{folder}"), "{folder}"),
        (("{book}", "--gpt", "{folder}/none"), "none"),
        (("{book}", "--tokenizer", "nothing.json"), "there is no tokenizer 'nothing.json'"),
        (("{book}", "--val-fraction", "1e-12", "--budget", "0"), "held-out part of book.txt is"),
        (("{book}", "--val-fraction", "1"), "--val-fraction"),
        (("{book}", "--val-fraction", "0.9999", "--budget", "0"), "0.9999 held out; use a smaller"),
        (("--chars", "10", "--budget", "0"), "too few stories"),
        (("{book}", "--budget", "soon"), "is not a time"),
        (("{book}", "--tokenizer", "word", "--prompt", "the bird"), "'bird' is not among the"),
        (("{book}", "--prompt", "the Bird"), "'B'"),
        (("{one}",), "holds 1 word, and what follows what takes at least 2"),
        (("{book}", "--quiet", "--json"), "cannot go together"),
        (("--tokenizer", "word"), "name a file"),
        (("{book}", "--chars", "10"), "built-in corpus"),
        (("{book}", "--gpt", "{folder}", "--budget", "1"), "leave them out"),
        (("{book}", "--save", "x.png"), "saved as .svg"),
        (("--chars", "3000", "--budget", "0", "--prompt", "Zebra"), "'Zebra' is not among"),
    ],
)
def test_faults_are_one_line(tt, book, tmp_path, arguments, message):
    one = tmp_path / "one.txt"
    one.write_text("hello\n", encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {"book": book, "one": one, "folder": folder}
    outcome = tt("compare-markov", *(a.format(**names) for a in arguments))
    assert outcome.code == 2 and outcome.out == ""
    assert outcome.err.count("\n") == 1 and message.format(**names) in outcome.err


def test_without_arguments_the_story_comes_first(tt, monkeypatch):
    import cli.comparison.walkthrough

    monkeypatch.setattr(cli.comparison.walkthrough, "learn", lambda language, seeds: few(language))
    outcome = tt("compare-markov", "--chars", "3000", *FAST, "--prompt", "On", "--quiet")
    assert outcome.code == 0
    heads = [line for line in outcome.out.splitlines() if line.startswith("# ")]
    assert len(heads) == 7 and "the embedded corpus" in heads[-1]
    rows = lines(outcome.out)
    assert ["ran", "0.0", "0.0", "0.4", "0.6", "0.0", "0.0", "0.0", "0.0"] in rows
    assert ["down", "5.0"] in rows and ["please", "4.0"] in rows
    likely = {row[0]: row[1:] for row in rows if len(row) == 4}
    assert float(likely["check whether the battery ran please"][1]) == pytest.approx(0.24)
    assert any(row[0] == "the floor" for row in rows)


def few(language):
    from toymodels.learned import Settings, learn

    return learn(language, (0,), Settings(steps=2))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("encoding", "ascii"), [("utf-8", False), ("cp1252", True)])
def test_on_a_terminal_it_draws(tt, book, monkeypatch, encoding, ascii):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    screen = Terminal()
    monkeypatch.setattr(Terminal, "encoding", encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    assert tt("compare-markov", str(book), "--budget", "0").code == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", screen.getvalue())
    assert "Kneser-Ney 5" in shown and "bits/char" in shown
    assert not ascii or shown.isascii(), set(filter(lambda c: ord(c) > 127, shown))


PARTS = [
    Part(
        "a", "A part", ("It is seen.",),
        (
            Matrix("a matrix", ("battery, ran", "x"), ("directories", "b"), np.eye(2)),
            Bars("votes", ("down", "please"), (4.0, 5.0)),
            ReportTable("a table", ("word", "n"), (("a", 1), ("b", None))),
            Quotes("texts", (("Markov 1", "long " * 30),)),
            Curves("curves", "words", {"one": [(1, 2.0), (10, 1.0)]}, {"GPT": 0.5}),
        ),
    )
]  # fmt: skip


def drawn(**options) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(picture(PARTS, **options))
    return console.file.getvalue()


def test_labels_are_whole_and_bars_are_shares():
    shown = drawn(colour=False)
    assert "battery, ran" in shown and "directories" in shown and "GPT 0.5" in shown
    assert shown.count("long") == 30
    picture = bars(("down", "please"), (4.0, 5.0), width=10, ascii=True).plain
    assert picture.splitlines() == ["  down ######## 4", "please ########## 5"]
    assert bars(("a",), (0.0,)).plain == "a 0"


def test_labels_that_do_not_fit_are_written_downwards():
    grid = Matrix("m", ("r",), tuple(f"longword{i}" for i in range(10)), np.full((1, 10), 0.5))
    part = Part("a", "A", (), (grid,))
    from rich.console import Console

    console = Console(file=io.StringIO(), width=70, color_system=None)
    console.print(picture([part], width=64, colour=False))
    shown = console.file.getvalue().splitlines()
    assert all(len(line) <= 64 for line in shown)
    assert any(line.split() == [str(i) for i in range(10)] for line in shown)


def test_a_pipe_gets_every_number():
    text = plain(PARTS)
    assert "battery, ran\t1.0\t0.0" in text and "please\t5.0" in text
    assert "one\t10\t1.0" in text and "GPT\tall\t0.5" in text and "b\t\n" in text


@pytest.mark.slow
def test_the_story_of_ten_seeds(tt):
    outcome = tt("compare-markov", "--chars", "9000", "--budget", "0", "--json", "--no-curve")
    figures = json.loads(outcome.out)
    learned = next(part for part in figures["parts"] if part["name"] == "learned")
    table = learned["exhibits"][0]["table"]
    assert len(table) == 10 and all(row["P(right)"] > 0.99 for row in table)
    assert all(row["as the mask"] for row in table)
