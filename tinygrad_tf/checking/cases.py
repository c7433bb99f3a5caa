"""Check the table of the engine: every op and fused op, with inputs and parameters for each.

One operand has multiples of 1/8 and the other odd multiples of 1/16: exact in float32, easy to
read, never equal and never 0 by accident.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tinygrad_tf.checking.check import gradcheck
from tinygrad_tf.checking.functions import Call
from tinygrad_tf.checking.report import GradcheckError, Report
from tinygrad_tf.checking.trial import eighths
from tinygrad_tf.engine.graph import Fused, Op
from tinygrad_tf.engine.table import RECORDS
from tinygrad_tf.types import Array

Record = Op | Fused

# An op of one or two arrays without parameters needs no points of its own, only its domain.
SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (), (1, 1, 2), (0, 2))
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (2, 3)),
    ((2, 1), (3,)),
    ((), (2, 2)),
    ((2, 1, 2), ()),
    ((0, 2), (1, 2)),
)


@dataclass(frozen=True)
class Case:
    """A record of the table with inputs and parameters at which its gradients are checked."""

    record: Record
    inputs: tuple[Any, ...]
    params: dict[str, Any]

    def check(self, **options: Any) -> Report:
        """Run `gradcheck` at this point; options as for `gradcheck`."""
        # An op with a dtype of its own gives that dtype for any input.
        options = {"float32": "dtype" not in self.params, **options}
        return gradcheck(Call(self.record, self.params), *self.inputs, **options)


@dataclass(frozen=True)
class RecordReport:
    """The check of one record: the joined reports of its cases, and the errors of those that fail.

    A record without cases counts as not proven.
    """

    op: str
    cases: int
    report: Report
    failures: tuple[GradcheckError, ...] = ()

    @property
    def proven(self) -> bool:
        """True where the record has cases and none of them fails."""
        return self.cases > 0 and not self.failures


def check_table() -> Iterator[RecordReport]:
    """Check every primitive and fused operation of the engine, first and second order."""
    return map(check_record, RECORDS.values())


def check_record(record: Record) -> RecordReport:
    """Check one record at all its points."""
    points = cases(record)
    report, failures = Report(record.name), []
    for case in points:
        try:
            report = report.joined(case.check(order=2))
        except GradcheckError as failure:
            failures.append(failure)
    return RecordReport(record.name, len(points), report, tuple(failures))


def cases(record: Record) -> list[Case]:
    """The points at which a record is checked; none where neither table below has any."""
    points = _points().get(record.name)
    if points is None:
        points = _plain_points(record) if isinstance(record, Op) else []
    return [Case(record, inputs, params) for inputs, params in points]


Point = tuple[tuple[Any, ...], dict[str, Any]]


def _at(*inputs: Any, **params: Any) -> Point:
    return inputs, params


def _numbers(*shape: int) -> Array:
    """Signed eighths, the same for the same shape; none is 0."""
    return eighths([7, *shape], shape)


def _between(*shape: int) -> Array:
    """Odd sixteenths: never an eighth, never 0."""
    rng = np.random.default_rng([8, *shape])
    return np.asarray(rng.integers(-12, 12, shape) / 8.0 + 1 / 16)


def _positive(*shape: int) -> Array:
    return np.abs(_numbers(*shape)) + 0.5


def _inside_one(*shape: int) -> Array:
    return _numbers(*shape) * 0.375


def _distinct(*shape: int) -> Array:
    """Eighths, no two of them equal."""
    rng = np.random.default_rng([9, *shape])
    count = int(np.prod(shape))
    return np.asarray((rng.permutation(count) - count / 2) / 8.0).reshape(shape)


DOMAINS = {
    "all": _numbers,
    "nonzero": _numbers,
    "positive": _positive,
    "inside one": _inside_one,
    "fractions": _between,
}


def _plain_points(op: Op) -> list[Point]:
    """Points for an op of one or two arrays that takes no parameters."""
    if op.variadic or _takes_parameters(op):
        return []
    if len(op.rules) == 1:
        return [_at(DOMAINS[op.domain](*shape)) for shape in SHAPES]
    if len(op.rules) == 2:
        return [_at(DOMAINS[op.domain](*a), _between(*b)) for a, b in PAIRS]
    return []


def _takes_parameters(op: Op) -> bool:
    """True where a rule takes more than g, y and the inputs of the op."""
    for rule in op.rules:
        kinds = [] if rule is None else list(inspect.signature(rule).parameters.values())
        if any(p.kind is p.KEYWORD_ONLY for p in kinds) or len(kinds) > 2 + len(op.rules):
            return True
    return False


@lru_cache(maxsize=1)
def _points() -> dict[str, list[Point]]:
    n, e = _numbers, _between
    drop = np.array([[[[2.0, 0.0, 2.0], [2.0, 2.0, 2.0]]]])
    keep = np.array([[0.0, -np.inf, 0.0], [0.25, -0.5, 0.0]])
    plain = {"n_head": 2, "causal": False, "mask": None, "drop": None}
    causal = plain | {"causal": True}
    one_head = {"n_head": 1, "causal": False, "mask": keep, "drop": drop}
    attended = (n(2, 2, 4), e(2, 3, 4), n(2, 3, 2))
    ids = np.array([[0, 2, 0], [2, 2, 1]])
    rows = (np.array([0, 0, 1]), np.array([1, 1, 2]))
    zeros = np.array([[0.0, 0.0, 3.0], [0.5, 0.0, -2.0]])
    smooth = {"label_smoothing": 0.25, "ignore_index": -1}
    some = np.array([[2, -1], [0, 0]])
    mask = np.array([[True, False, True], [False, False, True]])
    return {
        "where": [
            _at(mask, n(2, 3), e(2, 3)),
            _at(mask, n(3), e(2, 1)),
            _at(mask[0], n(), e(2, 3)),
        ],
        "astype": [_at(n(2, 3), dtype=np.dtype(np.float64))],
        "sum": [
            _at(n(2, 3), axes=(0, 1), keepdims=False, shape=(2, 3)),
            _at(n(2, 3), axes=(0,), keepdims=False, shape=(2, 3)),
            _at(n(2, 3), axes=(1,), keepdims=True, shape=(2, 3)),
            _at(n(2, 3, 2), axes=(2, 0), keepdims=False, shape=(2, 3, 2)),
            _at(n(2, 2), axes=(), keepdims=False, shape=(2, 2)),
            _at(n(0, 2), axes=(0,), keepdims=False, shape=(0, 2)),
            _at(n(), axes=(), keepdims=False, shape=()),
        ],
        **{
            name: [
                _at(_distinct(2, 3), axes=(0, 1), keepdims=False),
                _at(_distinct(2, 3), axes=(0,), keepdims=True),
                _at(_distinct(2, 3, 2), axes=(0, 2), keepdims=False),
            ]
            for name in ("max", "min")
        },
        **{
            name: [
                _at(n(2, 3), axis=1),
                _at(n(2, 3, 2), axis=1),
                _at(zeros, axis=1),
                _at(zeros, axis=0),
                _at(n(0, 2), axis=0),
            ]
            for name in ("prod", "cumsum", "cumprod")
        },
        **{
            name: [_at(n(2, 3), axis=-1), _at(n(2, 3), axis=0), _at(n(2, 3, 2), axis=-2)]
            for name in ("softmax", "log_softmax", "logsumexp")
        },
        "leaky_relu": [_at(n(*shape), negative_slope=0.125) for shape in SHAPES],
        "elu": [_at(n(*shape), alpha=1.5) for shape in SHAPES],
        "round": [_at(e(2, 3), decimals=digits) for digits in (0, 1)],
        "clip": [
            _at(n(2, 3), -1.0625, 0.9375),
            _at(n(2, 3), None, 0.0625),
            _at(n(2, 3), e(3) * 0.5, np.array([[0.8125], [1.0625]])),
            _at(n(0, 2), -1.0, None),
        ],
        "matmul": [
            _at(n(2, 2), e(2, 2)),
            _at(n(2, 3), e(3, 2)),
            _at(n(3), e(3)),
            _at(n(2, 3), e(3)),
            _at(n(3), e(3, 2)),
            _at(n(2, 1, 2, 3), e(2, 3, 2)),
            _at(n(2, 2, 3), e(3, 2)),
            _at(n(3), e(2, 3, 2)),
            _at(n(0, 3), e(3, 2)),
        ],
        "reshape": [
            _at(n(2, 3), shape=(3, 2), old=(2, 3)),
            _at(n(2, 3), shape=(-1,), old=(2, 3)),
            _at(n(), shape=(1, 1), old=()),
        ],
        "transpose": [
            _at(n(2, 2, 2), axes=(2, 0, 1)),
            _at(n(2, 3), axes=(1, 0)),
            _at(n(2, 3, 2), axes=(1, 2, 0)),
        ],
        "roll": [
            _at(n(2, 3), shift=(1,), axis=(1,)),
            _at(n(2, 3), shift=(1, -2), axis=(0, 1)),
        ],
        "pad": [
            _at(n(2, 3), index=(slice(1, 3), slice(0, 3)), shape=(3, 5), value=0.5),
            _at(n(), index=(), shape=(), value=0.0),
        ],
        "einsum": [
            _at(n(2, 3), e(3, 2), inputs=("ij", "jk"), output="ki"),
            _at(n(2, 3), inputs=("ij",), output="ji"),
            _at(n(2, 3), e(3), n(2), inputs=("ij", "j", "i"), output=""),
            _at(n(2, 2, 3), e(3, 2), inputs=("bij", "jb"), output="bi"),
        ],
        "broadcast_to": [_at(n(2, 1), shape=(3, 2, 2)), _at(n(), shape=(2,))],
        "concatenate": [
            _at(n(2, 1), e(2, 2), axis=1, ends=(1, 3)),
            _at(n(2, 2), e(2, 2), n(0, 2), axis=0, ends=(2, 4, 4)),
        ],
        "getitem": [
            _at(n(2, 3), index=(slice(None, None, -2), None), shape=(2, 3)),
            _at(n(3), index=np.array([0, 0, 2]), shape=(3,)),
            _at(n(2, 3), index=rows, shape=(2, 3)),
            _at(n(2, 3), index=mask, shape=(2, 3)),
        ],
        "scatter": [
            _at(n(2, 2), index=(Ellipsis, slice(0, 2)), shape=(2, 3)),
            _at(n(3), index=rows, shape=(2, 3)),
        ],
        "linear": [
            _at(n(2, 3), e(3, 2), n(2)),
            _at(n(2, 2, 3), e(3, 3), n(3)),
            _at(n(2), e(2, 2), None),
        ],
        "layer_norm": [
            _at(n(2, 3), None, None, eps=0.125),
            _at(n(2, 2, 3), e(3), n(3), eps=0.125),
        ],
        "rms_norm": [_at(n(2, 3), None, eps=0.125), _at(n(2, 2, 3), e(3), eps=0.125)],
        "gelu": [
            _at(n(*shape), approximate=tanh) for shape in SHAPES[:2] for tanh in (False, True)
        ],
        "cross_entropy": [
            _at(n(2, 3), targets=np.array([2, 0]), ignore_index=-1),
            _at(n(2, 2, 3), targets=some, ignore_index=-1),
            _at(n(2, 2, 3), targets=some, reduction="none", **smooth),
            _at(n(2, 2, 3), targets=some, reduction="sum", **smooth),
            _at(n(2, 2, 3), targets=some, **smooth),
        ],
        "embedding": [_at(n(3, 2), ids=ids), _at(n(3, 2), ids=ids[0].astype(np.uint8))],
        "attention": [
            _at(*attended, **plain),
            _at(*attended, **causal),
            _at(n(1, 2, 2), e(1, 3, 2), n(1, 3, 1), **one_head),
        ],
        "self_attention": [
            _at(n(1, 3, 6), **causal),
            _at(n(2, 2, 12), **plain),
        ],
    }
