"""`tt say`, `tt train-speech` and `tt transcribe`: what they print, refuse and draw."""

import io
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cli.main import run
from cli.pictures.listening import listening_picture
from tinygrad_tf.audio import read_wav, wav_bytes
from tinygrad_tf.tasks.transcriber import Listening

Command = Callable[..., Any]
TINY = (
    *("--d-model", "16", "--n-heads", "2", "--n-encoder-layers", "1", "--n-decoder-layers", "1"),
    *("--steps", "4", "--batch-size", "4", "--eval-every", "2", "--threads", "1"),
)


@pytest.fixture(scope="module")
def speech_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has heard forty commands and learned next to nothing."""
    out = tmp_path_factory.mktemp("cli_speech") / "run"
    given = ("--utterances", "40", "--speakers", "4", "--out", str(out), "--quiet", *TINY)
    assert run(["train-speech", *given]) == 0
    return out


@pytest.fixture
def wav(tmp_path: Path, tt: Command) -> Path:
    """Somebody says "find my files"."""
    path = tmp_path / "find.wav"
    assert tt("say", "find my files", "--seed", "3", "--out", str(path)).code == 0
    return path


# tt say


def test_say_writes_a_wav_and_tells_how_to_say_it_again(tmp_path: Path, tt: Command) -> None:
    first, again, other = (tmp_path / f"{name}.wav" for name in ("first", "again", "other"))
    said = tt("say", "Find my files!", "--out", str(first))
    assert said.code == 0 and said.out == "" and f"s in {first}, by a voice of" in said.err
    seed = said.err.strip().rsplit(" ", 1)[1]
    assert tt("say", "find my files", "--seed", seed, "--out", str(again), "-q").err == ""
    assert tt("say", "find my files", "--seed", seed, "--snr", "0", "--out", str(other)).code == 0
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    assert read_wav(first).rate == 16_000 and 0.5 < read_wav(first).seconds < 3


def test_say_pipes_the_same_bytes(
    wav: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    piped = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(piped))
    assert run(["say", "find my files", "--seed", "3"]) == 0
    assert piped.getvalue() == wav.read_bytes()


@pytest.mark.parametrize(
    "arguments, fault",
    [
        (("find my hat",), "the voice cannot say 'hat'; choose from: all and battery"),
        (("...",), "there is nothing to say"),
        (("find", "--snr", "nan"), "'--snr'"),
    ],
)
def test_say_refuses_what_it_cannot_say(
    arguments: tuple[str, ...], fault: str, tmp_path: Path, tt: Command
) -> None:
    said = tt("say", *arguments, "--out", str(tmp_path / "x.wav"))
    assert said.code == 2 and fault in said.err and said.err.count("\n") == 1
    assert not (tmp_path / "x.wav").exists()


def test_say_overwrites_only_with_force(wav: Path, tt: Command) -> None:
    before = wav.read_bytes()
    said = tt("say", "stop the engine", "--out", str(wav))
    assert said.code == 2 and "exists already" in said.err and wav.read_bytes() == before
    assert tt("say", "stop the engine", "--out", str(wav), "--force").code == 0
    assert wav.read_bytes() != before


# tt train-speech


def test_training_on_a_directory_reports_and_resumes(tmp_path: Path, tt: Command) -> None:
    folder, out = tmp_path / "recordings", tmp_path / "run"
    folder.mkdir()
    for index, text in enumerate(("find my files", "find my photos", "open my files") * 2):
        name = folder / f"{index}.wav"
        assert tt("say", text, "--seed", str(index), "--out", str(name), "-q").code == 0
        name.with_suffix(".txt").write_text(text, encoding="utf-8")
    trained = tt("train-speech", str(folder), "--out", str(out), *TINY)
    assert trained.code == 0
    lines = dict(line.split("\t", 1) for line in trained.out.splitlines()[:3])
    assert lines["held out"] == "1"
    assert lines["word for word"] in ("0.0 %", "100.0 %") and lines["word error rate"][-1] == "%"
    assert "3 different sentences; 0 of 1 held out say others" in trained.err
    (name,) = (n for n in folder.glob("*.wav") if str(n) in trained.err)
    assert f"next: tt transcribe {out.as_posix()} {name} --attention" in trained.err
    more = tt("train-speech", "--resume", str(out), "--steps", "6", "--json")
    events = [json.loads(line) for line in more.out.splitlines()]
    assert more.code == 0 and [e["step"] for e in events if e["event"] == "step"] == [5, 6]
    assert events[-1]["event"] == "report" and events[-1]["figures"]["examples"] == 1


def test_a_dry_run_writes_nothing(tmp_path: Path, tt: Command) -> None:
    given = ("--utterances", "20", "--speakers", "2", "--out", str(tmp_path / "run"), "--dry-run")
    planned = tt("train-speech", *given)
    assert planned.code == 0 and "examples: 20 to train on" in planned.out
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments, fault",
    [
        (("nowhere",), "nowhere does not exist"),
        ((".", "--utterances", "5"), "--utterances is for the built-in voice: leave DIR out"),
        (("--val-fraction", "0.2"), "--val-fraction is for recordings: give DIR"),
        (("--val-fraction", "1"), "'--val-fraction'"),
        (("--utterances", "9", "--d-model", "10"), "d_model is 10, which 4 heads cannot share"),
        (("--utterances", "9", "--max-length", "9"), "and the most is 0.4 s"),
    ],
)
def test_training_refuses_in_one_line(
    arguments: tuple[str, ...], fault: str, tmp_path: Path, tt: Command
) -> None:
    refused = tt("train-speech", "--out", str(tmp_path / "run"), *arguments, "--json")
    assert refused.code == 2 and fault in refused.err and refused.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


# tt transcribe


def test_one_sound_is_a_line_and_several_have_their_names(
    speech_run: Path, wav: Path, tt: Command
) -> None:
    one = tt("transcribe", str(speech_run), str(wav))
    assert one.code == 0 and one.err == "" and one.out.count("\n") == 1
    several = tt("transcribe", str(speech_run), str(wav), str(wav))
    assert several.out == f"{wav}\t{one.out}" * 2
    best = tt("transcribe", str(speech_run), str(wav), "--beam", "3", "--n-best", "2")
    scores = [float(line.split("\t")[0]) for line in best.out.splitlines()]
    assert len(scores) == 2 and scores[0] >= scores[1]


def assert_same_transcripts(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The same record, but for the file's name and the last digits of scores and weights."""
    assert one.keys() == other.keys()
    for name in ("text", "seconds", "rate", "finished"):
        assert one[name] == other[name]
    for name in ("score", "log_prob"):
        assert one[name] == pytest.approx(other[name], rel=1e-6)
    assert [t["text"] for t in one["transcripts"]] == [t["text"] for t in other["transcripts"]]
    if "attention" in one:
        mine, yours = one["attention"], other["attention"]
        assert (mine["words"], mine["seconds"]) == (yours["words"], yours["seconds"])
        np.testing.assert_allclose(mine["weights"], yours["weights"], rtol=1e-5, atol=1e-7)


def test_json_tells_all_and_stdin_is_a_sound(
    speech_run: Path, wav: Path, tt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SimpleNamespace(buffer=io.BytesIO(wav.read_bytes()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", given)
    told = tt("transcribe", str(speech_run), "-", str(wav), "--attention", "--json")
    piped, named = (json.loads(line) for line in told.out.splitlines())
    assert (piped["file"], named["file"]) == ("-", str(wav))
    assert_same_transcripts(piped, named)
    assert named["rate"] == 16_000 and named["transcripts"][0]["text"] == named["text"]
    attention = named["attention"]
    assert len(attention["weights"]) == len(attention["words"])
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in attention["weights"])
    parts = named["seconds"] / attention["seconds"]
    assert abs(len(attention["weights"][0]) - parts) <= 1


def test_the_attention_is_drawn_and_saved(
    speech_run: Path, wav: Path, tmp_path: Path, tt: Command
) -> None:
    text = tt("transcribe", str(speech_run), str(wav), "-q").out
    for kind in ("svg", "html", "txt"):
        target = tmp_path / f"heard.{kind}"
        given = ("transcribe", str(speech_run), str(wav), "--layer", "0", "--save", str(target))
        shown = tt(*given)
        assert shown.code == 0 and f"saved {target}" in shown.err
        assert shown.out.startswith(text) and "attention of each word over the sound" in shown.out
        assert "attention" in target.read_text(encoding="utf-8")
        assert tt(*given).code == 2


def damaged(kind: str) -> bytes:
    good = wav_bytes(np.sin(np.arange(16_000) / 9), 16_000)
    if kind == "truncated":
        return good[:-100]
    if kind == "24-bit":
        return good[:34] + struct.pack("<H", 24) + good[36:]
    if kind == "float":
        return good[:20] + struct.pack("<H", 3) + good[22:34] + struct.pack("<H", 32) + good[36:]
    if kind == "empty":
        return b""
    if kind == "no samples":
        return wav_bytes(np.zeros(1), 16_000)[:40] + bytes(4)
    if kind == "text":
        return b"find my files, please\n"
    if kind == "silent":
        return wav_bytes(np.zeros(16_000), 16_000)
    if kind == "short":
        return wav_bytes(np.sin(np.arange(500)), 16_000)
    return wav_bytes(np.sin(np.arange(16_000 * 21)), 16_000)


@pytest.mark.parametrize(
    "kind, fault",
    [
        ("truncated", "is truncated: 32000 bytes of samples announced, 31900 there"),
        ("24-bit", "holds 24-bit samples, not 16-bit"),
        ("float", "holds floating-point samples, not 16-bit PCM"),
        ("empty", "is empty: it has 0 bytes"),
        ("no samples", "is empty: it has 0 samples"),
        ("text", "is not a WAV"),
        ("silent", "is silent"),
        ("short", "is too short; record at least 0.08 s"),
        ("long", "lasts 21.0 s, and the most is 20.5 s"),
        ("absent", "cannot read"),
    ],
)
def test_a_bad_sound_is_one_clear_line(
    kind: str, fault: str, speech_run: Path, tmp_path: Path, tt: Command
) -> None:
    bad = tmp_path / "bad.wav"
    if kind != "absent":
        bad.write_bytes(damaged(kind))
    refused = tt("transcribe", str(speech_run), str(bad))
    assert refused.code == 2 and refused.out == "" and refused.err.count("\n") == 1
    assert str(bad) in refused.err and fault in refused.err


@pytest.mark.parametrize(
    "arguments, fault",
    [
        (("--n-best", "2"), "--n-best is for --beam"),
        (("--layer", "7"), "there is no layer 7; give one from 0 to 0"),
        (("--head", "7"), "there is no head 7; give one from 0 to 1"),
        (("--save", "x.png"), "pictures are saved as .svg, .html, .txt"),
    ],
)
def test_transcribe_refuses_in_one_line(
    arguments: tuple[str, ...], fault: str, speech_run: Path, wav: Path, tt: Command
) -> None:
    refused = tt("transcribe", str(speech_run), str(wav), *arguments)
    assert refused.code == 2 and fault in refused.err and refused.err.count("\n") == 1


def test_stereo_at_another_rate_is_heard(speech_run: Path, tmp_path: Path, tt: Command) -> None:
    mono = wav_bytes(np.sin(np.arange(44_100) / 9), 44_100)
    samples = np.frombuffer(mono[44:], "<i2")
    both = np.repeat(samples, 2).tobytes()
    head = mono[:22] + struct.pack("<HIIH", 2, 44_100, 4 * 44_100, 4) + mono[34:40]
    stereo, plain = tmp_path / "stereo.wav", tmp_path / "plain.wav"
    stereo.write_bytes(head + struct.pack("<I", len(both)) + both)
    plain.write_bytes(mono)
    heard = tt("transcribe", str(speech_run), str(stereo), str(plain), "--json")
    one, other = (json.loads(line) for line in heard.out.splitlines())
    assert one["rate"] == 44_100
    assert_same_transcripts(one, other)


def test_another_kind_of_run_is_refused(tmp_path: Path, wav: Path, tt: Command) -> None:
    refused = tt("transcribe", str(tmp_path), str(wav))
    assert refused.code == 2 and refused.err.count("\n") == 1


# The picture


def listening(steps: int) -> Listening:
    """Two words, each heard in one half; only the second half sounds."""
    weights = np.zeros((2, steps))
    weights[0, : steps // 2] = weights[1, steps // 2 :] = 2 / steps
    loudness = np.full((40, steps), -80.0)
    loudness[:, steps // 2 :] = 0
    hertz = tuple(100.0 * band for band in range(1, 41))
    return Listening(0.04, hertz, loudness, ("directories", "my"), weights)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("steps", [20, 50, 500])
def test_sound_and_words_share_their_columns(steps: int, colour: bool) -> None:
    lines = listening_picture(listening(steps), 80, colour=colour).plain.split("\n")
    assert max(map(len, lines)) <= 80
    cell = "▀" if colour else "█"
    rows = [line for line in lines if line.count(cell) > 4]
    assert len({len(row) for row in rows}) == 1 or not colour
    if not colour:
        # Where only the second half sounds, there the second word listens.
        (word,) = (line for line in lines if line.lstrip().startswith("my "))
        assert all(row.index(cell) == word.index(cell) for row in rows if "3900" in row)


def test_high_sounds_stand_above_low_ones() -> None:
    look = listening(30)
    look.loudness[:20] = -80.0  # only what is above 2000 Hz sounds
    lines = listening_picture(look, 100, colour=False).plain.split("\n")
    sounding = [index for index, line in enumerate(lines[3:23]) if line.count("█") > 4]
    assert sounding == list(range(10))
    labels = [int(line.split()[0]) for line in lines[3:23] if line[:8].strip()]
    assert labels == [4000, 3200, 2400, 1600, 800]


def test_the_picture_is_plain_where_it_must_be() -> None:
    picture = listening_picture(listening(40), 100, colour=False, ascii=True).plain
    assert picture.isascii() and "director" in picture


def test_help_names_the_commands(tt: Command) -> None:
    for name in ("train-speech", "transcribe", "say"):
        helped = tt(name, "--help")
        assert helped.code == 0 and "Examples" in helped.out
