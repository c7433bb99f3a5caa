"""The commands for translation, classification and filling in, end to end on tiny files."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tasks.tiny_tasks import labels_file, numbers_file, pairs_file, texts_file

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--d-model", "16", "--n-heads", "2", "--batch-size", "8", "--seed", "1"]
TINY += ["--eval-every", "20", "--threads", "1"]
LONGER = ["--steps", "250", "--batch-size", "16", "--lr", "0.005", "--dropout", "0"]
SHORT = [*TINY, "--steps", "40"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A tiny run of each kind."""
    from cli.main import run

    folder = tmp_path_factory.mktemp("runs")
    files = {
        "translate": [pairs_file(folder / "pairs.tsv", 300), "--d-model", "32", *LONGER],
        "classifier": [labels_file(folder / "labels.tsv", 200)],
        "fill": [texts_file(folder / "texts.txt", 200)],
        "numbers": [numbers_file(folder / "numbers.tsv"), "--regression"],
    }
    for name, arguments in files.items():
        command = "train-classifier" if name == "numbers" else f"train-{name}"
        out = ["--out", str(folder / name), "--quiet", "--steps", "150", "--lr", "0.01"]
        assert run([command, *TINY, *out, *map(str, arguments)]) == 0
    return folder


# --- training ---


@pytest.mark.parametrize(
    ("command", "make", "told"),
    [
        ("train-translate", pairs_file, ("exact match\t", "BLEU\t", "chrF\t")),
        (
            "train-classifier",
            labels_file,
            ("accuracy\t", "bag of words\t", "true \\ answered\tL\tR"),
        ),
        ("train-fill", texts_file, ("found\t", "perplexity\t")),
    ],
)
@pytest.mark.slow
def test_a_run_from_a_file(tt, tmp_path, command, make, told):
    data = make(tmp_path / "mine.tsv")
    outcome = tt(command, str(data), *SHORT)
    assert outcome.code == 0 and all(part in outcome.out for part in told)
    assert (tmp_path / "runs" / "mine" / "model.safetensors").exists(), "named after the file"
    assert "run: runs" in outcome.err and "held out" in outcome.err and "next: tt " in outcome.err
    again = tt(command, str(data), *SHORT, "--quiet")
    assert again.out == outcome.out and again.err.count("\n") == 1, "and beside it the next"
    assert (tmp_path / "runs" / "mine-2").exists()
    assert tt("inspect", "runs/mine").code == 0


def test_events_as_json_lines(tt, tmp_path):
    outcome = tt("train-translate", str(pairs_file(tmp_path / "p.tsv")), *SHORT, "--json")
    events = [json.loads(line) for line in outcome.out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "plan" and kinds[-2:] == ["done", "report"] and kinds.count("step") == 40
    assert set(events[-1]["figures"]) >= {"exact_match", "token_accuracy", "bleu", "chrf"}
    assert outcome.err == ""


def test_a_dry_run_trains_nothing(tt, tmp_path):
    outcome = tt("train-translate", "--dry-run", "--json")
    plan = json.loads(outcome.out)
    assert outcome.code == 0 and plan["task"] == "translate" and plan["examples_val"] == 500
    assert list(tmp_path.iterdir()) == []
    assert "examples: 3,000 to train on" in tt("train-fill", "--dry-run").out


def test_options_reach_the_model_and_the_trainer(tt, tmp_path):
    given = "--d-ff 24 --n-encoder-layers 1 --n-decoder-layers 3 --norm pre --label-smoothing 0.2"
    given += " --schedule noam --lr 0.01 --warmup 5 --positions learned --max-length 30"
    plan = json.loads(
        tt(
            "train-translate",
            str(pairs_file(tmp_path / "p.tsv")),
            *given.split(),
            "--dry-run",
            "--json",
        ).out
    )["config"]
    assert (plan["d_ff"], plan["n_encoder_layers"], plan["n_decoder_layers"]) == (24, 1, 3)
    assert (plan["norm"], plan["positions"], plan["max_length"]) == ("pre", "learned", 30)
    assert (plan["schedule"], plan["learning_rate"], plan["min_lr"]) == ("noam", 0.01, 0.001)


@pytest.mark.slow
def test_resume_keeps_its_settings(tt, tmp_path):
    data = str(pairs_file(tmp_path / "p.tsv"))
    assert tt("train-translate", data, *SHORT, "--out", "run").code == 0
    refused = tt("train-translate", "--resume", "run", "--d-model", "32")
    assert refused.code == 2 and "--d-model cannot be changed by --resume" in refused.err
    refused = tt("train-translate", data, "--resume", "run")
    assert refused.code == 2 and "PAIRS cannot be changed" in refused.err
    done = tt("train-translate", "--resume", "run")
    assert done.code == 2 and "all of its 40 steps" in done.err
    assert tt("train-translate", "--resume", "run", "--steps", "44", "--quiet").code == 0
    other = tt("train-fill", "--resume", "run", "--steps", "60")
    assert other.code == 2 and "is a run of tt train-translate" in other.err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
@pytest.mark.slow
def test_interrupted_it_saves_and_goes_on(tmp_path):
    data = pairs_file(tmp_path / "p.tsv")
    program = "from cli.main import main; main()"
    arguments = ["train-translate", data, *TINY, "--steps", "2000", "--out", "run", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "step":
        pass
    process.send_signal(signal.SIGINT)
    out, messages = process.communicate(timeout=100)
    assert process.returncode == 130 and "report" not in out
    assert "resume with: tt train-translate --resume run" in messages.splitlines()[-1]
    assert (tmp_path / "run" / "latest.json").exists()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["train-translate", "none.tsv"], "there is no file none.tsv"),
        (["train-translate", "."], "is a directory"),
        (["train-translate", "bad.tsv"], "bad.tsv, line 2"),
        (["train-translate", "once.tsv", "bad.tsv"], "once.tsv has 3 lines and bad.tsv has 2"),
        (["train-classifier", "bad.tsv"], "bad.tsv, line 2"),
        (["train-classifier", "once.tsv"], "'b' is seen only once"),
        (["train-classifier", "--regression"], "embedded opinions have no numbers"),
        (["train-classifier", "once.tsv", "--regression"], "line 1: the label 'a' is not a number"),
        (["train-fill", "empty.txt"], "empty.txt is empty"),
        (["train-translate", "--json", "--quiet"], "cannot go together"),
        (["train-translate", "--n-heads", "3"], "3 heads cannot share"),
        (["train-translate", "--vocab-size", "300"], "--vocab-size 300 has no meaning"),
        (["train-translate", "--max-length", "4"], "--max-length is 4"),
        (["train-translate", "--min-lr", "1"], "--min-lr is 1"),
    ],
)
def test_bad_input_is_one_line(tt, tmp_path, arguments, fault):
    (tmp_path / "bad.tsv").write_text("a\tx\nb\n", encoding="utf-8")
    (tmp_path / "once.tsv").write_text("a\tx\na\ty\nb\tz\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    outcome = tt(*arguments)
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and outcome.out == ""
    assert fault in outcome.err and outcome.err.startswith("tt: error: ")
    assert not (tmp_path / "runs").exists()


# --- use ---


def stdin(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_translate_prints_a_line_a_sentence(tt, runs, monkeypatch):
    run = str(runs / "translate")
    outcome = tt("translate", run, "one and two", "three")
    assert outcome.code == 0 and outcome.out.count("\n") == 2 and outcome.err == ""
    stdin(monkeypatch, b"\xef\xbb\xbfone and two\r\nthree\n")
    assert tt("translate", run).out == outcome.out
    assert tt("translate", run, "one and two", "three", "--beam", "1").out == outcome.out
    told = [
        json.loads(line)
        for line in tt("translate", run, "one and two", "three", "--json").out.splitlines()
    ]
    assert [one["text"] for one in told] == outcome.out.splitlines()
    assert told[0]["source"] == "one and two" and told[0]["log_prob"] < 0


def test_translate_n_best_with_scores(tt, runs):
    lines = tt(
        "translate", str(runs / "translate"), "one and two", "--beam", "4", "--n-best", "3"
    ).out.splitlines()
    scores = [float(line.split("\t")[0]) for line in lines]
    assert len(lines) == 3 and scores == sorted(scores, reverse=True)


def test_translate_samples_by_seed(tt, runs):
    draw = ["translate", str(runs / "translate"), *["one and two"] * 6, "--sample", "-t", "3"]
    one, same, other = (tt(*draw, "--seed", seed).out for seed in ("1", "1", "2"))
    assert one == same != other


def test_translate_shows_and_saves_attention(tt, runs, tmp_path):
    run = str(runs / "translate")
    outcome = tt("translate", run, "one and two", "--attention")
    lines = outcome.out.splitlines()
    assert len(lines) > 4 and lines[1].split()[0] in ("one", "o"), "columns are the source"
    saved = tt("translate", run, "one and two", "--save", "a.svg")
    assert saved.code == 0 and "saved a.svg" in saved.err
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    assert tt("translate", run, "one and two", "--save", "a.svg").code == 2
    again = tt("translate", run, "one and two", "--save", "a.svg", "--force", "--json")
    assert again.code == 0 and "attention" in json.loads(again.out)
    look = json.loads(
        tt("translate", run, "one and two", "--json", "--attention", "--head", "1").out
    )["attention"]
    assert look["source"] == ["one", "and", "two"] and look["target"][-1] == "END"
    assert [sum(row) for row in look["weights"]] == pytest.approx([1.0] * len(look["target"]))
    assert tt("translate", run, "one and two", "--attention", "--quiet").out == lines[0] + "\n"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["one and seven"], "lacks 'seven'"),
        ([""], "the source is empty"),
        (["one " * 60], "60 tokens, and the most is 24"),
        (["one", "--n-best", "2"], "--n-best is for --beam"),
        (["one", "--beam", "2", "--n-best", "3"], "3 best of a beam of 2"),
        (["one", "--top-k", "2"], "--top-k is for --sample"),
        (["one", "--sample", "--beam", "2"], "cannot go together"),
        (["one", "--layer", "7"], "there is no layer 7"),
        (["one", "--head", "7"], "there is no head 7"),
        (["one", "--save", "a.png"], "pictures are saved as"),
        (["one", "two", "--save", "a.svg"], "attention of one sentence"),
    ],
)
def test_translate_refuses_in_one_line(tt, runs, arguments, fault):
    outcome = tt("translate", str(runs / "translate"), *arguments)
    assert outcome.code == 2 and fault in outcome.err
    assert outcome.err.count("\n") == 1 and outcome.out == ""


def test_classify_prints_labels_with_probabilities(tt, runs, monkeypatch):
    run = str(runs / "classifier")
    outcome = tt("classify", run, "left so right")
    first, p, second, q = outcome.out.split()
    assert {first, second} == {"L", "R"} and float(p) + float(q) == pytest.approx(1, abs=2e-4)
    stdin(monkeypatch, b"left so right\n")
    assert tt("classify", run, "--top", "1").out == f"{first}\t{p}\n"
    told = json.loads(tt("classify", run, "left so right", "--json").out)
    assert told["label"] == first and sum(told["probs"].values()) == pytest.approx(1)
    number = json.loads(tt("classify", str(runs / "numbers"), "yes no", "--json").out)["number"]
    assert float(tt("classify", str(runs / "numbers"), "yes no").out) == pytest.approx(
        number, rel=1e-4
    )


def test_fill_prints_the_text_and_the_likeliest(tt, runs):
    run = str(runs / "fill")
    text, ranked = tt("fill", run, "left so _", "--top", "3").out.splitlines()
    assert text.startswith("left so ") and "_" not in text and len(ranked.split("\t")) == 6
    assert tt("fill", run, "left so _", "-q").out == text + "\n"
    told = json.loads(tt("fill", run, "left so [MASK]", "--json").out)
    assert told["text"] == text and len(told["answers"]) == 1


@pytest.mark.parametrize(
    ("command", "name", "text", "fault"),
    [
        ("classify", "classifier", "up", "lacks 'up'"),
        ("classify", "classifier", " ", "the text is empty"),
        ("classify", "fill", "left", "is a run of tt train-fill, not of tt train-classifier"),
        ("translate", "classifier", "left", "is a run of tt train-classifier"),
        ("fill", "fill", "left so", "nothing is hidden"),
        ("fill", "fill", "up _", "lacks 'up'"),
        ("generate", "fill", "", "is a run of tt train-fill, not a GPT"),
        ("classify", "none", "left", "does not exist"),
    ],
)
def test_use_refuses_in_one_line(tt, runs, command, name, text, fault):
    outcome = tt(command, str(runs / name), *([text] if text else []))
    assert outcome.code == 2 and fault in outcome.err
    assert outcome.err.count("\n") == 1 and outcome.out == ""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "no text on stdin"),
        (b"one\n\ntwo\n", "line 2 of stdin is empty"),
        (b"one\n\xff\n", "line 2 of stdin is not UTF-8: byte 0xff"),
    ],
)
def test_stdin_is_named_by_line(tt, runs, monkeypatch, data, fault):
    stdin(monkeypatch, data)
    outcome = tt("translate", str(runs / "translate"))
    assert outcome.code == 2 and fault in outcome.err and outcome.err.count("\n") == 1


def test_unknown_words_may_be_skipped(tt, runs):
    run = str(runs / "translate")
    known = tt("translate", run, "one and two").out
    assert tt("translate", run, "one and twenty two", "--unknown", "skip").out == known


@pytest.mark.slow
def test_help_is_fast():
    for command in ("train-translate", "translate", "train-classifier", "classify", "fill"):
        begun = time.process_time()
        code = f"import sys; from cli.main import run; run(['{command}', '--help']); "
        code += "assert not {'numpy', 'rich'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
        assert time.process_time() - begun < 1
