"""`tt tune-prompt`, `tt generate --soft-prompt`, `tt train-instructions` and `tt ask`."""

import json
import signal
from pathlib import Path

import pytest

from tests.language_runs import create

TEXT = "the cat sat\non the mat\nand the dog\nran to the cat\n"
TUNE = ("--steps", "4", "--eval-every", "2", "--length", "2", "--threads", "1")
TINY = (
    *("--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--batch-size", "8"),
    *("--steps", "2", "--eval-every", "1", "--threads", "1"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    (folder / "text.txt").write_text(TEXT * 20, encoding="utf-8")
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    options = dict(
        texts=(folder / "text.txt",), out=folder / "run", lines=True, steps=3, threads=1, **shape
    )
    for _ in create(options).run():
        pass
    return folder / "run"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "style.txt"
    path.write_text("the cat\nthe dog\nthe mat\nthe sat\n", encoding="utf-8")
    return path


def test_a_prompt_is_tuned_told_and_used(tt, run, text, tmp_path):
    out = tmp_path / "p.safetensors"
    told = tt("tune-prompt", str(run), str(text), "--out", str(out), *TUNE)
    assert told.code == 0, told.err
    lines = dict(line.split("\t", 1) for line in told.out.splitlines())
    assert set(lines) == {"without the prompt", "with the prompt", "lower by", "learned", "frozen"}
    assert lines["learned"] == "32 numbers" and "unchanged: sha256 " in lines["frozen"]
    assert "nats per token" in lines["with the prompt"] and "bits" in lines["with the prompt"]
    assert "next: tt generate" in told.err and "saved" not in told.err
    command = ("generate", str(run), "--seed", "1", "-n", "30", "--json")
    plain, prompted = (
        json.loads(tt(*command, *more).out) for more in ((), ("--soft-prompt", str(out)))
    )
    assert "soft_prompt" not in plain and prompted["soft_prompt"] == str(out)


def test_events_are_json_lines_and_quiet_is_the_result_alone(tt, run, text, tmp_path):
    command = ("tune-prompt", str(run), str(text), "--out", str(tmp_path / "p"), *TUNE)
    events = [json.loads(line) for line in tt(*command, "--json").out.splitlines()]
    assert [e["event"] for e in events if e["event"] != "step"] == [
        *("plan", "eval", "eval", "eval", "done", "prompt-tuned")
    ]
    assert events[-1]["frozen_unchanged"] is True
    quiet = tt(*command, "--force", "--quiet")
    assert quiet.code == 0 and quiet.err.count("\n") == 1 and "lower by" in quiet.out
    dry = tt(*command, "--force", "--dry-run")
    assert dry.code == 0 and "32 are learned: 2 vectors of 16" in dry.out


def test_the_same_seed_makes_the_same_file(tt, run, text, tmp_path):
    for name in ("a", "b"):
        tt("tune-prompt", str(run), str(text), "--out", str(tmp_path / name), "--seed", "4", *TUNE)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_ctrl_c_writes_the_best_prompt_so_far(tt, run, text, tmp_path, monkeypatch):
    from tinygrad_tf.train.trainer import Trainer

    step = Trainer._step

    def interrupted(self):
        if self.progress.step == 2:
            signal.raise_signal(signal.SIGINT)
        return step(self)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    out = tmp_path / "p"
    told = tt("tune-prompt", str(run), str(text), "--out", str(out), *TUNE)
    assert told.code == 130 and out.exists()
    assert "interrupted at step 3; the best prompt so far is in" in told.err


@pytest.fixture
def fault(tt):
    def call(*arguments: object) -> str:
        outcome = tt(*map(str, arguments))
        assert outcome.code == 2 and outcome.err.startswith("tt: error: ")
        assert outcome.err.count("\n") == 1 and outcome.out == ""
        return outcome.err

    return call


def test_faults_of_prompts_are_one_line(fault, tt, run, text, tmp_path):
    out = tmp_path / "p"
    tt("tune-prompt", str(run), str(text), "--out", str(out), *TUNE)
    assert "exists already" in fault("tune-prompt", run, text, "--out", out, *TUNE)
    assert "does not exist" in fault("tune-prompt", tmp_path / "no", text)
    assert "no file" in fault("tune-prompt", run, tmp_path / "no.txt")
    assert "cannot go together" in fault("tune-prompt", run, text, "--json", "--quiet")
    assert "not a whole safetensors" in fault("generate", run, "--soft-prompt", text)
    model = run / "model.safetensors"
    assert "no soft_prompt in its metadata" in fault("generate", run, "--soft-prompt", model)
    other = tmp_path / "other"
    options = {
        "texts": (text,),
        "out": other,
        "lines": True,
        "steps": 1,
        "threads": 1,
        "n_layer": 1,
        "n_head": 2,
        "n_embd": 16,
    }
    for _ in create(options).run():
        pass
    assert "tuned for another model" in fault("generate", other, "--soft-prompt", out)
    assert "does not exist" in fault("generate", run, "--soft-prompt", tmp_path / "gone")


@pytest.fixture(scope="module")
def instructed(tmp_path_factory) -> Path:
    from cli.main import run as tt_run

    out = tmp_path_factory.mktemp("instructed") / "run"
    assert tt_run(["train-instructions", "--out", str(out), "--quiet", *TINY]) == 0
    return out


@pytest.mark.slow
def test_instructions_are_trained_and_asked(tt, instructed, tmp_path):
    out = tmp_path / "tuned"
    told = tt("train-instructions", "--init-from", str(instructed), "--out", str(out), *TINY[6:])
    assert told.code == 0, told.err
    head, *rows = (line.split("\t") for line in told.out.splitlines())
    ways = ("zero-shot", "few-shot", "few-shot, unnamed")
    assert head[1:] == [f"{way}, {moment}" for way in ways for moment in ("before", "after")]
    assert rows[0][0] == "trained on, other content" and len(rows) == 3
    assert all(cell.endswith(" %") for row in rows for cell in row[1:])
    assert "next: tt ask" in told.err
    asked = tt("ask", str(out), "reverse then upper: tone", "copy: ab", "--json", "--shots", "1")
    first, second = (json.loads(line) for line in asked.out.splitlines())
    assert (first["wanted"], second["wanted"]) == ("ENOT", "ab")
    assert (first["trained_on"], second["trained_on"]) == (False, True)
    plain = tt("ask", str(out), "copy: ab", "--quiet")
    assert (plain.code, plain.err, plain.out.count("\n")) == (0, "", 1)


@pytest.mark.slow
def test_faults_of_instructions_are_one_line(fault, run, instructed):
    assert "no instruction 'sort'" in fault("ask", instructed, "sort: abc")
    assert "not of tt train-instructions" in fault("ask", run, "copy: abc")
    assert "exists already" in fault("train-instructions", "--out", instructed, *TINY)
    assert "cannot go together" in fault("train-instructions", "--json", "--quiet")
    assert "cannot be changed by --resume" in fault(
        "train-instructions", "--resume", instructed, "--unnamed"
    )
    assert "trained for all of its 2 steps" in fault("train-instructions", "--resume", instructed)
    assert "not of tt train-instructions" in fault("train-instructions", "--init-from", run)
    assert "shape of its own" in fault(
        "train-instructions", "--init-from", instructed, "--n-layer", "2"
    )
