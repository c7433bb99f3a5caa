"""The speed of encoding a text, beside Hugging Face and tiktoken in the same run.

    python tests/bench/bpe_encode.py shakespeare.txt --vocab-size 4096

Hugging Face trains a tokenizer on the text, with GPT-2's pattern; all three encode the text as one
string by its tokens, in turns, in one thread, and must give the same ids. Times are those of the
processor. "First" is the first time that a fresh tokenizer sees the text; "again" is the median
of the later times. The ratios are printed; absolute times depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tinygrad_tf.text.bpe.formats import load_bpe
from tinygrad_tf.text.bpe.splitting import PATTERNS
from tinygrad_tf.text.bpe.table import spelled_bytes
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

Encode = Callable[[str], object]


def trained(text: str, vocab_size: int) -> Tokenizer:
    """A byte-level tokenizer of Hugging Face, trained on the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def makers(file: Path) -> dict[str, Callable[[], Encode]]:
    """For each side, what makes a fresh tokenizer of the file and returns how it encodes."""
    table = load_bpe(file)
    ranks = {spelled_bytes(token): rank for token, rank in table.vocab.items()}

    def hugging_face() -> Encode:
        tokenizer = Tokenizer.from_file(str(file))
        return lambda text: tokenizer.encode(text, add_special_tokens=False)

    def openai() -> Encode:
        return tiktoken.Encoding(
            "bench", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens={}
        ).encode_ordinary

    return {
        "tinygrad_tf": lambda: BPETokenizer(table).encode,
        "Hugging Face": hugging_face,
        "tiktoken": openai,
    }


def seconds(encode: Encode, text: str) -> float:
    begun = time.process_time()
    encode(text)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    text = asked.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "tokenizer.json"
        trained(text, asked.vocab_size).save(str(file))
        sides = makers(file)
        first: dict[str, list[float]] = {name: [] for name in sides}
        again: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(asked.rounds):
            for name, make in sides.items():
                encode = make()
                first[name].append(seconds(encode, text))
                again[name] += [seconds(encode, text) for _ in range(2)]
        ids = sides["tinygrad_tf"]()(text).tolist()
        if not ids == sides["Hugging Face"]()(text).ids == sides["tiktoken"]()(text):
            raise SystemExit("the ids differ")
    size = len(text.encode()) / 1e6
    print(f"{size:.2f} MB, {len(ids):,} tokens of {asked.vocab_size:,}, {asked.rounds} rounds")
    for title, times in (("first", first), ("again", again)):
        medians = {name: statistics.median(values) for name, values in times.items()}
        speeds = "  ".join(f"{name} {size / t:.1f} MB/s" for name, t in medians.items())
        ratios = ", ".join(
            f"{medians[name] / medians['tinygrad_tf']:.2f} x {name}"
            for name in medians
            if name != "tinygrad_tf"
        )
        print(f"{title}: {speeds}: {ratios}")


if __name__ == "__main__":
    main()
