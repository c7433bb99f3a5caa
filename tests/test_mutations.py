"""The mutation gate: gradients broken on purpose, each of which the checker must catch by itself.

Every mutant takes the place of a record of the engine's table at the very points at which
`tt gradcheck` checks the table, so the gate also proves that those points are well chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor
from tinygrad_tf.checking import GradcheckError, gradcheck
from tinygrad_tf.checking.cases import cases
from tinygrad_tf.engine.graph import Fused, Op
from tinygrad_tf.engine.table import RECORDS

OPS = SimpleNamespace(**RECORDS)


@dataclass(frozen=True)
class Mutant:
    """A broken gradient: the fault, the kind of finding that is expected, and how to run it."""

    fault: str
    kind: str
    check: Callable[[], None]


MUTANTS: list[Mutant] = []


def at_the_cases(record: Op | Fused, broken: Op | Fused) -> Callable[[], None]:
    def check() -> None:
        for case in cases(record):
            replace(case, record=broken).check(order=2)

    return check


def rule(fault: str, op: Op, *broken: Any, kind: str = "value") -> None:
    """A mutant of an op of the table: other rules, None standing for the right one."""
    chosen = tuple(new or old for new, old in zip(broken, op.rules, strict=True))
    MUTANTS.append(Mutant(fault, kind, at_the_cases(op, replace(op, rules=chosen))))


def whole(fault: str, record: Op | Fused, kind: str = "value", **broken: Any) -> None:
    """A mutant of any op: other passes."""
    MUTANTS.append(Mutant(fault, kind, at_the_cases(record, replace(record, **broken))))


def plain(fault: str, f: Any, backward: Any, *inputs: Any, kind: str = "value") -> None:
    """A wrong backward written by hand for a function of NumPy arrays."""
    MUTANTS.append(Mutant(fault, kind, lambda: gradcheck(f, *inputs, backward=backward) and None))


X = np.array([[0.5, -1.25, 2.0], [0.25, 1.5, -0.75]])
ROW = np.array([1.5, -0.5, 0.25])
SQUARE = np.array([[0.5, -1.25], [0.25, 1.5]])
OTHER = np.array([[1.0, 0.5], [-0.75, 2.0]])

# --- formulas -------------------------------------------------------------------------------------
rule("sign flipped", OPS.tanh, lambda g, y, _x: g * (y * y - 1.0))
rule("factor dropped", OPS.square, lambda g, _y, x: g * x)
rule("factor doubled", OPS.sqrt, lambda g, y, _x: g / y)
rule("inner derivative dropped", OPS.erf, lambda g, _y, x: g * np.exp(-(x * x)))
rule("square forgotten", OPS.tanh, lambda g, y, _x: g * (1.0 - y))
rule("input for output", OPS.sigmoid, lambda g, _y, x: g * (x * (1.0 - x)))
rule("upstream ignored", OPS.exp, lambda _g, y, _x: y * 1.0)
rule("upstream squared", OPS.exp, lambda g, y, _x: g * g * y)
rule("constant added", OPS.exp, lambda g, y, _x: g * y + 1e-3)
# With an upstream of 1 only the laws of zero and linear upstream see these.
plain(
    "upstream ignored by a loss",
    lambda x: np.sum(x * x),
    lambda _g, x: 2.0 * x,
    X,
    kind="zero upstream",
)
plain(
    "upstream squared by a loss",
    lambda x: np.sum(x * x),
    lambda g, x: g * g * 2.0 * x,
    X,
    kind="linearity",
)
rule("mask off by one", OPS.relu, lambda g, _y, x: g * (x > -1.0))
rule("operands swapped", OPS.subtract, lambda g, _y, _a, _b: -g, lambda g, _y, _a, _b: g * 1.0)
rule("own operand", OPS.multiply, lambda g, _y, a, _b: g * a, lambda g, _y, _a, b: g * b)
rule("quotient not squared", OPS.divide, None, lambda g, _y, a, b: -g * a / b)
rule("logarithm of the exponent", OPS.power, None, lambda g, y, _x, p: g * y * np.log(p * p))
rule("path missed", OPS.multiply, None, lambda g, _y, _a, _b: g * 0.0)
rule("wrong side", OPS.maximum, *[lambda g, _y, a, b: g * (a < b)] * 2)
rule(
    "branches exchanged",
    OPS.where,
    None,
    lambda g, _y, c, _a, _b: np.where(c, 0.0, g),
    lambda g, _y, c, _a, _b: np.where(c, g, 0.0),
)

# --- axes and shapes ------------------------------------------------------------------------------
rule("wrong axis", OPS.softmax, lambda g, y, _x, axis: y * (g - np.sum(g * y, 0, keepdims=True)))
rule(
    "mean for sum",
    OPS.log_softmax,
    lambda g, y, _x, axis: g - np.exp(y) * np.mean(g, axis=axis, keepdims=True),
)
rule(
    "axes summed",
    OPS.sum,
    lambda g, _y, _x, axes, keepdims, shape: np.broadcast_to(np.sum(g), shape),
)
rule("order not inverted", OPS.transpose, lambda g, _y, _x, axes: np.transpose(g, axes))
rule("element order", OPS.reshape, lambda g, _y, _x, shape, old: np.reshape(np.transpose(g), old))
rule(
    "shares shifted by one",
    OPS.concatenate,
    lambda g, _y, *_xs, axis, ends, which: np.roll(
        g[(slice(None),) * axis + (slice(ends[which - 1] if which else 0, ends[which]),)], 1, axis
    ),
)
rule("not spread to the largest alone", OPS.max, lambda g, y, x, axes, keepdims: x * 0.0 + g.sum())
rule(
    "weight gradient transposed",
    OPS.matmul,
    None,
    lambda g, _y, a, b: (
        np.matmul(np.swapaxes(g, -1, -2), a) if g.ndim > 1 and a.ndim > 1 else g * a
    ),
)
rule("too many axes kept", OPS.negative, lambda g, _y, _x: -g[None, None][..., None], kind="raised")
plain("missing un-sum", np.multiply, lambda g, x, y: (g * y, g * x), X, ROW, kind="shape")
plain(
    "un-sum over the wrong axis",
    np.multiply,
    lambda g, x, y: (g * y, (g * x).sum(1)),
    SQUARE,
    OTHER[0],
)
plain("first row for un-sum", np.add, lambda g, x, y: (g * 1.0, g[0].copy()), X, ROW)
plain("transposed", np.matmul, lambda g, x, y: (g @ y.T, g.T @ x), SQUARE, OTHER)
plain("one gradient too few", np.add, lambda g, x, y: g * 1.0, X, X * 2, kind="raised")


# --- accumulation ---------------------------------------------------------------------------------
def scatter_with(write: Callable[[Any, Any, Any], None]) -> Callable[..., Any]:
    def broken(g: Any, _y: Any, _x: Any, *, index: Any, shape: Any) -> Any:
        out = np.zeros(shape)
        write(out, index, g.data if isinstance(g, Tensor) else g)
        return out

    return broken


def assign(out: Any, index: Any, g: Any) -> None:
    out[index] = g


def add_in_place(out: Any, index: Any, g: Any) -> None:
    out[index] += g


def embed_with(write: Callable[[Any, Any, Any], None]) -> Callable[..., Any]:
    def broken(g: Any, inputs: Any, _extras: Any, _needs: Any, *, ids: Any) -> Any:
        out = np.zeros_like(inputs[0])
        write(out, ids, g)
        return (out,)

    return broken


rule("= for +=", OPS.getitem, scatter_with(assign))
rule("+= for add.at", OPS.getitem, scatter_with(add_in_place))
whole("= for += in a table", OPS.embedding, backward=embed_with(assign))
whole("+= for add.at in a table", OPS.embedding, backward=embed_with(add_in_place))


# --- fused ----------------------------------------------------------------------------------------
def after(record: Fused, change: Callable[..., Any]) -> Callable[..., Any]:
    """The right backward, and then a fault."""

    def broken(g: Any, inputs: Any, extras: Any, needs: Any, **params: Any) -> Any:
        right = list(record.backward(g, inputs, extras, needs, **params))
        return change(right, g, inputs, extras, params) or right

    return broken


def faulty(fault: str, record: Fused, change: Callable[..., Any]) -> None:
    whole(fault, record, backward=after(record, change))


def transposed_weight(right: Any, *_: Any) -> None:
    if right[1].shape[0] == right[1].shape[1]:
        right[1] = right[1].T.copy()


def bias_of_first_row(right: Any, g: Any, *_: Any) -> None:
    if right[2] is not None:
        right[2] = g.reshape(-1, g.shape[-1])[0].copy()


def without_mean(right: Any, g: Any, inputs: Any, extras: Any, _params: Any) -> None:
    h = g if inputs[1] is None else g * inputs[1]
    right[0] += extras[1] * h.mean(-1, keepdims=True)


def without_slope(right: Any, g: Any, _inputs: Any, extras: Any, _params: Any) -> None:
    right[0] = g * 0.5 * (1.0 + extras[0])


def counted_all(right: Any, _g: Any, inputs: Any, _extras: Any, params: Any) -> None:
    right[0] *= np.sum(params["targets"] >= 0) / params["targets"].size


def ignored_counted(right: Any, g: Any, inputs: Any, extras: Any, params: Any) -> None:
    kept = params["targets"] != -1
    count = max(1, np.count_nonzero(kept))
    probs = np.exp(inputs[0] - extras[0].reshape(*kept.shape, 1))
    right[0] += g / count * probs * ~kept[..., None]


def unscaled(right: Any, *_: Any) -> None:
    right[0] = right[0] * np.sqrt(2.0)


def mask_off_by_one(g: Any, inputs: Any, extras: Any, needs: Any, **params: Any) -> Any:
    weights = extras[0]
    if params["causal"]:
        rows, columns = weights.shape[-2:]
        weights = weights * np.tri(rows, columns, columns - rows - 1)
    return OPS.attention.backward(g, inputs, (weights,), needs, **params)


def no_dropout(g: Any, inputs: Any, extras: Any, needs: Any, **params: Any) -> Any:
    return OPS.attention.backward(g, inputs, extras, needs, **params | {"drop": None})


faulty("weight gradient transposed, fused", OPS.linear, transposed_weight)
faulty("bias of one row", OPS.linear, bias_of_first_row)
faulty("mean term dropped", OPS.layer_norm, without_mean)
faulty("slope of the gate dropped", OPS.gelu, without_slope)
faulty("divided by all", OPS.cross_entropy, counted_all)
faulty("ignored targets counted", OPS.cross_entropy, ignored_counted)
faulty("scale of scores dropped", OPS.attention, unscaled)
whole("causal mask off by one", OPS.attention, backward=mask_off_by_one)
whole("dropout forgotten on the way back", OPS.attention, backward=no_dropout)
whole(
    "another function when derived twice",
    OPS.gelu,
    composite=lambda x, approximate: OPS.gelu.composite(x, approximate=not approximate),
)
rule(
    "cut off when derived twice",
    OPS.exp,
    lambda g, y, _x: g * (y.data if isinstance(y, Tensor) else y),
)


# --- memory and state -----------------------------------------------------------------------------
BUFFERS: dict[Any, Any] = {}
LAST: list[Any] = []


def buffered(g: Any, y: Any, _x: Any) -> Any:
    if isinstance(g, Tensor) or not g.ndim:
        return g * y
    buffer = BUFFERS.setdefault((g.shape, g.dtype), np.empty_like(g))
    return np.multiply(g, y, out=buffer)


def remembering(x: Any) -> Any:
    LAST[:] = [x]
    return x * x


def in_place(g: Any, y: Any, _x: Any) -> Any:
    if isinstance(g, Tensor):
        return g * y
    g *= y
    return g


def onto_output(g: Any, y: Any, _x: Any) -> Any:
    if isinstance(g, Tensor):
        return g * y
    y *= g
    return y * 1.0


def onto_input(g: Any, _y: Any, x: Any) -> Any:
    if isinstance(g, Tensor):
        return g * x * 2.0
    x *= 2.0
    return g * x


def touching(g: Any, y: Any, _x: Any) -> Any:
    if not isinstance(g, Tensor):
        g += 0.0
    return g * y


def by_memory(g: Any, y: Any, _x: Any) -> Any:
    if isinstance(g, Tensor):
        return g * y
    return (g.ravel("K") * y.ravel("K")).reshape(g.shape)


RNG = np.random.default_rng(0)
whole(
    "state of the last forward",
    OPS.square,
    kind="state",
    forward=remembering,
    rules=(lambda g, _y, _x: g * 2.0 * LAST[0],),
)
rule("stale buffer", OPS.exp, buffered, kind="memory")
rule("upstream written to", OPS.exp, in_place, kind="mutation")
rule("output written to", OPS.exp, onto_output, kind="raised")
rule("input written to", OPS.square, onto_input, kind="mutation")
rule("writes what is there already", OPS.exp, touching, kind="layout")
rule("order of memory", OPS.exp, by_memory, kind="layout")
rule(
    "dropout drawn again",
    OPS.exp,
    lambda g, y, _x: g * y * (RNG.random(y.shape) > 0.5),
    kind="repeatability",
)
plain("shared by two arguments", np.add, lambda g, x, y: (s := g * 1.0, s), X, X * 2, kind="memory")
plain("the upstream itself", np.add, lambda g, x, y: (g, g * 1.0), X, X * 2, kind="memory")
plain("a view of the input", lambda x: np.sum(x * x) / 2, lambda g, x: x[...], X, kind="memory")
plain(
    "one array for two arguments",
    np.multiply,
    lambda g, x, y: (g * y + (g * x if x is y else 0.0), g * x),
    X,
    X[::-1].copy(),
    kind="same array",
)

# --- precision ------------------------------------------------------------------------------------
rule("float32 inside", OPS.exp, lambda g, y, _x: g * y.astype(np.float32).astype(y.dtype))
whole(
    "float64 leak",
    OPS.sigmoid,
    kind="float32",
    forward=lambda x: 1.0 / (1.0 + np.exp(-x.astype(np.float64))),
)
plain("float16 gradient", np.sin, lambda g, x: (g * np.cos(x)).astype(np.float16), X, kind="dtype")
plain(
    "cancellation in float32",
    lambda x: np.expm1(x),
    lambda g, x: g * ((np.exp(x) + x.dtype.type(1e5)) - x.dtype.type(1e5)),
    X,
    kind="float32",
)


def caught(mutant: Mutant) -> GradcheckError | None:
    try:
        mutant.check()
    except GradcheckError as error:
        return error
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.fault.replace(" ", "-"))
def test_every_broken_gradient_is_caught(mutant: Mutant) -> None:
    error = caught(mutant)
    assert error is not None, mutant.fault
    assert error.kind == mutant.kind, str(error)


def test_what_is_not_broken_passes_at_the_same_points() -> None:
    for record in (OPS.exp, OPS.getitem, OPS.linear, OPS.attention):
        for case in cases(record):
            replace(case, record=replace(record)).check(order=2)


def test_the_count_is_that_of_the_readme() -> None:
    faults = {mutant.fault for mutant in MUTANTS}
    assert len(faults) == len(MUTANTS)
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"It detects {len(faults)} of {len(faults)} gradients that are wrong" in readme
