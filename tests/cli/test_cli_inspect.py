"""`tt inspect` and `tt corpus`, on a real run directory and the real corpus."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.huggingface import config_json
from tinygrad_tf.storage.run_directory import RunDirectory

CONFIG = GPTConfig(vocab_size=65, block_size=4, n_layer=1, n_head=2, n_embd=8, bias=False)


@pytest.fixture
def run(tmp_path: Path, events) -> Path:
    directory = RunDirectory.create(tmp_path / "run")
    experiment = {"texts": ["a.txt"], "model": {"n_layer": 1}, "training": {"steps": 4}}
    directory.write_config(config_json(CONFIG, version="0.1.0", experiment=experiment))
    for event in (events.plan(), events.step(1, 4.0), events.step(2, 3.0), events.eval(2, 3.1)):
        directory.append_metrics(event)
    directory.save_checkpoint(2, GPT(CONFIG).file_tensors(), {}, {"step": 2}, best=True)
    return tmp_path / "run"


def test_piped_it_is_tab_separated_and_never_cut(tt, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    outcome = tt("inspect", str(run))
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert "n_embd\t8" in lines and "steps\t4" in lines and "n_layer\t1" in lines
    assert f"parameters\t{CONFIG.parameter_count()}" in lines and "tokens seen\t1536" in lines
    assert "validation loss\t3.1" in lines
    assert "h.0\tattn.c_attn.weight\t8 x 24\t192" in lines
    assert "wte\tweight\t65 x 8\t520" in lines
    assert outcome.err == f'next: tt generate {run.as_posix()} --prompt "..."\n'


def test_json_is_one_object(tt, run):
    outcome = tt("inspect", str(run), "--json")
    told = json.loads(outcome.out)
    assert (
        told["parameters"]
        == sum(layer["count"] for layer in told["layers"])
        == CONFIG.parameter_count()
    )
    assert told["train"] == [[1, 4.0], [2, 3.0]] and told["validation"] == [[2, 3.1]]
    assert (
        told["config"]["n_embd"] == 8 == told["model"]["n_embd"]
        and told["references"]["bigram"] == 2.482
    )
    assert outcome.err == ""


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("setting", "value", "coloured"),
    [("TERM", "xterm", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)],
)
def test_on_a_terminal_it_draws_the_curve(tt, run, monkeypatch, setting, value, coloured):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(setting, value)
    monkeypatch.setenv("COLUMNS", "100")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert tt("inspect", str(run)).code == 0
    shown = screen.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "c_attn.weight" in plain and "bigram 2.48" in plain and "● training loss 3.000" in plain
    assert ("\x1b[36m" in shown) is coloured, "cyan is the training curve"


def test_a_terminal_without_the_glyphs_gets_ascii(tt, run, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(Terminal, "encoding", "cp1252")
    monkeypatch.setattr(sys, "stdout", screen)
    assert tt("inspect", str(run)).code == 0
    assert screen.getvalue().isascii() and "o validation loss" in screen.getvalue()


def test_it_can_be_saved(tt, run, tmp_path):
    picture = tmp_path / "run.svg"
    assert tt("inspect", str(run), "--save", str(picture)).code == 0
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    again = tt("inspect", str(run), "--save", str(picture))
    assert again.code == 2 and "exists already" in again.err and again.out == ""
    assert tt("inspect", str(run), "--save", str(picture), "--force").code == 0


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_what_is_no_run_is_refused_in_one_line(tt, tmp_path, make):
    make(tmp_path / "x")
    outcome = tt("inspect", str(tmp_path / "x"))
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and "x" in outcome.err


def test_a_damaged_checkpoint_is_named(tt, run):
    for path in run.rglob("model.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    outcome = tt("inspect", str(run))
    assert outcome.code == 2 and outcome.err.count("\n") == 1
    assert "model.safetensors" in outcome.err and outcome.out == ""


def test_the_corpus_prints_raw_and_its_floor_as_json(tt):
    text = tt("corpus", "--chars", "2000", "--seed", "3").out
    assert 1000 < len(text) < 4000 and text.isascii() and "\x1b" not in text
    assert tt("corpus", "--chars", "2000", "--seed", "3").out == text
    assert tt("corpus", "--chars", "2000", "--seed", "4").out != text
    told = json.loads(tt("corpus", "--chars", "2000", "--seed", "3", "--json").out)
    assert 0.05 < told["floor_bits_per_char"] < 2 and told["chars"] == len(text)


def test_the_curve_is_drawn_into_a_pipe_as_plain_text(tt, run):
    outcome = tt("inspect", str(run), "--curve")
    lines = outcome.out.splitlines()
    assert outcome.code == 0 and "● training loss 3.000" in lines[0] and "\x1b" not in outcome.out
    assert re.search("[⠀-⣿]", outcome.out) and "c_attn" not in outcome.out
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_curve_fits_the_terminal(tt, run, monkeypatch, columns):
    screen = Terminal()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", screen)
    assert tt("inspect", str(run), "--curve").code == 0
    lines = screen.getvalue().splitlines()
    assert columns - 10 < max(map(len, lines)) <= columns
    assert "validation loss 3.100" in screen.getvalue()
