"""Run directories of tiny models whose every bit follows from the step."""

import json
import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tinygrad_tf.errors import TinygradError
from tinygrad_tf.storage.pointer import CHECKPOINT_FILES
from tinygrad_tf.storage.run_directory import RunDirectory, Which

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
CONFIG = {"model_type": "gpt2", "n_embd": 4, "tt": {"schema_version": 1}}


def model_at(step: int, size: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    weights = rng.standard_normal(size, np.float32)
    weights[:3] = np.array([np.nan, -0.0, 1e-42])
    return {"wte.weight": weights.reshape(2, -1), "step": np.array([step], np.float32)}


def save(run: RunDirectory, step: int, *, best: bool = False, size: int = 6) -> Path:
    model = model_at(step, size)
    optimizer = {f"{moment}.{name}": 2 * w for moment in "mv" for name, w in model.items()}
    state = {"step": step, "rng": {"state": 2**127 + step}, "loss": 0.1 + step}
    return run.save_checkpoint(step, model, optimizer, state, best=best)


def check(run: RunDirectory, which: Which = "latest") -> int:
    """Check that a checkpoint is of one step, bit for bit, and return the step."""
    model, optimizer, state = run.load_checkpoint(which)
    step = state["step"]
    assert state == {"step": step, "rng": {"state": 2**127 + step}, "loss": 0.1 + step}
    expected = model_at(step, model["wte.weight"].size)
    assert list(model) == list(expected)
    for name, weight in expected.items():
        assert model[name].dtype == np.float32
        assert model[name].tobytes() == weight.tobytes()
        for moment in "mv":
            assert optimizer[f"{moment}.{name}"].tobytes() == (2 * weight).tobytes()
    return int(step)


def check_tidy(run: RunDirectory) -> None:
    """Check that nothing half written is left, and that all names show what they should."""
    assert not [path for path in run.path.rglob("*") if ".tmp-" in path.name]
    steps = run.checkpoint_steps()
    if not steps:
        return
    kept = json.loads((run.path / "latest.json").read_text())
    dirs = {kept[role]["dir"] for role in ("latest", "previous", "best") if kept[role]}
    assert {f"checkpoints/{p.name}" for p in (run.path / "checkpoints").iterdir()} == dirs
    for name in CHECKPOINT_FILES:
        flat, source = run.path / name, run.path / kept["latest"]["dir"] / name
        assert flat.read_bytes() == source.read_bytes()
    if "best" in steps:
        best = RunDirectory.open(run.path / "best", on_warning=refuse_warning)
        assert best.load_model()["step"] == steps["best"]


def refuse_warning(message: str) -> None:
    raise AssertionError(message)


def contents(directory: Path) -> dict[str, bytes]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def in_child(action: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> int:
    """Run an action in a forked process; return 0 done, 1 TinygradError, 3 a bug, or its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the BLAS
        pid = os.fork()
    if pid == 0:
        status = 3
        try:
            prepare()
            action()
            status = 0
        except TinygradError as error:
            status = 1 if error.what and error.next else 3
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 1
    path.write_bytes(raw)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")
