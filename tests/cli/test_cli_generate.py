"""`tt generate` and what may and may not reach a terminal."""

import io
import json
import sys
from pathlib import Path

import pytest

from cli.console import printable, write_text


def test_text_streams_after_the_prompt(tt, library):
    outcome = tt("generate", "runs/x", "--prompt", "It was ", "--seed", "5")
    assert (outcome.code, outcome.out, outcome.err) == (0, "It was once upon\na time\n", "")
    prompt, options = library.prompts[0]
    assert prompt == "It was " and library.loaded == ["best"]
    assert options == {
        "max_new_tokens": 500,
        "temperature": 1.0,
        "top_k": None,
        "top_p": None,
        "stop": (),
        "seed": 5,
        "unknown": "error",
    }


def test_options_reach_the_library(tt, library):
    arguments = "generate r -n 3 -t 0 --top-k 5 --top-p 0.5 --unknown skip --weights last"
    tt(*arguments.split(), "--stop", "\\n", "--stop", "END")
    _, options = library.prompts[0]
    assert (options["max_new_tokens"], options["temperature"]) == (3, 0.0)
    assert (options["top_k"], options["top_p"], options["unknown"]) == (5, 0.5, "skip")
    assert options["stop"] == ("\n", "END")
    assert library.loaded == ["last"]


def test_samples_have_seeds_of_their_own_and_json_tells_them(tt, library):
    outcome = tt("generate", "r", "--samples", "3", "--seed", "7", "--json", "-p", "x")
    told = json.loads(outcome.out)
    assert outcome.out.count("\n") == 1
    assert [sample["seed"] for sample in told["samples"]] == [7, 8, 9]
    assert [options["seed"] for _, options in library.prompts] == [7, 8, 9]
    assert {sample["text"] for sample in told["samples"]} == {"once upon\na time"}
    assert told["prompt"] == "x" and told["run"] == str(Path("r"))


@pytest.mark.parametrize(("stop", "gap"), [((), "\n\n"), (("--stop", "\\n"), "\n")])
def test_samples_of_one_line_stand_close_together(tt, library, stop, gap):
    library.pieces = ("ann",)
    assert tt("generate", "r", "--samples", "3", *stop).out == gap.join(["ann"] * 3) + "\n"


def test_without_a_seed_runs_differ(tt, library):
    tt("generate", "r")
    tt("generate", "r")
    assert library.prompts[0][1]["seed"] != library.prompts[1][1]["seed"]


@pytest.mark.parametrize(
    ("data", "prompt"), [(b"\xef\xbb\xbfcaf\xc3\xa9\r\nx", "café\nx"), (b"", "")]
)
def test_a_prompt_from_stdin(tt, library, monkeypatch, data, prompt):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert tt("generate", "r", "--prompt", "-").code == 0
    assert library.prompts[0][0] == prompt


def test_a_bad_byte_on_stdin_is_named(tt, library, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9 x")))
    outcome = tt("generate", "r", "--prompt", "-")
    assert outcome.code == 2 and "byte 0xe9 at offset 3" in outcome.err


def test_text_goes_raw_to_a_pipe_and_safely_to_a_terminal(tt, library, monkeypatch):
    library.pieces = ("a\x1b[31m\tb\x9b\r\n[bold]no markup[/]" + "w" * 500,)
    assert library.pieces[0] in tt("generate", "r").out

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    write_text(library.pieces[0])
    assert screen.getvalue() == "a\\x1b[31m\tb\\x9b\\r\n[bold]no markup[/]" + "w" * 500


def test_printable_escapes_what_steers_a_terminal():
    assert printable("a\nb\x1b\x7f\x85") == "a\\nb\\x1b\\x7f\\x85"
    assert printable("\u202eabc\udcff\u2028") == "\\u202eabc\\udcff\\u2028"
    fine = "naïve 漢字 🙂\N{NO-BREAK SPACE}[red]"
    assert printable(fine) == fine
