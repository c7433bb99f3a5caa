"""Digests of what a run began with, so that nothing of it changes unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory


def digests(path: Path, data: Path) -> dict[str, str | None]:
    """The digests of the files that a run is furnished with, by their names in it."""
    files = [path / "tokenizer.json", *sorted(data.iterdir())]
    return {file.relative_to(path).as_posix(): atomic.sha256_of(file) for file in files}


def seal(config: Mapping[str, Any]) -> str:
    """The digest that a config.json holds of all else in it, lest settings change unseen."""
    unsealed = {n: v for n, v in config["tt"].items() if n != "sha256"}
    canonical = json.dumps({**config, "tt": unsealed}, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def intact_block(
    directory: RunDirectory, task: str = "gpt", *, data: bool = True
) -> dict[str, Any]:
    """The "tt" block of config.json; InputError unless all the run began with is as it was.

    task: what the run must have been for; its command is `tt train-<task>`. Without `data` what
    only training needs is not looked at.
    """
    path = directory.path
    config = directory.read_config()
    block = config.get("tt")
    if not isinstance(block, dict) or "experiment" not in block:
        raise InputError(f"{path} was not trained by tt", "start a run of its own")
    if block.get("sha256") != seal(config):
        raise _altered(path / "config.json")
    own = block.get("task", "gpt")
    if own != task:
        raise InputError(
            f"{path} is a run of tt train-{own}, not of tt train-{task}",
            "give it to the commands of its own kind",
        )
    # Tokens, unlike examples, are made again where they are missing.
    rebuilt = task == "gpt" and not (path / "data" / "tokens.json").exists()
    unneeded = rebuilt or not data
    for name, digest in block["files_sha256"].items():
        is_data = name.startswith("data/")
        if atomic.sha256_of(path / name) != digest and not (is_data and unneeded):
            raise _altered(path / name, path / "data" if is_data and task == "gpt" else None)
    return block


def _altered(file: Path, remade: Path | None = None) -> InputError:
    return InputError(
        f"{file} has been altered or damaged since the run began",
        f"remove {remade}, which is made again from the text"
        if remade
        else "restore it from a copy, or start a new run with another --out",
    )
