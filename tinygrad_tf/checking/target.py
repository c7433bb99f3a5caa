"""A function of the user's, named as `module:function`, and inputs for it."""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.checking.subjects import name_of
from tinygrad_tf.engine.graph import Fused, Op
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

SHAPE = (2, 3)  # of inputs of which nothing is said
# Entries that each method can measure in reasonable time: all of them one by one, or together.
MOST = {"central": 10_000, "complex": 10_000, "directional": 1_000_000}
CELLS = 64  # a range is cut into at least so many parts


@contextmanager
def importing_from(directory: Path) -> Iterator[None]:
    """Within this context, modules in the directory can be imported."""
    path = str(directory)
    sys.path.insert(0, path)
    importlib.invalidate_caches()  # a module may have been written a moment ago
    try:
        yield
    finally:
        with suppress(ValueError):  # the module may have changed the path itself
            sys.path.remove(path)


def load(text: str) -> Any:
    """The function or op that `module:function` names; raises InputError where there is none."""
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise InputError(
            f"{text!r} does not name a function", 'write "module:function", as in mymodule:softsign'
        )
    module = _module(module_name)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 1)
            own = [
                n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))
            ]
            remedy = f"did you mean {near[0]}?" if near else f"it has {', '.join(own) or 'none'}"
            raise InputError(f"{module_name} has no function {name!r}", remedy)
        found = getattr(found, part)
    if not callable(found) and not isinstance(found, Fused):
        raise InputError(
            f"{text} is a {type(found).__name__}, not a function", "name a function of arrays"
        )
    return found


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
    except (Exception, SystemExit) as fault:  # whatever the user's module does when it is run
        raise InputError(
            f"importing {name} raised {type(fault).__name__}: {fault}", "mend the module first"
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
    """Small arrays for the parameters of f, entries strictly between low and high.

    One array for each parameter without a default (for each input, if f is an op), of shape (2, 3),
    or of the shapes given, in their order. No two entries are equal, and from -2 to 2 none is 0.
    Raises InputError where shapes and parameters do not match, and where they have no entries
    or more than `most` together.
    """
    if not -np.inf < low < high < np.inf:
        raise InputError(
            f"the range from {low:g} to {high:g} holds no numbers", "give the lower end first"
        )
    least, greatest = _arity(f)
    chosen = list(shapes) or [SHAPE] * least
    if not chosen:
        raise InputError(f"{name_of(f)} has no parameters to draw", "say --shape once per argument")
    if not least <= len(chosen) <= greatest:
        raise InputError(
            f"{name_of(f)} takes {least} array{'s' * (least != 1)}; shapes given: {len(chosen)}",
            "give one --shape for each parameter",
        )
    sizes = [math.prod(shape) for shape in chosen]
    total = sum(sizes)
    if total == 0:
        raise InputError("there is nothing to check: the inputs have no entries", "say --shape 2,3")
    if total > most:
        smaller = "give smaller shapes"
        if most < MOST["directional"]:
            smaller += ", or --method directional"
        raise InputError(f"too many entries: {total:,}, the limit is {most:,}", smaller)
    cells = max(CELLS, total)
    rng = np.random.default_rng(seed)
    places = (2 * rng.permutation(cells)[:total] + 1) / (2 * cells)
    parts = np.split(low + (high - low) * places, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, chosen, strict=True)]


def _arity(f: Any) -> tuple[int, float]:
    """How many positional arguments f needs, and takes."""
    if isinstance(f, Op) and not f.variadic:
        return len(f.rules), len(f.rules)
    if isinstance(f, np.ufunc):
        return f.nin, f.nin
    try:
        signature = inspect.signature(f.forward if isinstance(f, Op | Fused) else f)
    except (TypeError, ValueError):
        return 1, np.inf
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return least or int(bool(positional or endless)), np.inf if endless else len(positional)
