"""`tt train-gpt`: options, the four views, Ctrl-C, and what is said at the end."""

import io
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from cli.format import clock
from cli.interrupts import graceful_interrupt
from cli.pictures.training import training
from cli.progress import TrainingProgress, done_line, plan_lines
from cli.train_options import TRAIN_OPTIONS
from cli.views import STOPPING, JsonView, LiveView, PlainView, QuietView, choose_view

SIGINT = pytest.mark.skipif(os.name == "nt", reason="os.kill cannot send SIGINT on Windows")


def test_options_reach_the_library_under_its_names(tt, library):
    arguments = "a.txt b.txt --out r --steps 7 --time-limit 1h30m --lr 3e-4 --no-bias --tie"
    assert tt("train-gpt", *arguments.split(), "--early-stop", "3", "--quiet").code == 0
    options = library.created[0]
    assert options["texts"] == (Path("a.txt"), Path("b.txt"))
    assert options["out"] == Path("r")
    assert (options["steps"], options["time_limit"]) == (7, 5400.0)
    assert (options["learning_rate"], options["bias"], options["tie_weights"]) == (
        3e-4,
        False,
        True,
    )
    assert options["early_stop"] == 3
    untouched = set(options) - {"texts", "out", "steps", "time_limit", "learning_rate", "bias"}
    untouched -= {"tie_weights", "early_stop", "keep_newlines", "force", "dry_run"}
    assert all(options[name] is None for name in untouched), "the preset decides"


def test_every_option_is_explained_under_a_heading(tt):
    text = tt("train-gpt", "--help").out
    headings = ("Examples", "Data", "Model", "Optimisation", "Output", "Advanced")
    places = [text.index(f"\n{heading}:") for heading in headings]
    assert places == sorted(places)
    shown = [option for option in TRAIN_OPTIONS[1:] if not option.hidden]
    assert len(shown) > 30
    for parameter in shown:
        assert parameter.help and parameter.opts[0] in text


def test_plain_lines_when_piped(tt, library):
    outcome = tt("train-gpt")
    assert outcome.code == 0
    assert outcome.out == "once upon\na time\n"
    lines = outcome.err.splitlines()
    assert "804,096 parameters" in lines[0]
    assert any("uniform 4.174, unigram 3.347, bigram 2.482" in line for line in lines)
    assert "note: the file begins with a byte order mark, which is left out" in lines
    assert any(line.startswith("step 1/4  25%  loss 3.500") for line in lines)
    assert "step 4: training 2.000, validation 2.100 (best)" in lines
    assert "warning: the gap is widening" in lines
    assert any("3.0297 bits per character (the floor is 2.9000)" in line for line in lines)
    assert lines[-1] == 'next: tt generate runs/fake --prompt "..."'
    assert "\x1b" not in outcome.err


def test_json_is_one_event_a_line_and_nothing_else(tt, library):
    outcome = tt("train-gpt", "--json")
    events = [json.loads(line) for line in outcome.out.splitlines()]
    names = [event["event"] for event in events]
    assert names == ["plan", *["step"] * 4, "eval", "warning", "checkpoint", "done"]
    assert events[-1]["val_bits_per_char"] == 3.0297
    assert outcome.err == "" and library.prompts == []


def test_json_has_no_nan(capsys, events):
    JsonView().show(events.step(1, float("nan")))
    line = capsys.readouterr().out
    assert json.loads(line, parse_constant=pytest.fail)["loss"] is None


def test_quiet_tells_the_result_only(tt, library):
    outcome = tt("train-gpt", "--quiet")
    assert outcome.out == "once upon\na time\n"
    warning, result = outcome.err.splitlines()
    assert warning.startswith("warning: ") and result.startswith("4 steps in 0:02")


def test_dry_run_trains_nothing(tt, library, monkeypatch):
    monkeypatch.setattr(library, "before_step", lambda step: pytest.fail("it trained"))
    assert "804,096 parameters" in tt("train-gpt", "--dry-run").out
    assert json.loads(tt("train-gpt", "--dry-run", "--json").out)["params"] == 804_096


def test_resume_needs_nothing_else(tt, library):
    assert tt("train-gpt", "--resume", "runs/x", "--time-limit", "2m").code == 0
    assert library.resumed == [(Path("runs/x"), {"steps": None, "time_limit": 120.0})]
    assert library.created == []
    assert tt("train-gpt", "--resume", "runs/x", "--steps", "9", "--json", "--debug").code == 0


@SIGINT
def test_first_interrupt_saves_and_says_how_to_resume(tt, library):
    library.before_step = lambda step: step == 2 and os.kill(os.getpid(), signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    outcome = tt("train-gpt")
    assert outcome.code == 130 and library.stops == 1
    assert STOPPING in outcome.err
    assert outcome.err.splitlines()[-1] == (
        "saved at step 2; resume with: tt train-gpt --resume runs/fake"
    )
    assert outcome.out == "", "an interrupted run writes no sample"
    assert signal.getsignal(signal.SIGINT) is before


@SIGINT
def test_second_interrupt_stops_at_once(tt, library):
    def twice(step: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")

    library.before_step = twice
    outcome = tt("train-gpt")
    assert outcome.code == 130 and library.stops == 1
    assert outcome.err.splitlines()[-1] == "tt: error: interrupted"


@SIGINT
def test_an_ignored_interrupt_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with graceful_interrupt(pytest.fail, pytest.fail):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_views_follow_the_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert type(choose_view(json=True, quiet=False)) is JsonView
    assert type(choose_view(json=False, quiet=True)) is QuietView
    assert type(choose_view(json=False, quiet=False)) is LiveView
    monkeypatch.setenv("TERM", "dumb")
    assert type(choose_view(json=False, quiet=False)) is PlainView
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert type(choose_view(json=False, quiet=False)) is PlainView


def test_live_view_draws_the_curve_and_its_reference_lines(monkeypatch, events):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", screen)
    with LiveView() as view:
        view.show(events.plan())
        view.show(events.step(1, 4.0))
        view.show(events.eval(2, 3.0))
        view.stopping()
        assert STOPPING in screen.getvalue()
        view.show(events.step(3, 2.5))
        view.show(events.done(3))
    shown = re.sub(r"\x1b\[[\d;?]*\w", "", screen.getvalue())
    for piece in ("training loss", "validation loss", "unigram 3.35", "step 3/4  75%", "12.3 k"):
        assert piece in shown
    assert "3 steps in 0:02" in shown


def test_progress_counts_by_steps_or_by_time(events):
    progress = TrainingProgress()
    assert progress.share == 0 and progress.remaining == float("inf")
    progress.absorb(events.plan(config={"steps": 100, "time_limit": 10.0}))
    progress.absorb(events.step(1, 3.0))
    progress.absorb(events.step(10, 3.0))  # after 5 seconds
    assert progress.share == 0.5 and progress.remaining == 5.0
    progress = TrainingProgress()
    progress.absorb(events.plan(config={"steps": 100, "time_limit": None}))
    progress.absorb(events.step(1, 3.0))
    progress.absorb(events.step(10, 3.0))
    assert progress.share == 0.1 and progress.remaining == pytest.approx(45.0)


def test_a_resumed_run_counts_the_time_of_this_sitting(events):
    progress = TrainingProgress()
    progress.absorb(events.plan(config={"steps": 4000, "time_limit": 10.0}))
    progress.absorb(events.eval(400, 3.0))  # after 200 seconds, in earlier sittings
    assert (progress.share, progress.remaining) == (0.1, float("inf"))
    progress.absorb(events.step(408, 3.0))  # 4 seconds later
    assert (progress.share, progress.remaining) == (0.4, 6.0)
    assert "elapsed 3:24  ETA 0:06" in progress.status()
    without_limit = TrainingProgress()
    without_limit.absorb(events.plan(config={"steps": 500, "time_limit": None}))
    without_limit.absorb(events.step(400, 3.0))
    without_limit.absorb(events.step(410, 3.0) | {"elapsed": 201.0})  # now ten steps a second
    assert without_limit.remaining == pytest.approx(9.0)


def test_the_narrow_status_keeps_the_time_to_go(events):
    progress = TrainingProgress()
    progress.absorb(events.plan(config={"steps": 400_000, "time_limit": None}))
    for event in (events.step(1, 4.0), events.step(123_456, 2.5), events.eval(123_456, 2.6)):
        progress.absorb(event)
    full = progress.status()
    assert progress.status(len(full)) == full and "tokens/s" in full and "elapsed" in full
    narrow = progress.status(len(full) - 1)
    assert "tokens/s" not in narrow and "elapsed" in narrow and "ETA" in narrow
    assert "elapsed" not in progress.status(len(narrow) - 1)
    for width in (80, 100):
        line = training(progress, width=width).plain.splitlines()[0]
        assert len(line) <= width and line.endswith(f"ETA {clock(progress.remaining)}")


def test_one_is_singular(events):
    plan = events.plan(params=1, tokens_train=1, tokens_val=2, epochs=1.0, config={"steps": 1})
    lines = "\n".join(plan_lines(plan))
    assert "1 parameter," in lines and "1 token to train on, 2 to validate" in lines
    assert "1 step is 1 epoch\n" in lines
    assert "4 steps are 1.53 epochs" in "\n".join(plan_lines(events.plan()))
    assert done_line(events.done(1)).startswith("1 step in ")


def test_progress_keeps_a_long_run_short(events):
    progress = TrainingProgress()
    for step in range(1, 20_001):
        progress.absorb(events.step(step, 1.0))
    assert len(progress.train) <= 2048 and progress.train[-1][0] == 20_000
    steps = [step for step, _ in progress.train]
    assert steps == sorted(steps)
