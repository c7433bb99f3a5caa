"""Load a user's function by its name, `module:function`, and draw inputs for it."""

from __future__ import annotations

import difflib
import importlib
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.checking.functions import arity, name_of
from tinygrad_tf.engine.graph import Fused
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

SHAPE = (2, 3)  # of every input by default
# The largest number of entries for each method: measured one by one, or all together.
MOST = {"central": 10_000, "complex": 10_000, "directional": 1_000_000}
CELLS = 64  # a range is divided into at least this number of cells


@contextmanager
def importing_from(directory: Path) -> Iterator[None]:
    """A context in which modules of the directory can be imported."""
    path = str(directory)
    sys.path.insert(0, path)
    importlib.invalidate_caches()  # a module may have been written a moment ago
    try:
        yield
    finally:
        with suppress(ValueError):  # the module may have changed the path itself
            sys.path.remove(path)


def load(text: str) -> Any:
    """Import the function or op named `module:function`; raises InputError where there is none."""
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise InputError(
            f"{text!r} does not name a function", 'write "module:function", as in mymodule:softsign'
        )
    module = _module(module_name)
    f = module
    for part in name.split("."):
        if not hasattr(f, part):
            near = difflib.get_close_matches(part, dir(f), 1)
            own = [
                n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))
            ]
            remedy = f"did you mean {near[0]}?" if near else f"it has {', '.join(own) or 'none'}"
            raise InputError(f"{module_name} has no function {name!r}", remedy)
        f = getattr(f, part)
    if not callable(f) and not isinstance(f, Fused):
        raise InputError(
            f"{text} is a {type(f).__name__}, not a function", "name a function of arrays"
        )
    return f


def _module(name: str) -> Any:
    if name.endswith(".py") or "/" in name:
        raise InputError(
            f"{name!r} is a file, not a module",
            f'go to its directory and write "{Path(name).stem}:function"',
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name and name.split(".")[: fault.name.count(".") + 1] == fault.name.split("."):
            raise InputError(
                f"there is no module {fault.name!r} here or among the installed ones",
                f"run from the directory that holds {name.split('.')[0]}.py",
            ) from fault
        raise InputError(f"{name} imports {fault.name}, which is missing", "install it") from fault
    except (Exception, SystemExit) as fault:  # the module may raise anything when it runs
        raise InputError(
            f"importing {name} raised {type(fault).__name__}: {fault}", "correct the module first"
        ) from fault


def draw_inputs(
    f: Any,
    shapes: Sequence[tuple[int, ...]] = (),
    low: float = -2.0,
    high: float = 2.0,
    seed: int = 0,
    *,
    most: int = MOST["central"],
) -> list[Array]:
    """Draw small arrays for the parameters of f, with entries strictly between low and high.

    One array for each parameter without a default (for each input, if f is an op), of shape (2, 3),
    or one of each shape in `shapes`, in their order. No two entries are equal, and from -2 to 2
    none is 0. Raises InputError where shapes and parameters do not match, and where all arrays
    together have no entries or more than `most`.
    """
    if not -np.inf < low < high < np.inf:
        raise InputError(
            f"the range from {low:g} to {high:g} holds no numbers", "give the lower end first"
        )
    least, greatest = arity(f)
    chosen = list(shapes) or [SHAPE] * least
    if not chosen:
        raise InputError(
            f"{name_of(f)} has no parameters to draw", "give `shapes` once per argument"
        )
    if not least <= len(chosen) <= greatest:
        raise InputError(
            f"{name_of(f)} takes {least} array{'s' * (least != 1)}; shapes given: {len(chosen)}",
            "give `shapes` once per parameter",
        )
    sizes = [math.prod(shape) for shape in chosen]
    total = sum(sizes)
    if total == 0:
        raise InputError(
            "there is nothing to check: the inputs have no entries", "give `shapes=2,3`"
        )
    if total > most:
        smaller = "give smaller shapes"
        if most < MOST["directional"]:
            smaller += ", or `method=directional`"
        raise InputError(f"too many entries: {total:,}, the limit is {most:,}", smaller)
    cells = max(CELLS, total)
    rng = np.random.default_rng(seed)
    places = (2 * rng.permutation(cells)[:total] + 1) / (2 * cells)
    parts = np.split(low + (high - low) * places, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, chosen, strict=True)]
