"""Counting: the pieces of the whole text, however it is cut and whoever counts."""

import hashlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.bpe import drawn
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.bpe import counting, splitting, streaming
from tinygrad_tf.text.bpe import workers as worker_processes
from tinygrad_tf.text.bpe.counting import PieceCounts, count_pieces
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter

ROOT = Path(__file__).resolve().parents[3]
SPECIALS = ("<|end|>", "<|end|>!", "ab")


def naive(text: str, splitter: Splitter, specials: tuple[str, ...] = ()) -> Counter[bytes]:
    """Split the whole at the specials, the longest first, and count what lies between."""
    longest_first = sorted(specials, key=len, reverse=True)
    parts = re.split("|".join(map(re.escape, longest_first)), text) if specials else [text]
    pieces = (piece for part in parts for piece in splitter.split(part))
    return Counter(piece.encode("utf-8", "surrogateescape") for piece in pieces)


def agree(counted: PieceCounts, expected: Counter[bytes]) -> None:
    """Equal counts, in equal order."""
    assert counted.pieces == list(expected)
    assert counted.counts == list(expected.values())
    assert counted.total_bytes == sum(len(piece) * n for piece, n in expected.items())


def test_pieces_come_by_first_occurrence():
    counted = count_pieces(["b a ", "a b", "é\udcff"], Splitter("gpt2"))
    assert counted.pieces == [b"b", b" a", b" b\xc3\xa9", b"\xff"]
    assert counted.counts == [1, 2, 1, 1]
    assert counted.total_bytes == 1 + 4 + 4 + 1


def test_special_tokens_part_the_text_and_are_not_counted():
    agree(
        count_pieces(["ab<|endoftext|>ab"], Splitter("gpt2"), ["<|endoftext|>"]),
        Counter([b"ab"] * 2),
    )
    # "  " before a special token ends its text: two spaces, not a space and one that leads.
    agree(count_pieces(["a  <s>b"], Splitter("gpt2"), ["<s>"]), Counter([b"a", b"  ", b"b"]))


def test_nothing_counted_of_nothing():
    assert count_pieces([], Splitter("gpt4")) == PieceCounts([], [], 0)
    assert count_pieces(["", "<s>"], Splitter("gpt4"), ["<s>"]) == PieceCounts([], [], 0)


@pytest.mark.parametrize("block", [1, 7, 60])
@settings(max_examples=60)
@given(
    st.sampled_from([*PATTERNS, r"\w+"]),
    st.lists(st.one_of(drawn.texts, st.sampled_from(SPECIALS)), max_size=8).map("".join),
    st.integers(1, 9),
    st.sampled_from([(), SPECIALS, ("<|end|>",)]),
)
def test_chunks_and_blocks_change_nothing(block, pattern, text, chunk, specials):
    splitter = Splitter(pattern)
    chunks = [text[start : start + chunk] for start in range(0, len(text), chunk)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "_BLOCK", block)
        counted = count_pieces(chunks, splitter, specials)
    agree(counted, naive(text, splitter, specials))


def test_bytes_are_counted_as_their_text():
    data = "naïve 世界 ".encode() * 3 + b"\xff"
    chunks = [data[at : at + 1] for at in range(len(data))]
    agree(
        count_pieces(chunks, Splitter("gpt2")),
        naive("naïve 世界 " * 3 + "\udcff", Splitter("gpt2")),
    )


def test_surrogate_pairs_are_joined_and_lone_ones_refused():
    assert count_pieces(["\ud83d\udc4d"], Splitter("gpt2")).pieces == ["👍".encode()]
    with pytest.raises(InputError, match=r"lone surrogate \(U\+D83D\) at position 3"):
        count_pieces(["a b\ud83d"], Splitter("gpt2"))


def test_no_workers_cannot_count():
    with pytest.raises(InputError, match="0 workers"):
        count_pieces(["a"], Splitter("gpt2"), workers=0)


@pytest.fixture
def small_batches(monkeypatch):
    """So that a short text makes work for several processes."""
    monkeypatch.setattr(counting, "_BATCH", 1)
    monkeypatch.setattr(streaming, "_BLOCK", 5_000)
    monkeypatch.setattr(counting, "_CHUNK", 4_000)


@pytest.mark.parametrize(
    ("workers", "start"),
    [
        (1, "spawn"),
        (2, "fork"),
        *(pytest.param(n, "spawn", marks=pytest.mark.slow) for n in (2, 3)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_workers_change_nothing(small_batches, monkeypatch, workers, start):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"processes do not {start} here")
    monkeypatch.setattr(worker_processes, "_START", start)
    text = "<|end|>!".join(drawn.lines(60_000, seed=workers))
    splitter = Splitter("o200k")
    agree(
        count_pieces([text], splitter, SPECIALS, workers=workers), naive(text, splitter, SPECIALS)
    )
    assert not multiprocessing.active_children()


def test_own_patterns_are_counted_by_workers(small_batches):
    text = "\0".join(drawn.lines(30_000, seed=9))
    splitter = Splitter(r"\p{Lu}+|\s")
    agree(count_pieces([text], splitter, ["\0"], workers=2), naive(text, splitter, ("\0",)))


def test_a_worker_that_dies_is_told(small_batches):
    def chunks():
        while True:
            yield "some words, and more\n" * 1000
            for child in multiprocessing.active_children():
                child.kill()

    with pytest.raises(FailedError, match="process that counted pieces died") as caught:
        count_pieces(chunks(), Splitter("gpt2"), workers=2)
    assert caught.value.exit_code == 1
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_fault_of_the_text_ends_the_workers(small_batches):
    def chunks():
        yield "words " * 10_000
        raise InputError("the file went away")

    with pytest.raises(InputError, match="went away"):
        count_pieces(chunks(), Splitter("gpt2"), workers=2)
    assert not multiprocessing.active_children()
    with pytest.raises(InputError, match="lone surrogate"):
        count_pieces(["words " * 10_000 + "\ud83d"], Splitter("gpt2"), workers=2)


ENDLESS = """
import multiprocessing, sys
from tinygrad_tf.text.bpe import counting
from tinygrad_tf.text.bpe.splitting import Splitter

def chunks():
    for number in range(1_000_000):
        yield "some words, and more of them\\n" * 20_000
        pids = [child.pid for child in multiprocessing.active_children()]
        if number == 100:  # both have returned counts by now
            print(*pids, flush=True)

if __name__ == "__main__":
    counting._BATCH = 4
    counting.count_pieces(chunks(), Splitter("gpt2"), workers=2)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a zombie that nobody waits for has ended, too
    return not (
        stat.exists() and stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_no_process_is_left_behind(name, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        workers = list(map(int, process.stdout.readline().split()))
        assert len(workers) == 2
        if name == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
        else:
            process.kill()
        error = process.communicate(timeout=30)[1].decode()
    assert process.returncode != 0
    if name == "SIGINT":
        assert error.count("KeyboardInterrupt") == 1, error
    end = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, workers))


@pytest.mark.slow
def test_order_does_not_depend_on_hashes():
    program = (
        "import hashlib; from tinygrad_tf.text.bpe.counting import count_pieces;"
        "from tinygrad_tf.text.bpe.splitting import Splitter; from tests.text.bpe import drawn;"
        "counted = count_pieces([drawn.text(20_000, 1)], Splitter('gpt4'), ['a', 'b', '1']);"
        "print(hashlib.sha256(repr(counted).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    own = count_pieces([drawn.text(20_000, 1)], Splitter("gpt4"), ["a", "b", "1"])
    assert digests == {hashlib.sha256(repr(own).encode()).hexdigest().encode()}


def peak_bytes(chunks, splitter: Splitter) -> int:
    tracemalloc.start()
    try:
        count_pieces(chunks, splitter)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_text():
    page = "The same words, in line after line.\n" * 1000
    assert peak_bytes((page for _ in range(60)), Splitter("gpt4")) < 6_000_000
    assert peak_bytes([page * 60], Splitter("gpt4")) < 6_000_000


@pytest.mark.slow
def test_a_long_text_of_an_own_pattern_is_not_listed(monkeypatch):
    monkeypatch.setattr(splitting, "_LONG", 1000)
    text = "ab cd " * 30_000
    assert peak_bytes([text], Splitter(r"\w+")) < 5 * len(text)
