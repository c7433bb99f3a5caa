"""`gradcheck`: is this gradient right, and if not, what is wrong with it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tinygrad_tf.checking.compare import compare_directions, compare_entries, refuses_complex
from tinygrad_tf.checking.laws import laws, single_precision, structure
from tinygrad_tf.checking.numeric import EPS
from tinygrad_tf.checking.report import Report
from tinygrad_tf.checking.subjects import (
    Arguments,
    PlainFunction,
    SecondOrder,
    Subject,
    TensorFunction,
)
from tinygrad_tf.checking.trial import Trial, eighths
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

METHODS = ("central", "complex", "directional")


# Beside the edge of a domain NumPy would warn; the checks look at what is finite themselves.
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
    among them (alone, or as a tuple). Inputs of other types are handed to f as they are. The check
    is made in float64.

    up: the upstream gradient, of the shape of f's output (1 for a single number, else random).
    order: 2 differentiates the gradient, too, with `create_graph` (not with `backward`).
    method: "central" measures every entry with steps eps·max(1, |x|) and half of that, and allows
    |analytic - numeric| <= atol + rtol·size; "complex" uses the complex step, exact to 16 digits,
    where f takes complex numbers and is analytic, else central differences (the report says which);
    "directional" compares along 3 random directions, for large inputs, and bisects a bad one.
    on_kink: "raise" or "skip" points where one-sided slopes differ. float32: also compare a float32
    run with the float64 gradient. seed: of upstream, directions and the like.

    Besides, without any differences: zero and linear upstream, repeatability, f(x, x), shapes,
    dtypes, and read-only, F-order, reversed and stride-0 inputs and upstream. Gradients must have
    memory of their own: a backward by hand returns g.copy(), not g.

    Returns a `Report`; entries that no step decides are in it as ill-conditioned. Raises
    `GradcheckError` with a diagnosis, InputError where the check makes no sense.
    """
    _check_options(f, method, order, on_kink, backward)
    arguments, arrays = Arguments.of(f, inputs)
    subject: Subject
    if backward is not None:
        subject = PlainFunction(f, backward, arguments)
    else:
        subject = TensorFunction(f, arguments)
    centre = subject.value(arrays)
    upstream = _upstream(up, centre, seed)
    given = tuple(arguments.fill(arrays))
    trial = Trial(subject, arrays, upstream, given, method, eps, atol, rtol, on_kink, seed)
    _finite(trial, centre)
    report = _first_order(trial, centre, float32=float32)
    if order == 2:
        assert isinstance(subject, TensorFunction)
        report = report.joined(_second_order(trial, subject, float32=float32))
    return report


def _first_order(trial: Trial, centre: Array, *, float32: bool) -> Report:
    gradients = structure(trial)
    report = _compare(trial, gradients, centre)
    laws(trial, gradients, float32=float32)
    return report


def _second_order(trial: Trial, first: TensorFunction, *, float32: bool) -> Report:
    along = [eighths(trial.seed + 2 + i, x.shape) for i, x in enumerate(trial.arrays)]
    subject = SecondOrder(first, along)
    second = trial.at(subject=subject, arrays=[*trial.arrays, trial.up], up=np.ones(()), order=2)
    centre = second.value()
    if not np.all(np.isfinite(centre)):
        raise trial.error("value", "the gradient is not finite, so it has no gradient")
    report = _compare(second, structure(second), centre)
    if float32:
        single_precision(second)
    return replace(report, worst=0.0, worst_second=report.worst)


def _compare(trial: Trial, gradients: list[Array], centre: Array) -> Report:
    if trial.method == "directional":
        return compare_directions(trial, gradients, centre)
    why = ""
    if trial.method == "complex":
        why = refuses_complex(trial)
        if why:
            trial = trial.at(method="central")
    report = compare_entries(trial, gradients, centre)
    if why:
        note = f"no complex step for {trial.subject.name}: {why}"
        report = report.joined(Report("", notes=(note,)))
    return report


def _check_options(f: Any, method: str, order: int, on_kink: str, backward: Any) -> None:
    if not callable(f) and not hasattr(f, "forward"):
        raise InputError(f"{type(f).__name__} is not a function", "give gradcheck(f, *inputs)")
    if method not in METHODS:
        raise InputError(f"method is {method!r}", f"give one of {', '.join(METHODS)}")
    if on_kink not in ("raise", "skip"):
        raise InputError(f"on_kink is {on_kink!r}", "give 'raise' or 'skip'")
    if order not in (1, 2):
        raise InputError(f"order is {order!r}", "give 1 or 2")
    if order == 2 and backward is not None:
        raise InputError(
            "a backward written by hand has no second order",
            "check it as a function of its own: gradcheck(lambda x: backward(g, x), x, ...)",
        )


def _upstream(up: Any, centre: Array, seed: int) -> Array:
    if up is None:
        return np.ones(centre.shape) if centre.size == 1 else eighths(seed, centre.shape)
    given = np.array(up, np.float64)
    if given.shape != centre.shape:
        raise InputError(
            f"up has shape {given.shape}, but the output of f has shape {centre.shape}",
            "give them the same shape, or leave up out",
        )
    return given


def _finite(trial: Trial, centre: Array) -> None:
    if not np.all(np.isfinite(centre)):
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(centre))[0])
        raise InputError(
            f"{trial.subject.name} is {centre[at]} at output {at}, so it has no slope there",
            "give inputs from within its domain",
        )
