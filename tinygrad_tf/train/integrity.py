"""Digests of the files that a run began with, so that no change of them goes unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory

TOKEN_INDEX = "data/tokens.json"


def config_sha256(config: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of config.json without its own digest field."""
    block = {n: v for n, v in config["tt"].items() if n != "sha256"}
    canonical = json.dumps({**config, "tt": block}, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def intact_block(
    directory: RunDirectory, task: str, *, data: bool = True, token_files: bool = False
) -> dict[str, Any]:
    """Read the "tt" block of config.json; InputError unless every file is as the run began.

    task: the name of the task that the run must be of. Without `data` the files that only
    training needs are not checked. token_files: these are made again from the text where they
    are missing.
    """
    path = directory.path
    config = directory.read_config()
    block = config.get("tt")
    if not isinstance(block, dict) or "experiment" not in block:
        raise InputError(f"{path} is not a run of this program", "start a new run")
    if block.get("sha256") != config_sha256(config):
        raise _altered(path / "config.json")
    own = task_name(block)
    if own != task:
        raise InputError(
            f"{path} is a run of the task {own}, not of the task {task}",
            "use the commands of its own task",
        )
    missing = token_files and not (path / TOKEN_INDEX).exists()
    for name, digest in block["files_sha256"].items():
        is_data = name.startswith("data/")
        if is_data and (missing or not data):
            continue
        if atomic.sha256_of(path / name) != digest:
            raise _altered(path / name, path / "data" if is_data and token_files else None)
    return block


def task_name(block: Mapping[str, Any]) -> str:
    """Return the name of the task of a run's "tt" block; a language model's run names none."""
    name: str = block.get("task", "gpt")
    return name


def _altered(file: Path, remade: Path | None = None) -> InputError:
    return InputError(
        f"{file} has been altered or damaged since the run began",
        f"remove {remade}, which is made again from the text"
        if remade
        else "restore it from a copy, or start a new run with another `out`",
    )
