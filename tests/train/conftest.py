"""A text, and runs so small that a test can train dozens of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "then", "a", "dog", "ran", "to", "see")


def write_text(path: Path, words: int = 300, *, lines: bool = False) -> Path:
    """A file of random words, always the same ones; with `lines`, one to four of them a line."""
    rng = np.random.default_rng(1)
    chosen = [str(word) for word in rng.choice(WORDS, words)]
    if lines:
        ends = rng.integers(1, 5, words).cumsum()
        pieces = [chosen[a:b] for a, b in zip([0, *ends], ends, strict=False) if a < words]
        text = "".join(" ".join(piece) + "\n" for piece in pieces)
    else:
        text = " ".join(chosen) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def tiny_options(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Options of a tiny run in `tmp_path / "run"`; keywords change them."""

    def options(**changes: Any) -> dict[str, Any]:
        lines = changes.get("lines", False)
        if "texts" not in changes:
            changes["texts"] = (write_text(tmp_path / "text.txt", lines=lines),)
        tiny = {
            "out": tmp_path / "run",
            "n_layer": 1,
            "n_head": 2,
            "n_embd": 16,
            "block_size": 8,
            "batch_size": 4,
            "steps": 20,
            "eval_every": 6,
            "checkpoint_every": 4,
            "warmup": 2,
            "learning_rate": 1e-2,
        }
        return dict(**{**tiny, **changes})

    return options
