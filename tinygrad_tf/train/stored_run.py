"""A run that a directory holds: its recipe, its files and its weights, each of them checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train.integrity import intact_block
from tinygrad_tf.train.recipe import Recipe

Files = Mapping[str, bytes]

DATA = "data/"  # files that only training needs are named so


@dataclass(frozen=True)
class StoredRun:
    """A run's directory, its recipe, its files by name, and the "tt" block of its config.json."""

    directory: RunDirectory
    recipe: Recipe
    files: Files
    block: dict[str, Any]

    @classmethod
    def open(
        cls,
        run_dir: str | Path,
        task: str,
        *,
        data: bool = False,
        token_files: bool = False,
        on_warning: Callable[[str], object] | None = None,
    ) -> StoredRun:
        """Open a run of that task; with `data`, read also the files that only training needs.

        token_files: these are token files, which stay on the disk, and are made again from the
        text where they are missing. Raises InputError where the directory is no such run, or a
        file is not as it was when the run began.
        """
        settings = {} if on_warning is None else {"on_warning": on_warning}
        directory = RunDirectory.open(run_dir, **settings)
        block = intact_block(directory, task, data=data, token_files=token_files)
        files = {}
        for name in block["files_sha256"]:
            if not name.startswith(DATA) or (data and not token_files):
                with atomic.reading(directory.path / name):
                    files[name] = (directory.path / name).read_bytes()
        return cls(directory, Recipe.from_dict(block["experiment"]), files, block)

    def weights(self, which: str = "best") -> dict[str, Any]:
        """Load the weights of the checkpoint that is best by validation, or of the "last"."""
        if which not in ("last", "best"):
            raise InputError(f"there are no weights {which!r} of a run", "choose last or best")
        best = which == "best" and "best" in self.directory.checkpoint_steps()
        return self.directory.load_model("best" if best else "latest")
