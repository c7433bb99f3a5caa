"""The time of training byte pair encodings, beside Hugging Face and minbpe's way, in one run.

    python tests/bench/bpe.py shakespeare.txt --vocab-size 4096
    python tests/bench/bpe.py textbook.txt --vocab-size 512 --naive
    python tests/bench/bpe.py shakespeare.txt textbook.txt --large 200 --vocab-size 8192 --workers 2

All count the pieces of the whole text and learn from them; reading and splitting are included.
Each measurement is a process of its own, in turns, so that drift hits all alike; importing is
not timed. Hugging Face runs with the threads that it chooses and with one; it is given the text
as one sequence, which trains as we do, and by lines, which is its quickest and learns no pieces
that span lines. Memory is the peak of the process and its workers. `--large` repeats the texts
to so many MB, a share of the letters drawn anew each time, so that there are many distinct words.
Encoding is measured by bpe_encode.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np


def ours(path: Path, vocab_size: int, workers: int) -> Callable[[], int]:
    from tinygrad_tf.text.bpe.counting import count_pieces
    from tinygrad_tf.text.bpe.splitting import Splitter
    from tinygrad_tf.text.bpe.training import train_bpe

    def train() -> int:
        with path.open(encoding="utf-8", newline="") as file:
            chunks = iter(lambda: file.read(1 << 22), "")
            counted = count_pieces(chunks, Splitter("gpt2"), workers=workers)
        return len(train_bpe(counted, vocab_size=vocab_size).merges)

    return train


def hugging_face(path: Path, vocab_size: int, lines: bool) -> Callable[[], int]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=level.alphabet(), show_progress=False
    )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = level

    def train() -> int:
        if lines:
            tokenizer.train([str(path)], trainer)
        else:
            tokenizer.train_from_iterator([path.read_text(encoding="utf-8")], trainer)
        return tokenizer.get_vocab_size() - 256

    return train


def naive(path: Path, vocab_size: int) -> Callable[[], int]:
    """minbpe's way: for each merge, count every pair of every piece, then rewrite every piece."""
    from tinygrad_tf.text.bpe.splitting import Splitter

    def train() -> int:
        text = path.read_text(encoding="utf-8")
        pieces = [list(piece.encode()) for piece in Splitter("gpt2").split(text)]
        for new in range(256, vocab_size):
            counts: dict[tuple[int, int], int] = {}
            for ids in pieces:
                for pair in pairwise(ids):
                    counts[pair] = counts.get(pair, 0) + 1
            best = max(counts, key=counts.__getitem__)
            pieces = [replace(ids, best, new) for ids in pieces]
        return vocab_size - 256

    return train


def replace(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    replaced, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] and i < len(ids) - 1 and ids[i + 1] == pair[1]:
            replaced.append(new)
            i += 2
        else:
            replaced.append(ids[i])
            i += 1
    return replaced


def measure(train: Callable[[], int], workers: int) -> dict[str, float]:
    """Seconds, peak MB and merges of one call, in the process that is asked to be timed."""
    import resource  # not on Windows

    begun = time.perf_counter()
    merges = train()
    seconds = time.perf_counter() - begun
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    per_mb = 2**20 if sys.platform == "darwin" else 2**10
    peak = (own + workers * largest_child) / per_mb
    return {"seconds": seconds, "peak": peak, "merges": merges}


def in_a_process(arguments: list[str], threads: str) -> dict[str, float]:
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": threads}
    if not threads:
        del env["RAYON_NUM_THREADS"]
    command = [sys.executable, __file__, *arguments]
    out = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    measured: dict[str, float] = json.loads(out)
    return measured


def enlarge(texts: list[Path], megabytes: int, edits: float, into: Path) -> Path:
    """Write the texts again and again, that share of the letters drawn anew each time."""
    rng = np.random.default_rng(0)
    text = np.frombuffer(b"".join(path.read_bytes() for path in texts), dtype=np.uint8)
    letters = np.array([m.start() for m in re.finditer(rb"[A-Za-z]", text.tobytes())])
    path = into / "large.txt"
    with path.open("wb") as file:
        while file.tell() < megabytes * 1_000_000:
            drawn, where = text.copy(), rng.choice(letters, int(len(letters) * edits))
            drawn[where] = rng.integers(ord("a"), ord("z") + 1, len(where))
            file.write(drawn.tobytes())
    return path


def compare(path: Path, vocab_size: int, workers: int, rounds: int, with_naive: bool) -> None:
    common = ["--vocab-size", str(vocab_size), "--workers", str(workers), str(path), "--only"]
    runs = {
        f"tinygrad_tf, {workers} worker{'s' * (workers > 1)}": ("ours", ""),
        "Hugging Face": ("whole", ""),
        "Hugging Face, 1 thread": ("whole", "1"),
        "Hugging Face by lines": ("lines", ""),
        "Hugging Face by lines, 1 thread": ("lines", "1"),
    }
    if workers > 1:
        runs = {name: run for name, run in runs.items() if run[1] != "1"}
    if with_naive:
        runs = {**dict([next(iter(runs.items()))]), "minbpe's way": ("naive", "")}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (who, threads) in runs.items():
            if who != "naive" or not measured[name]:
                measured[name].append(in_a_process([*common, who], threads))
    megabytes = path.stat().st_size / 1e6
    print(f"{path.name}, {megabytes:.1f} MB, to {vocab_size:,} tokens; medians of {rounds}")
    base = statistics.median(m["seconds"] for m in next(iter(measured.values())))
    for name, results in measured.items():
        seconds = statistics.median(m["seconds"] for m in results)
        peak, merges = max(m["peak"] for m in results), int(results[0]["merges"])
        print(f"{name:32} {seconds:9.3f} s  ratio {seconds / base:7.2f}  peak {peak:6.0f} MB")
        if merges != vocab_size - 256:
            print(f"{'':32} only {merges:,} merges")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", type=int, metavar="MB")
    parser.add_argument("--edits", type=float, default=0.01, help="share of letters, of --large")
    parser.add_argument("--naive", action="store_true", help="beside minbpe's way only")
    parser.add_argument("--only", choices=["ours", "whole", "lines", "naive"], help="as JSON")
    asked = parser.parse_args()
    path, size = asked.texts[0], asked.vocab_size
    if asked.only == "ours":
        print(json.dumps(measure(ours(path, size, asked.workers), asked.workers)))
    elif asked.only == "naive":
        print(json.dumps(measure(naive(path, size), 0)))
    elif asked.only:
        print(json.dumps(measure(hugging_face(path, size, asked.only == "lines"), 0)))
    elif asked.large:
        with tempfile.TemporaryDirectory() as into:
            large = enlarge(asked.texts, asked.large, asked.edits, Path(into))
            compare(large, size, asked.workers, asked.rounds, asked.naive)
    else:
        for text in asked.texts:
            compare(text, size, asked.workers, asked.rounds, asked.naive)


if __name__ == "__main__":
    main()
