"""Further names of a checkpoint's files in a run directory, and files that a crash left behind."""

from pathlib import Path

from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.pointer import CHECKPOINT_FILES, Pointer
from tinygrad_tf.storage.rebuild import checkpoint_directories

CONFIG = "config.json"
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")
MODEL = CHECKPOINT_FILES[0]


def links(run: Path, pointer: Pointer | None) -> list[tuple[Path, Path]]:
    """Return each further name that a file of the run should have, and that file."""
    if pointer is None:
        return []
    pairs = [(run / n, run / pointer.latest.dir / n) for n in CHECKPOINT_FILES]
    if pointer.best is not None:
        best = run / "best"
        for name in (CONFIG, *TOKENIZER_FILES):
            if (run / name).is_file():
                pairs.append((best / name, run / name))
        pairs.append((best / MODEL, run / pointer.best.dir / MODEL))
    return pairs


def stale_links(run: Path, pointer: Pointer | None) -> list[tuple[Path, Path]]:
    """Return the names that a crash left missing or at an older checkpoint.

    A file with other content was put there by a user, and is not replaced.
    """
    return [
        (path, source)
        for path, source in links(run, pointer)
        if source.exists()
        and not atomic.same_content(path, source)
        and (not path.exists() or _is_of_a_checkpoint(run, path))
    ]


def foreign_files(run: Path, pointer: Pointer) -> list[tuple[Path, Path]]:
    """Return each file of a user under the name of a checkpoint's file, and the latter."""
    return [
        (path, source)
        for path, source in links(run, pointer)
        if path.name in CHECKPOINT_FILES
        and path.exists()
        and source.exists()
        and not atomic.same_content(path, source)
        and not _is_of_a_checkpoint(run, path)
    ]


def leftovers(run: Path, pointer: Pointer | None) -> list[Path]:
    """Return half-written files of a crash, and checkpoints that the pointer does not name."""
    folders = (run, run / "checkpoints", run / "best")
    paths = [p for folder in folders if folder.is_dir() for p in folder.iterdir()]
    unneeded = [path for path in paths if atomic.is_temporary(path)]
    if pointer is not None:
        kept = {run / entry.dir for entry in pointer.entries}
        unneeded += [path for path in checkpoint_directories(run) if path not in kept]
    return unneeded


def _is_of_a_checkpoint(run: Path, path: Path) -> bool:
    return any(atomic.same_content(path, f / path.name) for f in checkpoint_directories(run))
