"""`tt` on the real library: a run from beginning to end, and every fault in one clear line."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tinygrad_tf.storage import load_safetensors, save_safetensors

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "from cli.main import main; main()"
TINY = [
    *("--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "8"),
    *("--batch-size", "4", "--steps", "6", "--eval-every", "3", "--checkpoint-every", "2"),
]
TEXT = "the cat sat on the mat and the dog ran to the cat\n" * 12

posix = pytest.mark.skipif(os.name == "nt", reason="of POSIX systems")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")


def process(
    *arguments: object, program: str = PROGRAM, **options
) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        **options,
    )


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, str]:
    """A run that must not be changed, and the events that it told."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    done = process("train-gpt", folder / "text.txt", "--out", folder / "run", *TINY, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "run", done.stdout


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A copy of that run, to be damaged."""
    shutil.copytree(trained[0], tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def fault(tt) -> Callable[..., tuple[int, str]]:
    """Run `tt` expecting a fault: its exit code and its one line, without the head."""

    def call(*arguments: object) -> tuple[int, str]:
        outcome = tt(*map(str, arguments))
        assert outcome.err.startswith("tt: error: ") and outcome.err.count("\n") == 1, outcome.err
        assert not outcome.err.startswith("tt: error: unexpected "), outcome.err
        return outcome.code, outcome.err.removeprefix("tt: error: ")

    return call


# --- from beginning to end ---


def test_the_fake_events_have_the_fields_of_a_real_run(trained, events):
    for event in map(json.loads, trained[1].splitlines()):
        if event["event"] != "checkpoint":
            numbers = {"plan": (), "done": (1,)}.get(event["event"], (1, 1.0))
            assert getattr(events, event["event"])(*numbers).keys() == event.keys()


def test_json_lines_tell_the_whole_run(trained):
    path, out = trained
    events = [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]
    assert events[0]["event"] == "plan" and events[-1]["event"] == "done"
    assert {e["event"] for e in events} == {"plan", "step", "eval", "checkpoint", "done"}
    steps = [e for e in events if e["event"] == "step"]
    assert [e["step"] for e in steps] == [1, 2, 3, 4, 5, 6]
    evaluations = [e for e in events if e["event"] == "eval"]
    assert [e["step"] for e in evaluations] == [0, 3, 6]
    assert all({"train_loss", "val_loss", "best_val_loss"} <= e.keys() for e in evaluations)
    done = events[-1]
    assert (done["run"], done["steps"], done["reason"]) == (str(path), 6, "steps")
    assert done["val_loss"] == evaluations[-1]["val_loss"]
    assert done["val_bits_per_char"] == pytest.approx(done["val_loss"] / np.log(2))
    assert done["floor_bits_per_char"] is None


def test_trained_inspected_generated(tt, text, tmp_path):
    run = tmp_path / "run"
    outcome = tt("train-gpt", str(text), "--out", str(run), *TINY)
    assert outcome.code == 0
    assert len(outcome.out) > 100, "a sample"
    assert set(outcome.out) <= set(TEXT)
    assert "next: tt generate" in outcome.err
    summary = json.loads(tt("inspect", str(run), "--json").out)
    assert summary["steps"] == 6 and summary["parameters"] == sum(
        layer["count"] for layer in summary["layers"]
    )
    options = ["--prompt", "the c", "--seed", "3", "-n", "20"]
    texts = [tt("generate", str(run), *options).out for _ in range(2)]
    assert texts[0] == texts[1] and texts[0].startswith("the c") and len(texts[0]) == 26
    samples = json.loads(tt("generate", str(run), *options, "--samples", "3", "--json").out)
    assert len({sample["text"] for sample in samples["samples"]}) == 3
    assert "the c" + samples["samples"][0]["text"] + "\n" == texts[0]


def test_a_dry_run_writes_nothing(tt, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--json"]):
        assert tt("train-gpt", str(text), "--dry-run", *TINY, *more).code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]


def test_resume_needs_only_the_run(tt, run, trained, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    outcome = tt("train-gpt", "--resume", str(run), "--steps", "8", "--json")
    assert outcome.code == 0
    steps = [e for e in map(json.loads, outcome.out.splitlines()) if e["event"] == "step"]
    assert [e["step"] for e in steps] == [7, 8]
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.slow
def test_why_a_run_ended_is_told(tt, text, tmp_path):
    for number, (option, reason) in enumerate(
        [
            ("--early-stop 1 --lr 1e-30 --min-lr 0", "early stop"),
            ("--time-limit 0.05", "time limit"),
        ]
    ):
        arguments = ["--out", str(tmp_path / str(number)), *TINY, "--steps", "100000", "--quiet"]
        outcome = tt("train-gpt", str(text), *arguments, "--eval-every", "5", *option.split())
        assert outcome.code == 0 and f"({reason})" in outcome.err


def test_line_mode(tt, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{a}{b}na\n" for a in "lmnrst" for b in "aeiou"), encoding="utf-8")
    outcome = tt("train-gpt", str(names), "--lines", "--out", str(tmp_path / "run"), *TINY, "-q")
    assert outcome.code == 0
    outcome = tt("generate", str(tmp_path / "run"), "--seed", "1", "--stop", "\\n")
    assert outcome.code == 0 and outcome.out.count("\n") == 1


@posix
@pytest.mark.parametrize("read", [0, 1])
@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly(trained, text, tmp_path, read):
    """As in `tt ... | head -1`: nothing on stderr, and a run that was being trained is whole."""
    run = tmp_path / "run"
    for arguments in (
        ["generate", trained[0], "-n", 10**6],
        ["train-gpt", text, "--out", run, *TINY, "--steps", 10**6, "--json"],
    ):
        running = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert running.stdout is not None and running.stderr is not None
        for _ in range(read):
            running.stdout.readline()
        running.stdout.close()
        messages = running.stderr.read()
        running.stderr.close()
        assert (running.wait(100), messages) == (141, b"")
    if (run / "config.json").exists():
        resumed = process("train-gpt", "--resume", run, "--time-limit", "0.1s", "--quiet")
        assert resumed.returncode == 0


# --- texts ---


def test_texts_that_cannot_be_read(fault, tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "latin.txt").write_bytes(b"one\ntwo \xe9t\xe9\n" * 30)
    (tmp_path / "binary").write_bytes(b"MZ\0\0" + bytes(500))
    for name, words in {
        "missing.txt": "there is no file",
        "": "is a directory",
        "empty.txt": "is empty",
        "latin.txt": "byte 0xe9 at offset 8, line 2",
        "binary": "looks binary: it has a NUL byte at offset 2",
    }.items():
        code, line = fault("train-gpt", tmp_path / name, "--out", tmp_path / "run", *TINY)
        assert code == 2 and words in line
    assert not (tmp_path / "run").exists()


def test_texts_that_are_too_short(fault, text, tmp_path):
    (tmp_path / "short.txt").write_text("abc", encoding="utf-8")
    code, line = fault("train-gpt", tmp_path / "short.txt", "--out", tmp_path / "run", *TINY)
    assert code == 2 and "tokens" in line
    code, line = fault("train-gpt", text, "--out", tmp_path / "run", *TINY, "--block-size", 100)
    assert code == 2
    assert "validation split has 60 tokens" in line and "--block-size" in line
    code, line = fault("train-gpt", tmp_path / "short.txt", "--lines", "--out", tmp_path / "run")
    assert code == 2 and "1 document" in line
    assert not (tmp_path / "run").exists()


def test_byte_order_mark_and_crlf_are_accepted_and_reported(tt, tmp_path):
    windows = tmp_path / "windows.txt"
    windows.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    outcome = tt("train-gpt", str(windows), "--dry-run", *TINY, "--json")
    plan = json.loads(outcome.out)
    assert outcome.code == 0 and plan["vocab_size"] == len(set(TEXT))
    notes = " ".join(plan["notes"])
    assert "byte order mark" in notes and "12 CRLF" in notes


# --- options ---


@pytest.mark.parametrize(
    "options",
    [
        "--steps 0",
        "--steps -5",
        "--lr nan",
        "--lr -1",
        "--dropout 1",
        "--grad-clip -1",
        "--val-fraction 1.5",
        "--beta1 inf",
        "--time-limit -3",
        "--batch-size 0",
        "--seed -1",
        "--preset huge",
        "--tokenizer word",
        "--n-embd 30 --n-head 4",
    ],
)
def test_bad_options(fault, text, tmp_path, options):
    code, line = fault("train-gpt", text, "--out", tmp_path / "run", *TINY, *options.split())
    assert code == 2 and options.split()[0].strip("-").replace("-", "_") in line.replace("-", "_")
    assert not (tmp_path / "run").exists()


def test_an_existing_directory_is_left_alone(fault, text, tmp_path, run):
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    code, line = fault("train-gpt", text, "--out", run, *TINY)
    assert code == 2 and "exists" in line and "--force" in line
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    code, line = fault("train-gpt", text, "--out", text, *TINY)
    assert code == 2 and text.read_text(encoding="utf-8") == TEXT


def test_unknown_characters_in_a_prompt(tt, fault, run):
    code, line = fault("generate", run, "--prompt", "the Cat?")
    assert code == 2
    assert "'C' (U+0043, position 4, nearest known 'c')" in line and "--unknown skip" in line
    outcome = tt("generate", str(run), "--prompt", "the Cat?", "--unknown", "skip", "-n", "5")
    assert outcome.code == 0 and outcome.out.startswith("the Cat?")


# --- disks ---


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that users without rights can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    yield folder
    shutil.rmtree(folder)


@posix
@pytest.mark.slow
def test_no_permission_to_write(open_folder):
    text, out = open_folder / "text.txt", open_folder / "run"
    open_folder.chmod(0o555)
    # The administrator may write anywhere: after a dry run, which loads all that is needed and
    # may be out of others' reach, all rights are dropped.
    drop = (
        "import os, sys; from cli.main import run; run([*sys.argv[1:], '--dry-run']);"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534);"
    )
    refused = process(
        *("train-gpt", text, "--out", out, *TINY, "--json"),
        program=PROGRAM if os.geteuid() else drop + PROGRAM,
    )
    open_folder.chmod(0o755)
    assert refused.returncode == 1, refused.stderr
    assert refused.stderr.count("\n") == 1 and "permission denied" in refused.stderr
    assert refused.stderr.startswith("tt: error: ")
    assert not out.exists()


@linux
@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint(open_folder):
    disk = open_folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    text, run = open_folder / "text.txt", disk / "run"
    try:
        assert process("train-gpt", text, "--out", run, *TINY, "--json").returncode == 0
        with (disk / "ballast").open("wb") as file:
            file.write(bytes(shutil.disk_usage(disk).free))
        go_on = ["train-gpt", "--resume", run, "--steps", 50, "--json"]
        refused = process(*go_on)
        assert refused.returncode == 1
        assert refused.stderr.startswith("tt: error: ") and refused.stderr.count("\n") == 1
        assert "disk is full" in refused.stderr
        assert process("generate", run, "-n", 5).returncode == 0
        (disk / "ballast").unlink()
        assert process(*go_on).returncode == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@posix
@pytest.mark.slow
def test_a_file_that_may_not_grow_leaves_the_last_checkpoint(trained, run):
    """Needs no rights: the system's limit on the size of a file stands for the full disk."""
    import resource

    largest = (run / "model.safetensors").stat().st_size - 1000

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    before = load_safetensors(run / "model.safetensors")
    refused = process("train-gpt", "--resume", run, "--steps", 9, "--json", preexec_fn=limit)
    assert refused.returncode == 1
    assert refused.stderr.startswith("tt: error: ") and refused.stderr.count("\n") == 1
    assert "step 6 is intact" in refused.stderr
    after = load_safetensors(run / "model.safetensors")
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert process("train-gpt", "--resume", run, "--steps", 9, "--quiet").returncode == 0


# --- runs ---


def damage(run: Path, name: str) -> None:
    for path in (run / name, *run.glob(f"checkpoints/*/{name}"), *run.glob(f"best/{name}")):
        if path.exists():
            path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("generate", ["model.safetensors", "latest.json", "config.json", "tokenizer.json"]),
        ("inspect", ["model.safetensors", "latest.json", "config.json", "metrics.jsonl"]),
        (
            "train-gpt --steps 9 --resume",
            [
                "model.safetensors",
                "optimizer.safetensors",
                "trainer_state.json",
                "latest.json",
                "config.json",
                "tokenizer.json",
                "data/train.bin",
                "data/tokens.json",
            ],
        ),
    ],
    ids=["generate", "inspect", "resume"],
)
@pytest.mark.filterwarnings("default:.*rebuilt from the checkpoints")
def test_truncated_files(fault, tt, run, tmp_path, command, names):
    for name in names:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        damage(copy, name)
        # A line that a crash cut off is no fault; a pointer is made again from the checkpoints.
        if name in ("metrics.jsonl", "latest.json"):
            assert tt(*command.split(), str(copy)).code == 0
        else:
            # The plan comes before the weights are read: --quiet leaves only what matters.
            quiet = ["--quiet"] if "resume" in command else []
            code, line = fault(*command.split(), copy, *quiet)
            assert code == 2 and Path(name).name in line
        shutil.rmtree(copy)


def test_a_metric_that_was_edited(fault, run):
    metrics = run / "metrics.jsonl"
    record = metrics.read_text(encoding="utf-8")
    metrics.write_text(record.replace('"loss"', '"lost"', 1), encoding="utf-8")
    code, line = fault("inspect", run)
    assert code == 2 and "metrics.jsonl" in line


def test_an_altered_weight_is_noticed(tt, fault, run):
    for path in (*run.glob("checkpoints/*/model.safetensors"), run / "best/model.safetensors"):
        tensors = load_safetensors(path)
        path.unlink()
        save_safetensors(path, {name: array + 1 for name, array in tensors.items()})
    code, line = fault("generate", run)
    assert code == 2 and "altered or damaged" in line


def test_another_programs_model(tt, fault, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    save_safetensors(other / "model.safetensors", {"layer.weight": np.zeros((2, 2), np.float32)})
    code, line = fault("generate", other)
    assert code == 2 and "config.json" in line
    (other / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    code, line = fault("generate", other)
    assert code == 2 and "'bert'" in line
    shape = {"model_type": "gpt2", "vocab_size": 9, "n_embd": 4, "n_layer": 1, "n_head": 1}
    (other / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    code, line = fault("generate", other)
    assert code == 2 and "missing wte.weight" in line and "unexpected layer.weight" in line
    code, line = fault("train-gpt", "--resume", other)
    assert code == 2 and "is not a run of this program" in line


def test_what_is_no_run(fault, text, tmp_path):
    for command in ("generate", "inspect", "train-gpt --resume"):
        for path in (tmp_path / "nothing", text, tmp_path):
            code, line = fault(*command.split(), path)
            assert code == 2 and str(path) in line


def test_resuming_what_cannot_go_on(fault, run, trained):
    code, line = fault("train-gpt", "--resume", run)
    assert code == 2 and "all of its 6 steps" in line and "--steps 12" in line
    code, line = fault("train-gpt", "--resume", run, "--n-layer", 2)
    assert code == 2 and "--n-layer cannot be changed" in line
    text = trained[0].parent / "text.txt"
    text.write_text(TEXT + "more", encoding="utf-8")
    try:
        code, line = fault("train-gpt", "--resume", run, "--steps", 9)
    finally:
        text.write_text(TEXT, encoding="utf-8")
    assert code == 2 and "has changed" in line
    tokenizer = run / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8").replace("g", "G"), encoding="utf-8")
    code, line = fault("train-gpt", "--resume", run, "--steps", 9)
    assert code == 2 and "tokenizer.json" in line


@pytest.mark.slow
def test_a_diverging_run_is_told_in_one_line(text, tmp_path):
    failed = process(
        "train-gpt", text, "--out", tmp_path / "run", *TINY, "--lr", 1e6, "--grad-clip", 0,
        "--steps", 60, "--quiet",
    )  # fmt: skip
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1, failed.stderr
    assert failed.stderr.startswith("tt: error: ") and "not finite at step" in failed.stderr
    assert process("generate", tmp_path / "run", "-n", 5).returncode == 0
    assert process("inspect", tmp_path / "run").returncode == 0
