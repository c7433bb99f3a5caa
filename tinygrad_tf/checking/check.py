"""`gradcheck`: check the gradient of a function, and diagnose a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tinygrad_tf.checking.comparison import compare
from tinygrad_tf.checking.differences import EPS
from tinygrad_tf.checking.functions import (
    Arguments,
    Function,
    GradientFunction,
    NumpyFunction,
    TensorFunction,
)
from tinygrad_tf.checking.laws import check_laws, check_single_precision, check_structure
from tinygrad_tf.checking.report import Report
from tinygrad_tf.checking.trial import Trial, eighths
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

METHODS = ("central", "complex", "directional")


# NumPy would warn beside the edge of a domain; the checks test for finite numbers themselves.
@np.errstate(all="ignore")
def gradcheck(
    f: Any,
    *inputs: Any,
    backward: Callable[..., Any] | None = None,
    up: Any = None,
    order: int = 1,
    method: str = "central",
    atol: float = 1e-9,
    rtol: float = 1e-8,
    eps: float = EPS,
    on_kink: str = "raise",
    float32: bool = True,
    seed: int = 0,
) -> Report:
    """Check the gradient of Σ up·f(*inputs) for every array of real numbers among the inputs.

    f: a function of Tensors, an op of the table (`Op`, `Fused`), or, with `backward`, a function of
    NumPy arrays; backward(g, *inputs) gives one gradient per input, or per array of real numbers
    among them (alone, or as a tuple). Inputs of other types are passed to f unchanged. The check
    runs in float64.

    up: the upstream gradient, of the shape of f's output (1 for a single number, else random).
    order: 2 also checks the gradient of the gradient, by `create_graph` (not with `backward`).
    method: "central" measures every entry with steps eps·max(1, |x|) and half of that, and allows
    |analytic - numeric| <= atol + rtol·size; "complex" uses the complex step, exact to 16 digits,
    where f takes complex numbers and is analytic, else central differences (the report says which);
    "directional" compares along 3 random directions, for large inputs, and bisects a wrong one.
    on_kink: "raise" or "skip" points where one-sided slopes differ. float32: also compare a float32
    run with the float64 gradient. seed: of upstream, directions and the like.

    It also checks, without any differences: zero and linear upstream, repeatability, f(x, x),
    shapes, dtypes, and read-only, F-order, reversed and stride-0 inputs and upstream. Gradients
    must have memory of their own: a backward by hand returns g.copy(), not g.

    Returns a `Report`, which lists entries that no step decides as ill-conditioned. Raises
    `GradcheckError` with a diagnosis, InputError where the check is not possible.
    """
    _check_options(f, method, order, on_kink, backward)
    arguments, arrays = Arguments.of(f, inputs)
    function: Function = (
        TensorFunction(f, arguments) if backward is None else NumpyFunction(f, backward, arguments)
    )
    centre = function.value(arrays)
    upstream = _upstream(up, centre, seed)
    inputs = tuple(arguments.fill(arrays))
    trial = Trial(
        function, arrays, upstream, centre, inputs, method, eps, atol, rtol, on_kink, seed
    )
    _check_finite(trial)
    gradients = check_structure(trial)
    report = compare(trial, gradients)
    check_laws(trial, gradients, float32=float32)
    if order == 2:
        report = report.joined(_second_order(trial, float32=float32))
    return report


def _second_order(trial: Trial, *, float32: bool) -> Report:
    assert isinstance(trial.function, TensorFunction)
    along = [eighths(trial.seed + 2 + i, x.shape) for i, x in enumerate(trial.arrays)]
    function, arrays = GradientFunction(trial.function, along), [*trial.arrays, trial.up]
    centre = function.value(arrays)
    if not np.all(np.isfinite(centre)):
        raise trial.error("value", "the gradient is not finite, so it has no gradient")
    second = replace(
        trial, function=function, arrays=arrays, up=np.ones(()), centre=centre, order=2
    )
    report = compare(second, check_structure(second))
    if float32:
        check_single_precision(second)
    return replace(report, worst=0.0, worst_second=report.worst)


def _check_options(f: Any, method: str, order: int, on_kink: str, backward: Any) -> None:
    if not callable(f) and not hasattr(f, "forward"):
        raise InputError(f"{type(f).__name__} is not a function", "give gradcheck(f, *inputs)")
    if method not in METHODS:
        raise InputError(f"`method` is {method!r}", f"give one of {', '.join(METHODS)}")
    if on_kink not in ("raise", "skip"):
        raise InputError(f"`on_kink` is {on_kink!r}", "give 'raise' or 'skip'")
    if order not in (1, 2):
        raise InputError(f"`order` is {order!r}", "give 1 or 2")
    if order == 2 and backward is not None:
        raise InputError(
            "a backward written by hand has no second order",
            "check it as a function of its own: gradcheck(lambda x: backward(g, x), x, ...)",
        )


def _upstream(up: Any, centre: Array, seed: int) -> Array:
    if up is None:
        return np.ones(centre.shape) if centre.size == 1 else eighths(seed, centre.shape)
    upstream = np.array(up, np.float64)
    if upstream.shape != centre.shape:
        raise InputError(
            f"`up` has shape {upstream.shape}, but the output of f has shape {centre.shape}",
            "give both the same shape, or leave `up` out",
        )
    return upstream


def _check_finite(trial: Trial) -> None:
    finite = np.isfinite(trial.centre)
    if not np.all(finite):
        at = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            f"{trial.function.name} is {trial.centre[at]} at output {at}, so it has no slope there",
            "give inputs from within its domain",
        )
