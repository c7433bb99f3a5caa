"""A run that was stopped, killed or damaged: it goes on byte for byte, or says why it cannot."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.language_runs import create, resume
from tinygrad_tf.errors import FailedError, InputError, TinygradError
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train.run import Run

ROOT = Path(__file__).resolve().parents[2]
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL and no SIGINT to send")


def train(experiment: Run, stop_at: int | None = None) -> list:
    events = []
    for event in experiment.run():
        events.append(event)
        if event.event == "step" and event.step == stop_at:
            experiment.stop()
    return events


# --- stopped in order ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lines": True},
        {"dropout": 0.2},
        {"grad_accum": 3, "dropout": 0.1},
        {"lines": True, "grad_accum": 2, "dropout": 0.1, "tokenizer": "byte"},
        {"norm": "post", "tie_weights": False, "head_bias": True, "positions": "sinusoidal"},
    ],
    ids=lambda changes: "-".join(changes) or "plain",
)
def test_n_and_n_more_are_2n(tiny_options, tmp_path, outcome, changes):
    train(create(tiny_options(**changes, out=tmp_path / "whole")))
    done = train(create(tiny_options(**changes)), stop_at=10)[-1]
    assert (done.reason, done.steps) == ("interrupted", 10)
    train(resume(tmp_path / "run"))
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("stops", [(1,), (6, 12), (3, 4, 19)])
def test_wherever_it_is_stopped(tiny_options, tmp_path, outcome, stops):
    """Also at an evaluation (6, 12), at a checkpoint (4) and just before the end (19)."""
    train(create(tiny_options(out=tmp_path / "whole", dropout=0.1)))
    train(create(tiny_options(dropout=0.1)), stop_at=stops[0])
    for stop in (*stops[1:], None):
        train(resume(tmp_path / "run"), stop_at=stop)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10, 11, 12])
def test_wherever_it_is_dropped(tiny_options, tmp_path, outcome, count):
    """After its first event (an evaluation, nothing saved yet) or later ones, without a word."""
    train(create(tiny_options(out=tmp_path / "whole", dropout=0.1)))
    events = create(tiny_options(dropout=0.1)).run()
    for _ in range(count):
        next(events)
    events.close()
    train(resume(tmp_path / "run"))
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_time_limit_ends_one_sitting_not_the_run(tiny_options, tmp_path, outcome):
    changes = {"steps": 150, "eval_every": 1000, "checkpoint_every": 1000}
    train(create(tiny_options(out=tmp_path / "whole", **changes)))
    done = train(create(tiny_options(**changes, time_limit=0.01)))[-1]
    assert done.reason == "time-limit" and done.steps < 150
    done = train(resume(tmp_path / "run"))[-1]
    assert (done.reason, done.steps) == ("steps", 150)
    assert outcome(tmp_path / "run")[:2] == outcome(tmp_path / "whole")[:2]


def test_a_finished_run_says_so_and_takes_more_steps(tiny_options, tmp_path):
    train(create(tiny_options()))
    with pytest.raises(InputError, match=r"all of its 20 steps; .*`steps=40`"):
        resume(tmp_path / "run")
    with pytest.raises(InputError, match=r"all of its 20 steps; .*`steps=40`"):
        resume(tmp_path / "run", steps=5)
    done = train(resume(tmp_path / "run", steps=25))[-1]
    assert done.steps == 25


def test_one_writer_at_a_time(tiny_options, tmp_path, outcome):
    events = create(tiny_options()).run()
    next(e for e in events if e.event == "step" and e.step == 5)
    with pytest.raises(FailedError, match=rf"being written by process {os.getpid()}"):
        train(resume(tmp_path / "run"))
    with pytest.raises(FailedError, match="being written"):
        train(create(tiny_options(force=True)))
    for _ in events:
        pass
    train(create(tiny_options(out=tmp_path / "whole")))
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


# --- damaged or changed ---


@pytest.fixture
def half(tiny_options, tmp_path) -> Path:
    """A run stopped at step 10 of 20, with checkpoints of 8 and 10; "whole" beside it did all."""
    train(create(tiny_options(dropout=0.1, eval_every=100)), stop_at=10)
    assert RunDirectory.open(tmp_path / "run").checkpoint_steps()["previous"] == 8
    train(create(tiny_options(dropout=0.1, eval_every=100, out=tmp_path / "whole")))
    return tmp_path / "run"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path, bit: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    bit = 4 * len(data) if bit is None else bit
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def finish(run: Path) -> list:
    experiment = resume(run)
    experiment.plan()
    return train(experiment)


CHECKPOINT = ["model.safetensors", "optimizer.safetensors", "trainer_state.json"]
FURNITURE = ["config.json", "latest.json", "tokenizer.json", "data/train.bin", "data/tokens.json"]


@pytest.mark.parametrize("damage", [truncate, flip, Path.unlink])
@pytest.mark.parametrize("name", CHECKPOINT)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(half, tmp_path, outcome, name, damage):
    damage(half / "checkpoints/000010" / name)
    if damage is Path.unlink:
        damage(half / name)
    events = finish(half)
    (warning,) = (event for event in events if event.event == "warning")
    assert name in warning.message and "checkpoint of step 8 is used" in warning.message
    assert outcome(half) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("name", CHECKPOINT)
def test_two_damaged_checkpoints_are_the_end(half, name):
    before = (half / "metrics.jsonl").read_bytes()
    for step in ("000008", "000010"):
        flip(half / "checkpoints" / step / name)
    with pytest.raises(InputError, match=rf"000010/{name} "):
        finish(half)
    assert (half / "metrics.jsonl").read_bytes() == before, "nothing is lost by trying"


@pytest.mark.parametrize("damage", [truncate, flip, Path.unlink])
def test_a_lost_or_damaged_pointer_is_made_again(half, tmp_path, outcome, damage):
    """The checkpoints are whole: they must be neither passed over nor overwritten."""
    damage(half / "latest.json")
    events = finish(half)
    (warning,) = (event for event in events if event.event == "warning")
    assert "rebuilt" in warning.message and "step 10 is the latest" in warning.message
    assert outcome(half) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("damage", [truncate, flip])
@pytest.mark.parametrize("name", [name for name in FURNITURE if name != "latest.json"])
def test_damaged_furniture_is_named(half, name, damage):
    damage(half / name)
    with pytest.raises(InputError) as fault:
        finish(half)
    assert Path(name).name in str(fault.value) and "\n" not in str(fault.value)


def test_lost_or_damaged_tokens_are_made_again_from_the_text(half, tmp_path, outcome):
    flip(half / "data" / "train.bin")
    with pytest.raises(InputError, match=r"remove .*data"):
        finish(half)
    shutil.rmtree(half / "data")
    finish(half)
    assert outcome(half) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("name", CHECKPOINT + FURNITURE)
def test_no_flipped_bit_goes_unseen(half, tmp_path, outcome, name):
    """Any bit: a clear refusal, or the same weights in the end; never a crash or another model."""
    copy = tmp_path / "copy"
    path = copy / "checkpoints/000010" / name if name in CHECKPOINT else copy / name
    expected = outcome(tmp_path / "whole")
    rng = random.Random(name)
    for _ in range(3):
        shutil.copytree(half, copy)
        flip(path, rng.randrange(8 * path.stat().st_size))
        try:
            finish(copy)
        except TinygradError as fault:
            assert "\n" not in str(fault)
        else:
            assert outcome(copy) == expected
        shutil.rmtree(copy)


def test_a_setting_that_was_edited_is_not_trained_with(half):
    config = json.loads((half / "config.json").read_text(encoding="utf-8"))
    config["tt"]["experiment"]["training"]["learning_rate"] = 0.5
    (half / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json has been altered"):
        finish(half)


def test_another_text_is_refused(half, tmp_path):
    text = tmp_path / "text.txt"
    content = text.read_text(encoding="utf-8")
    text.write_text(content.replace("cat", "act", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"text of .* has changed"):
        finish(half)
    text.unlink()
    with pytest.raises(InputError, match="no file"):
        finish(half)
    text.write_text(content, encoding="utf-8")
    assert finish(half)[-1].steps == 20


def test_another_text_is_refused_even_without_its_tokens(half, tmp_path, outcome):
    text = tmp_path / "text.txt"
    content = text.read_text(encoding="utf-8")
    text.write_text(content.replace("cat", "act", 1), encoding="utf-8")
    shutil.rmtree(half / "data")
    with pytest.raises(InputError, match="text"):
        finish(half)
    text.write_text(content, encoding="utf-8")
    shutil.rmtree(half / "data", ignore_errors=True)
    finish(half)
    assert outcome(half) == outcome(tmp_path / "whole")


def test_another_tokenizer_is_refused(half):
    path = half / "tokenizer.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["vocab"] = fields["vocab"].replace("t", "z")  # as many characters as before
    fields["vocab"] = "".join(sorted(fields["vocab"]))
    path.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(InputError, match="tokenizer"):
        finish(half)


def test_what_is_no_run_is_not_resumed(tmp_path):
    (tmp_path / "file").write_text("text", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "config.json").write_text('{"tt": "no"}', encoding="utf-8")
    for name, fault in (
        ("nothing", "does not exist"),
        ("file", "is not a directory"),
        ("empty", "neither"),
        ("other", "is not a run of this program"),
        ("strange", "is not a run of this program"),
    ):
        with pytest.raises(InputError, match=fault):
            finish(tmp_path / name)


# --- killed, by the real command ---


class Command:
    """`tt train-gpt --json` in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        program = "from cli.main import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "train-gpt", *map(str, arguments), "--json"],
            env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def read(self, lines: int) -> str:
        """The last of the next lines that it prints; nothing where it ends before."""
        assert self.process.stdout is not None
        line = ""
        for _ in range(lines):
            line = self.process.stdout.readline()
        return line

    def send(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Exit code and stderr."""
        _, messages = self.process.communicate(timeout=100)
        return self.process.returncode, messages


@pytest.fixture
def arguments(tiny_options, tmp_path, monkeypatch) -> Callable[..., list[object]]:
    """Arguments of the real command for a tiny run of that name."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a killed process leaves its tokens there

    def make(name: str, **changes: object) -> list[object]:
        options = tiny_options()
        given = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 8, "batch_size": 4}
        given |= {"steps": 40, "eval_every": 6, "checkpoint_every": 4, "dropout": 0.1} | changes
        pairs = [(f"--{k.replace('_', '-')}", v) for k, v in given.items()]
        return [options["texts"][0], "--out", tmp_path / name, *(x for pair in pairs for x in pair)]

    return make


def kill_and_go_on(arguments: list[object], run: Path, lines: int, delay: float) -> None:
    """Kill a run when it has printed so many lines and a moment has passed; then finish it."""
    killed = Command(*arguments)
    killed.read(lines)
    time.sleep(delay)
    killed.send(signal.SIGKILL)
    killed.end()
    code, messages = Command("--resume", run).end()
    if code == 2 and not (run / "config.json").exists():  # killed before anything was begun
        assert messages.startswith("tt: error: ") and messages.count("\n") == 1
        code, messages = Command(*arguments, "--force").end()
    if code == 2:
        assert "all of its 40 steps" in messages, "killed after its last word"
        return
    assert (code, messages) == (0, "")


def whole(arguments: list[object]) -> None:
    assert Command(*arguments).end() == (0, "")


@POSIX
def test_killed_and_resumed_is_the_same(arguments, tmp_path, outcome):
    """Just after the plan, before any checkpoint; at an evaluation; in the middle of saving."""
    whole(arguments("whole"))
    for number, (lines, delay) in enumerate([(1, 0.001), (10, 0.0), (30, 0.004)]):
        run = tmp_path / f"run{number}"
        kill_and_go_on(arguments(run.name), run, lines, delay)
        assert outcome(run) == outcome(tmp_path / "whole")


@POSIX
@pytest.mark.slow
def test_killed_at_twenty_moments_and_resumed_is_the_same(arguments, tmp_path, outcome):
    whole(arguments("whole"))
    rng = random.Random(20)
    total = 1 + len(RunDirectory(tmp_path / "whole").read_metrics())
    moments = [(0, 0.2), (0, 0.5), (1, 0.0), (1, 0.003), (2, 0.0)]
    moments += [(rng.randrange(3, total), rng.random() * 0.01) for _ in range(15)]
    for number, (lines, delay) in enumerate(moments):
        run = tmp_path / f"run{number}"
        kill_and_go_on(arguments(run.name), run, lines, delay)
        assert outcome(run) == outcome(tmp_path / "whole"), (lines, delay)


@POSIX
@pytest.mark.parametrize("times", [1, 2])
def test_interrupted_and_resumed_is_the_same(arguments, tmp_path, outcome, times):
    changes = {"steps": 150, "eval_every": 40, "checkpoint_every": 1000}
    whole(arguments("whole", **changes))
    command = Command(*arguments("run", **changes))
    while json.loads(command.read(1))["event"] != "step":
        pass
    for _ in range(times):
        command.send(signal.SIGINT)
        time.sleep(0.001)  # or the system makes one signal of two
    code, messages = command.end()
    # A second signal may come when Python is already leaving: the shell makes 130 of that too.
    assert code in (130, -signal.SIGINT) and "Traceback" not in messages
    if times == 1:
        assert "saved at step" in messages.splitlines()[-1]
    assert Command("--resume", tmp_path / "run").end() == (0, "")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@POSIX
def test_a_second_process_is_refused_in_one_line(arguments, tmp_path):
    first = Command(*arguments("run", steps=10**6, checkpoint_every=10**6))
    first.read(5)
    code, messages = Command("--resume", tmp_path / "run").end()
    first.send(signal.SIGINT)
    assert first.end()[0] == 130
    assert code == 1 and messages.count("\n") == 1
    assert f"is being written by process {first.process.pid}" in messages
