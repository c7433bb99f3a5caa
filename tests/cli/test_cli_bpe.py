"""`tt bpe-*`: learning, pipes, pictures, formats, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import run as tt

ROOT = Path(__file__).resolve().parents[2]
WORDS = "old\t7\nolder\t3\nfinest\t9\nlowest\t4\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tsv").write_text(WORDS, encoding="utf-8")
    text = "the cat sat on the mat.\r\nthe dog naïvely sat on the log…\n" * 40
    (tmp_path / "text.txt").write_bytes(text.encode() + b"\xff\xfe\r")
    assert tt(["bpe-train", "text.txt", "--vocab-size", "300", "--special", "<|end|>", "-q"]) == 0
    return tmp_path


def program(*arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, through real pipes."""
    code = "from cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], input=data, capture_output=True, env=environment
    )


def test_the_worked_example_is_shown_merge_by_merge(here: Path, capsys) -> None:
    arguments = ["bpe-train", "--counts", "words.tsv", "--ties", "first-seen", "--show", "20"]
    assert tt([*arguments, "--end-of-word", "separate", "--out", "w.json"]) == 0
    shown = capsys.readouterr()
    rows = [line.split("\t") for line in shown.out.splitlines()]
    assert [row[1] for row in rows[1:6]] == ["e + s", "es + t", "est + </w>", "o + l", "ol + d"]
    counts = [13, 13, 13, 10, 10, 9, 9, 9, 7, 4, 4, 4, 3, 3, 3]
    assert [int(row[2]) for row in rows[1:]] == counts
    assert rows[5][5].split("   ")[0] == "f i n est</w>"
    assert "learned 15 of" in shown.err and "no pair is left" in shown.err
    assert tt(["bpe-view", "-t", "w.json", "oldest", "--json"]) == 0
    tokens = json.loads(capsys.readouterr().out)["tokens"]
    assert [token["text"] for token in tokens] == ["old", "est</w>"]


@pytest.mark.slow
def test_pipes_give_back_the_very_bytes(here: Path) -> None:
    data = (here / "text.txt").read_bytes()
    for binary in ([], ["--binary", "u16"], ["--binary", "u32"]):
        ids = program("bpe-encode", "-t", "tok.json", *binary, data=data)
        assert ids.returncode == 0, ids.stderr
        back = program("bpe-decode", "-t", "tok.json", *binary, data=ids.stdout)
        assert back.stdout == data
    counted = program("bpe-encode", "-t", "tok.json", "--count", "text.txt")
    plain = program("bpe-encode", "-t", "tok.json", "text.txt").stdout.split()
    assert int(counted.stdout) == len(plain)


def test_a_text_in_pieces_of_any_size_gives_the_same_ids(here: Path, monkeypatch, capsys) -> None:
    assert tt(["bpe-encode", "-t", "tok.json", "text.txt"]) == 0
    whole = capsys.readouterr().out.split()
    monkeypatch.setattr("cli.bytes_io.CHUNK", 7)
    assert tt(["bpe-encode", "-t", "tok.json", "text.txt"]) == 0
    assert capsys.readouterr().out.split() == whole


def test_special_tokens_are_refused_allowed_or_text(here: Path, capsys) -> None:
    (here / "s.txt").write_text("hi<|end|>", encoding="utf-8")
    assert tt(["bpe-encode", "-t", "tok.json", "s.txt"]) == 2
    assert "'<|end|>'" in capsys.readouterr().err
    assert tt(["bpe-encode", "-t", "tok.json", "s.txt", "--specials", "allow"]) == 0
    end = json.loads((here / "tok.json").read_text(encoding="utf-8"))["added_tokens"][0]["id"]
    assert capsys.readouterr().out.split()[-1] == str(end)
    assert tt(["bpe-encode", "-t", "tok.json", "s.txt", "--specials", "text"]) == 0
    assert str(end) not in capsys.readouterr().out.split()


def test_the_view_tells_bytes_and_offsets(here: Path, capsys) -> None:
    assert tt(["bpe-view", "-t", "tok.json", "the naïve…"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert int(rows[0][3]) == 0 and int(rows[-1][4]) == len("the naïve…".encode())
    assert b"".join(bytes.fromhex(row[2]) for row in rows) == "the naïve…".encode()
    assert tt(["bpe-view", "-t", "tok.json", "the cat", "--save", "v.svg"]) == 0
    assert (here / "v.svg").read_text(encoding="utf-8").startswith("<svg")


def test_statistics_stand_beside_characters_and_words(here: Path, capsys) -> None:
    assert tt(["bpe-stats", "-t", "tok.json", "-t", "tok.json", "text.txt", "--json"]) == 0
    first, second, characters, words = json.loads(capsys.readouterr().out)["tokenizers"]
    assert first["bytes_per_token"] == second["bytes_per_token"] > characters["bytes_per_token"]
    assert first["bytes"] == len((here / "text.txt").read_bytes()) == characters["bytes"]
    assert 0 < first["unused"] < 1 and words["name"] == "words" and first["longest"]


@pytest.mark.parametrize("format", ["gpt2", "tiktoken", "minbpe"])
def test_formats_go_out_and_come_back(here: Path, format: str, capsys) -> None:
    place = {"gpt2": "pair", "tiktoken": "t.tiktoken", "minbpe": "m.model"}[format]
    assert tt(["bpe-train", "text.txt", "--vocab-size", "300", "--out", "p.json", "-q"]) == 0
    assert tt(["bpe-convert", "p.json", place, "--format", format]) == 0
    extra = ["--pattern", "gpt2"] if format == "tiktoken" else []
    encoded = []
    for tokenizer in (["p.json"], [place, *extra]):
        capsys.readouterr()
        assert tt(["bpe-encode", "text.txt", "-t", *tokenizer]) == 0
        encoded.append(capsys.readouterr().out.split())
    assert encoded[0] == encoded[1]
    assert tt(["bpe-convert", "p.json", place, "--format", format]) == 2
    assert "already; use --force" in capsys.readouterr().err


def test_learning_tells_what_came_of_it(here: Path, capsys) -> None:
    arguments = ["bpe-train", "text.txt", "--vocab-size", "5000", "--force", "--workers", "2"]
    assert tt([*arguments, "--json", "--show", "1", "--min-frequency", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stopped"].startswith(f"learned {told['merges']} of 4,744 merges: no pair occurs")
    assert told["steps"][0]["merge"] == 1 and told["out"] == "tok.json"
    (here / "empty.txt").touch()
    assert tt(["bpe-train", "empty.txt", "--out", "e.json"]) == 0
    assert "the text is empty" in capsys.readouterr().err
    (here / "texts").mkdir()
    for name in "ab":
        (here / "texts" / name).write_text("aaab", encoding="utf-8")
    assert tt(["bpe-train", "texts", "--vocab-size", "258", "--out", "d.json", "-q"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bpe-train"], "give either FILEs"),
        (["bpe-train", "text.txt", "--counts", "words.tsv"], "give either FILEs"),
        (["bpe-train", "none.txt", "--out", "n.json"], "none.txt does not exist"),
        (["bpe-train", "text.txt"], "tok.json exists already"),
        (["bpe-train", "text.txt", "--vocab-size", "256", "--special", "<s>", "--out", "n.json"],
         "give 257 or more"),
        (["bpe-train", "text.txt", "--special", "a", "--out", "n.json"], "single character"),
        (["bpe-train", "text.txt", "--pattern", "(", "--out", "n.json"], "pattern"),
        (["bpe-train", "text.txt", "--pattern", "(a+)+$", "--out", "n.json"], "pattern"),
        (["bpe-train", "text.txt", "--end-of-word", "attached", "--pattern", "gpt2",
          "--out", "n.json"], "--pattern and --ids are for bytes"),
        (["bpe-train", "--counts", "text.txt", "--out", "n.json"], "text.txt"),
        (["bpe-encode", "-t", "text.txt", "text.txt"], "text.txt"),
        (["bpe-encode", "-t", "none.json", "text.txt"], "none.json"),
        (["bpe-decode", "-t", "tok.json", "text.txt"], "is not a token id"),
        (["bpe-decode", "-t", "tok.json", "ids"], "token id 900000"),
        (["bpe-convert", "tok.json", "x.tiktoken", "--pattern", "gpt4"], "leave out --pattern"),
        (["bpe-stats", "-t", "tok.json", "none.txt"], "none.txt does not exist"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(here: Path, capsys, arguments, said) -> None:
    (here / "ids").write_text("72 900000", encoding="utf-8")
    before = sorted(path.name for path in here.iterdir())
    assert tt(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("tt: error: ") and err.count("\n") == 1 and said in err, err
    assert sorted(path.name for path in here.iterdir()) == before


def test_neighbours_in_the_view_differ_however_few_colours_there_are() -> None:
    from rich.color import Color, ColorSystem

    from cli.commands.bpe_view import BACKGROUNDS

    for system in (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD):
        shown = [Color.parse(name).downgrade(system) for name in BACKGROUNDS]
        for first, second in zip(shown, [*shown[1:], shown[0]], strict=True):
            assert (first.number, first.triplet) != (second.number, second.triplet)


def test_characters_that_a_table_lacks_may_be_left_out(here: Path, capsys) -> None:
    assert tt(["bpe-train", "--counts", "words.tsv", "--out", "w.json", "-q"]) == 0
    (here / "bold.txt").write_text("bold", encoding="utf-8")
    assert tt(["bpe-encode", "-t", "w.json", "bold.txt"]) == 2
    capsys.readouterr()
    assert tt(["bpe-encode", "-t", "w.json", "bold.txt", "--unknown", "skip"]) == 0
    assert capsys.readouterr().out.strip()


def test_what_hugging_face_reads_otherwise_is_told(here: Path, capsys) -> None:
    pattern = r" ?\w+|[^\w\s]+|\s+"
    assert tt(["bpe-train", "text.txt", "--pattern", pattern, "--out", "p.json"]) == 0
    assert r"Hugging Face reads \w in this pattern otherwise" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_refused_before_the_work(here: Path, capsys) -> None:
    (here / "folder").mkdir()
    for out in ("folder", "none/tok.json"):
        assert tt(["bpe-train", "text.txt", "--out", out, "--force", "--format", "minbpe"]) == 2
        assert "learned" not in capsys.readouterr().err
