"""A run's directory: its configuration, its checkpoints, its metrics.

    config.json                          the model's configuration, with a "tt" block
    checkpoints/000500/                  model.safetensors optimizer.safetensors trainer_state.json
    latest.json                          the pointer: the latest, previous and best checkpoint
    model.safetensors optimizer.safetensors trainer_state.json     the latest one's, by other names
    best/                                the best one's weights, as a model directory of its own
    metrics.jsonl                        one object a line

A checkpoint is written under a temporary name, forced to the disk and renamed; then the pointer
moves, in one step. What follows (other names, removal of old checkpoints) is done again by the
next one to open the run, where a crash cut it short. So a run is whole at any time.
A pointer that was lost or damaged is rebuilt from the checkpoints.
"""

import errno
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from numpy.typing import NDArray

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.storage import atomic, strict_json
from tinygrad_tf.storage.links import (
    CONFIG,
    TOKENIZER_FILES,
    foreign_files,
    leftovers,
    links,
    stale_links,
)
from tinygrad_tf.storage.lock import LOCK_NAME, RunLock
from tinygrad_tf.storage.pointer import (
    CHECKPOINT_FILES,
    POINTER,
    Entry,
    Pointer,
    check_schema,
    write_pointer,
)
from tinygrad_tf.storage.rebuild import PointerFile, checkpoint_directories
from tinygrad_tf.storage.safetensors import load_safetensors, serialise

METRICS = "metrics.jsonl"
MODEL, OPTIMIZER, STATE = CHECKPOINT_FILES
_RUN_FILES = (POINTER, *CHECKPOINT_FILES, METRICS, "samples.jsonl", *TOKENIZER_FILES, CONFIG)

Arrays = Mapping[str, NDArray[Any]]
Which = Literal["latest", "best"]
T = TypeVar("T")


class Checkpoint(NamedTuple):
    """The weights, the optimizer's arrays and the trainer's state at one step."""

    model: dict[str, NDArray[Any]]
    optimizer: dict[str, NDArray[Any]]
    state: dict[str, Any]


class RunDirectory:
    """A directory that holds one training run; see `create` and `open`.

    `on_warning` is called with one line for each problem; by default it is a Python warning.
    """

    def __init__(self, path: atomic.PathLike, on_warning: Callable[[str], object] = warnings.warn):
        self.path = Path(path)
        self.on_warning = on_warning
        self._locked = False
        self._damaged: set[str] = set()
        self._pointer_file = PointerFile(self.path)

    @classmethod
    def create(
        cls,
        path: atomic.PathLike,
        *,
        force: bool = False,
        data: Path | None = None,
        on_warning: Callable[[str], object] = warnings.warn,
    ) -> Self:
        """Make the directory of a new run; with `force` an earlier run there is removed.

        data: a finished directory, under a temporary name within `path`, that becomes data/.
        Only files that a run writes are removed, and only from a directory that is a run.
        Raises InputError where something else is there, FailedError where it cannot be made.
        """
        run = cls(path, on_warning)
        occupied = run._make()
        if occupied and not force:
            raise InputError(
                f"{run.path} exists and is not empty",
                f"add `force=True` to replace the run in it, or `resume={run.path}` to continue it",
            )
        if occupied and not run._is_ours():
            raise InputError(
                f"{run.path} is not empty and holds no run of this program, so it is left alone",
                "choose another directory",
            )
        with RunLock(run.path):
            run._clear(data)
            if data is not None:
                with atomic.writing(run.path / "data"):
                    if (run.path / "data").exists():
                        atomic.remove(run.path / "data")
                    atomic.publish_directory(data, run.path / "data")
        return run

    def _make(self) -> bool:
        """Make the directory where there is none, and return whether anything is in it."""
        with atomic.writing(self.path):
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                present = (p for p in self.path.iterdir() if not atomic.is_temporary(p))
                return any(path.name != LOCK_NAME for path in present)
            except (FileExistsError, NotADirectoryError):
                raise InputError(
                    f"{self.path} cannot be a run's directory: a file is in its way",
                    "choose another directory",
                ) from None

    @classmethod
    def open(
        cls, path: atomic.PathLike, *, on_warning: Callable[[str], object] = warnings.warn
    ) -> Self:
        """Open a run, or any directory with a config.json, and complete what a crash left undone.

        Nothing is changed while another process is writing. Raises InputError where there is no
        run, where a newer version of this program wrote it, or where its pointer is damaged and
        there is no whole checkpoint to rebuild it from.
        """
        run = cls(path, on_warning)
        with atomic.reading(run.path):
            if not any((run.path / name).exists() for name in (CONFIG, POINTER, LOCK_NAME)):
                fault = f"has neither {CONFIG} nor {POINTER}"
                if not run.path.is_dir():
                    fault = "is not a directory" if run.path.exists() else "does not exist"
                raise InputError(f"{run.path} {fault}", "give the directory of a run")
            pointer = run._pointer()
            rebuilt = run._pointer_file.is_rebuilt
            if rebuilt or leftovers(run.path, pointer) or stale_links(run.path, pointer):
                with suppress(FailedError), run.lock(wait=0):
                    pass  # taking the lock completes the run
        return run

    @contextmanager
    def lock(self, *, wait: float = 0.5) -> Iterator[None]:
        """Lock the run for writing, and complete what a crash left undone; may be nested.

        Raises FailedError naming the process that holds it already.
        """
        if self._locked:
            yield
            return
        with RunLock(self.path, wait=wait):
            self._locked = True
            try:
                pointer = self._pointer()
                if pointer is not None and self._pointer_file.is_rebuilt:
                    write_pointer(self.path / POINTER, pointer)
                self._tidy(pointer)
                yield
            finally:
                self._locked = False

    # Configuration and metrics

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write config.json; raises FailedError, InputError for what is not JSON."""
        strict_json.write_json(self.path / CONFIG, dict(config))

    def read_config(self) -> dict[str, Any]:
        """Read config.json; raises InputError where it is missing, damaged or newer than this."""
        config = strict_json.read_json(self.path / CONFIG)
        block = config.get("tt")
        if isinstance(block, dict) and "schema_version" in block:
            check_schema(self.path / CONFIG, block["schema_version"])
        return config

    def append_metrics(self, record: Mapping[str, object]) -> None:
        """Append one object to metrics.jsonl; NaN and infinities become null."""
        with atomic.writing(self.path / METRICS):
            strict_json.append_json_line(self.path / METRICS, record)

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read metrics.jsonl, without a last line that a crash cut off."""
        return strict_json.read_json_lines(self.path / METRICS)

    def truncate_metrics(self, step: int) -> None:
        """Drop the metrics of later steps than `step`, and a line that a crash cut off."""

        def is_kept(record: dict[str, Any]) -> bool:
            at = record.get("step") or 0
            return isinstance(at, int) and at <= step

        strict_json.keep_json_lines(self.path / METRICS, is_kept)

    # Checkpoints

    def save_checkpoint(
        self,
        step: int,
        model: Arrays,
        optimizer: Arrays,
        state: Mapping[str, Any],
        best: bool = False,
    ) -> Path:
        """Save a checkpoint, make it the latest (and the best) one, and return its directory.

        Keeps the latest, the one before it and the best. Raises FailedError where it cannot be
        written: the run is then as it was before; or where a directory has the place of one of
        its other names: the checkpoint is then saved. `state` comes back from JSON: its keys
        should be strings, its sequences lists, its floats finite (InputError).
        """
        if step < 0:
            raise InputError(f"a checkpoint's step cannot be {step}", "count steps from 0")
        with self.lock():
            old = self._pointer()
            again = f"then go on with `resume={self.path}`"
            intact = "nothing had been saved yet"
            if old is not None:
                intact = f"the checkpoint of step {old.latest.step} is intact"
            with atomic.writing(self.path / f"checkpoints/{step:06d}", intact, again=again):
                entry = self._publish(step, model, optimizer, state)
            old_best = old.best if old is not None else None
            new = Pointer(entry, self._to_keep(old), entry if best else old_best)
            write_pointer(self.path / POINTER, new, again=again)
            self._require_no_directory_in_the_way(new, again)
            self._tidy(new, after_save=True)
            return self.path / entry.dir

    def load_checkpoint(self, which: Which = "latest") -> Checkpoint:
        """Load a checkpoint whose every byte is verified.

        Where the latest is damaged the one before it is loaded, with a warning.
        Raises InputError where there is none, or none that is whole.
        """

        def read(entry: Entry) -> Checkpoint:
            return Checkpoint(
                self._load_arrays(entry, MODEL),
                self._load_arrays(entry, OPTIMIZER),
                strict_json.read_json(self._file(entry, STATE), sha256=entry.sha256[STATE]),
            )

        return self._load(which, read)

    def load_model(self, which: Which = "latest") -> dict[str, NDArray[Any]]:
        """Load the weights alone, verified like those of `load_checkpoint`.

        In a directory without checkpoints, such as best/, they are those of model.safetensors.
        """
        if self._pointer() is None and (self.path / MODEL).exists():
            return load_safetensors(self.path / MODEL)
        return self._load(which, lambda entry: self._load_arrays(entry, MODEL))

    def checkpoint_steps(self) -> dict[str, int]:
        """Return the steps of the "latest", "previous" and "best" checkpoints there are."""
        pointer = self._pointer()
        if pointer is None:
            return {}
        named = {"latest": pointer.latest, "previous": pointer.previous, "best": pointer.best}
        return {name: entry.step for name, entry in named.items() if entry is not None}

    # Loading

    def _load_arrays(self, entry: Entry, name: str) -> dict[str, NDArray[Any]]:
        return load_safetensors(self._file(entry, name), sha256=entry.sha256[name])

    def _file(self, entry: Entry, name: str) -> Path:
        """Return a checkpoint's file; its other name serves where checkpoints/ was left behind."""
        path = self.path / entry.dir / name
        return path if path.exists() or not (self.path / name).exists() else self.path / name

    def _load(self, which: Which, read: Callable[[Entry], T]) -> T:
        pointer = self._pointer()
        if pointer is None:
            raise InputError(f"{self.path} holds no checkpoint yet", "train it until it saves one")
        candidates = {"latest": [pointer.latest, pointer.previous], "best": [pointer.best]}[which]
        faults: list[InputError] = []
        for entry in candidates:
            if entry is None:
                continue
            try:
                result = read(entry)
            except InputError as fault:
                if self._pointer() != pointer:  # another process has saved, and removed this one
                    return self._load(which, read)
                self._damaged.add(entry.dir)
                faults.append(fault)
                continue
            for earlier in faults:
                self.on_warning(f"{earlier.what}; the checkpoint of step {entry.step} is used")
            for path, source in foreign_files(self.path, pointer):
                self.on_warning(f"{path} is not what the run saved; {source} is used instead")
            return result
        if not faults:
            raise InputError(f"{self.path} has no checkpoint marked best yet", "use the latest")
        remedy = "restore it from a copy, or train again with `force=True`"
        raise InputError(faults[0].what, remedy) from faults[0]

    # Saving

    def _publish(
        self, step: int, model: Arrays, optimizer: Arrays, state: Mapping[str, Any]
    ) -> Entry:
        """Write a checkpoint's files and give their directory its name; raises OSError."""
        directory = self._unused_directory(step)
        temporary = atomic.temporary_beside(directory)
        try:
            temporary.mkdir(parents=True)
            text = strict_json.to_json(dict(state), indent=2) + "\n"
            sha256 = {
                MODEL: atomic.write_synced(temporary / MODEL, serialise(model)),
                OPTIMIZER: atomic.write_synced(temporary / OPTIMIZER, serialise(optimizer)),
                STATE: atomic.write_synced(temporary / STATE, text.encode("ascii")),
            }
            atomic.publish_directory(temporary, directory)
        except BaseException:
            with suppress(OSError):
                atomic.remove(temporary)
            raise
        return Entry(f"checkpoints/{directory.name}", sha256)

    def _unused_directory(self, step: int) -> Path:
        """Return a free name: a step may be saved again while its checkpoint is in use."""
        directory = self.path / "checkpoints" / f"{step:06d}"
        again = 1
        while directory.exists():
            again += 1
            directory = directory.with_name(f"{step:06d}-{again}")
        return directory

    def _to_keep(self, old: Pointer | None) -> Entry | None:
        """Return the checkpoint to fall back to: the newest that is not known to be damaged."""
        candidates = [old.latest, old.previous] if old else []
        return next((e for e in candidates if e and e.dir not in self._damaged), None)

    # After a save or a crash

    def _tidy(self, pointer: Pointer | None, *, after_save: bool = False) -> None:
        """Do what follows a move of the pointer; checkpoints are safe, so it may fail."""
        try:
            names = links if after_save else stale_links
            for path, source in names(self.path, pointer):
                path.parent.mkdir(exist_ok=True)
                atomic.link_atomically(source, path)
            for path in leftovers(self.path, pointer):
                atomic.remove(path)
        except OSError as error:
            self.on_warning(
                f"{self.path} is whole, but could not be tidied up: {atomic.in_short(error)}"
            )

    def _require_no_directory_in_the_way(self, pointer: Pointer, again: str) -> None:
        """Raise FailedError where other programs would never find the checkpoint just saved."""
        for path, _ in links(self.path, pointer):
            with atomic.writing(
                path, f"the checkpoint of step {pointer.latest.step} is saved", again=again
            ):
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "Is a directory")

    # Replacing an earlier run

    def _is_ours(self) -> bool:
        if (self.path / LOCK_NAME).exists():
            return True
        try:
            return "tt" in strict_json.read_json(self.path / CONFIG)
        except InputError:
            return False

    def _clear(self, kept: Path | None) -> None:
        """Remove what a run writes here but `kept`, the pointer first; data/ stays."""
        best = [self.path / "best" / n for n in (CONFIG, MODEL, *TOKENIZER_FILES)]
        files = [self.path / name for name in _RUN_FILES] + best
        with atomic.writing(self.path, "files of the earlier run may remain"):
            for path in [*files, *leftovers(self.path, None), *checkpoint_directories(self.path)]:
                if path.exists() and path != kept:
                    atomic.remove(path)
            for folder in (self.path / "checkpoints", self.path / "best"):
                with suppress(OSError):
                    folder.rmdir()  # where nobody put anything else

    def _pointer(self) -> Pointer | None:
        return self._pointer_file.read(self.on_warning)
