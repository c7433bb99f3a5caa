"""Cases of every op and public function: a call, inputs to draw for it, PyTorch's counterpart."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.engine import in_pytorch as theirs
from tests.engine import op_inputs as draw
from tests.engine.op_inputs import (
    Drawn,
    any_number,
    binary,
    distinct,
    even,
    odd,
    positive,
    reduced,
    small,
    unary,
    whole,
    zero,
)
from tinygrad_tf import Tensor, ops
from tinygrad_tf.engine.graph import Fused, Op
from tinygrad_tf.engine.table import FUNCTIONS, RECORDS

OPS = SimpleNamespace(**RECORDS)


@dataclass(frozen=True)
class Case:
    """One way to use a record: `call(*tensors, **options)` with what `inputs` draws.

    record: the last one that the call records; None for functions made of several.
    torch: takes the module torch, then the same arguments; None where PyTorch has no such op.
    """

    name: str
    record: Op | Fused | None
    call: Callable[..., Tensor]
    inputs: st.SearchStrategy[Drawn]
    torch: Callable[..., Any] | None = None


OWN = [
    # arithmetic
    Case("power", OPS.power, ops.power, binary(positive, odd), theirs.same("pow")),
    # At exponent 0 the mixed second derivative is 1/x, where PyTorch says 0.
    Case("power_0", OPS.power, ops.power, binary(positive, zero)),
    Case("cube", OPS.power, lambda x: x**3, unary(), lambda _, x: x**3),
    Case("reciprocal", OPS.power, lambda x: x**-1.0, unary(odd), lambda _, x: x**-1.0),
    Case("two_to", OPS.power, lambda p: 2.0**p, unary(), lambda _, p: 2.0**p),
    Case(
        "array_to",
        OPS.power,
        lambda p: np.full(p.shape, 1.5, p.dtype) ** p,
        unary(),
        lambda _, p: 1.5**p,
    ),
    Case("root", OPS.root, OPS.root, unary(positive), theirs.same("sqrt")),
    Case("softplus", OPS.softplus, ops.softplus, unary(), theirs.same("softplus")),
    Case(
        "softplus_beta",
        None,
        lambda x: ops.softplus(x, 2.0),
        unary(),
        lambda torch, x: torch.nn.functional.softplus(x, 2.0),
    ),
    Case("reciprocal_of", OPS.divide, ops.reciprocal, unary(odd), theirs.same("reciprocal")),
    Case("clip", OPS.clip, ops.clip, draw.clipped(), theirs.same("clamp")),
    Case(
        "clip_0",
        OPS.clip,
        lambda x: ops.clip(x, max=0.5),
        unary(odd),
        lambda torch, x: torch.clamp(x, max=0.5),
    ),
    Case("maximum_0", OPS.maximum, lambda x: ops.maximum(x, 0.0), unary(odd), theirs.same("relu")),
    Case(
        "where",
        OPS.where,
        lambda a, b, condition: ops.where(condition, a, b),
        draw.chosen(),
        lambda torch, a, b, condition: torch.where(torch.from_numpy(condition), a, b),
    ),
    Case("astype", OPS.astype, lambda x: ops.astype(x, x.dtype), unary()),
    # reductions
    Case("sum", OPS.sum, ops.sum, reduced(), theirs.reduce("sum")),
    Case("mean", None, ops.mean, reduced(filled=True), theirs.reduce("mean")),
    Case("var", None, ops.var, reduced(filled=True), theirs.spread("var")),
    Case("std", None, ops.std, draw.along_axis(distinct, least=2), theirs.spread("std")),
    Case("norm", None, ops.norm, draw.normed(), theirs.norm_of),
    Case("norm_all", OPS.root, ops.norm, reduced(draw.of_kind(odd), filled=True)),
    Case("prod", None, ops.prod, reduced(draw.of_kind(whole)), theirs.prod),
    Case(
        "prod_along",
        OPS.prod,
        ops.prod,
        draw.along_axis(draw.of_kind(whole), least=0),
        theirs.same("prod"),
    ),
    Case("cumsum", OPS.cumsum, ops.cumsum, draw.joined_or_along(), theirs.scan("cumsum")),
    Case(
        "cumprod",
        OPS.cumprod,
        ops.cumprod,
        draw.joined_or_along(draw.of_kind(whole)),
        theirs.scan("cumprod"),
    ),
    Case("min", OPS.min, ops.min, reduced(distinct, filled=True), theirs.reduce("amin")),
    Case("max", OPS.max, ops.max, reduced(distinct, filled=True), theirs.reduce("amax")),
    Case("softmax", OPS.softmax, ops.softmax, draw.along_axis(), theirs.same("softmax")),
    Case(
        "log_softmax",
        OPS.log_softmax,
        ops.log_softmax,
        draw.along_axis(),
        theirs.same("log_softmax"),
    ),
    Case(
        "logsumexp",
        OPS.logsumexp,
        lambda x, axis: ops.logsumexp(x, axis, keepdims=True),
        draw.along_axis(),
        lambda torch, x, axis: torch.logsumexp(x, axis, True),
    ),
    Case("logsumexp_axes", None, ops.logsumexp, reduced(filled=True), theirs.reduce("logsumexp")),
    Case("softmax_all", OPS.softmax, lambda x: ops.softmax(x, None), unary()),
    # matrices and shape
    Case(
        "einsum",
        None,
        lambda *xs, subscripts: ops.einsum(subscripts, *xs),
        draw.einstein(),
        lambda torch, *xs, subscripts: torch.einsum(subscripts, *xs),
    ),
    Case(
        "einsum_outer",
        OPS.einsum,
        lambda a, b: ops.einsum("i,j", a, b),
        draw.outers(),
        theirs.same("outer"),
    ),
    Case("dot", None, ops.dot, draw.dotted()),
    Case("outer", None, ops.outer, draw.outers(), theirs.same("outer")),
    Case(
        "swapaxes",
        OPS.transpose,
        ops.swapaxes,
        draw.swapped(),
        lambda torch, x, axis1, axis2: torch.swapaxes(x, axis1, axis2),
    ),
    Case("expand_dims", OPS.reshape, ops.expand_dims, draw.along_axis(), theirs.same("unsqueeze")),
    Case("squeeze", OPS.reshape, lambda x: ops.squeeze(x), unary(), theirs.same("squeeze")),
    Case("ravel", OPS.reshape, ops.ravel, unary(), theirs.same("ravel")),
    Case(
        "stack",
        None,
        lambda a, b, axis: ops.stack([a, b, a], axis),
        draw.alike(),
        lambda torch, a, b, axis: torch.stack([a, b, a], axis),
    ),
    Case(
        "split",
        OPS.getitem,
        lambda x, axis: ops.split(x, [1], axis)[1],
        draw.along_axis(),
        lambda torch, x, axis: torch.tensor_split(x, [1], axis)[1],
    ),
    Case("dropout", OPS.multiply, lambda x: ops.dropout(x, 0.5, np.random.default_rng(0)), unary()),
    Case("moveaxis", OPS.transpose, ops.moveaxis, draw.moved(), theirs.same("moveaxis")),
    Case("tile", None, ops.tile, draw.tiled(), lambda torch, x, reps: torch.tile(x, reps)),
    Case("repeat", None, ops.repeat, draw.repeated(), theirs.repeat),
    Case("roll", None, ops.roll, draw.rolled(), theirs.roll),
    Case("roll_along", OPS.roll, lambda x, axis: ops.roll(x, 1, axis), draw.along_axis()),
    Case("flip", OPS.getitem, ops.flip, draw.flipped(), theirs.flip),
    Case("pad", OPS.pad, ops.pad, draw.padded(), theirs.pad),
    Case("triu", OPS.where, ops.triu, draw.triangles(), lambda torch, x, k: torch.triu(x, k)),
    Case("tril", OPS.where, ops.tril, draw.triangles(), lambda torch, x, k: torch.tril(x, k)),
    Case("take", OPS.getitem, ops.take, draw.taken(), theirs.take),
    Case(
        "take_along_axis",
        OPS.getitem,
        ops.take_along_axis,
        draw.taken_along(),
        lambda torch, x, indices, axis: torch.take_along_dim(x, torch.from_numpy(indices), axis),
    ),
    Case(
        "sort",
        OPS.getitem,
        ops.sort,
        draw.along_axis(distinct),
        lambda torch, x, axis: torch.sort(x, axis)[0],
    ),
    Case(
        "topk",
        OPS.getitem,
        lambda x, k, axis, largest: ops.topk(x, k, axis, largest)[0],
        draw.ranked(),
        lambda torch, x, k, axis, largest: torch.topk(x, k, axis, largest)[0],
    ),
    Case("matmul", OPS.matmul, ops.matmul, draw.products(), theirs.same("matmul")),
    Case("reshape", OPS.reshape, ops.reshape, draw.reshaped(), theirs.same("reshape")),
    Case(
        "transpose",
        OPS.transpose,
        ops.transpose,
        draw.transposed(),
        lambda torch, x, axes: x.permute(tuple(range(x.ndim))[::-1] if axes is None else axes),
    ),
    Case(
        "broadcast_to",
        OPS.broadcast_to,
        ops.broadcast_to,
        draw.widened(),
        lambda torch, x, shape: x.expand(shape),
    ),
    Case(
        "concatenate",
        OPS.concatenate,
        lambda *xs, axis: ops.concatenate(xs, axis),
        draw.joined(),
        lambda torch, *xs, axis: torch.cat(xs, axis),
    ),
    Case("getitem", OPS.getitem, ops.getitem, draw.indexed()),
    Case(
        "gather",
        OPS.getitem,
        ops.getitem,
        draw.gathered(),
        lambda torch, x, index: x[tuple(torch.from_numpy(i) for i in index)],
    ),
    Case("scatter", OPS.scatter, OPS.scatter, draw.scattered()),
    # fused
    Case("linear", OPS.linear, ops.linear, draw.linear_inputs(), theirs.linear),
    Case("layer_norm", OPS.layer_norm, ops.layer_norm, draw.norm_inputs(most=2), theirs.norm),
    Case("rms_norm", OPS.rms_norm, ops.rms_norm, draw.norm_inputs(most=1), theirs.rms),
    Case("gelu", OPS.gelu, ops.gelu, unary(), theirs.same("gelu")),
    Case(
        "gelu_tanh",
        OPS.gelu,
        lambda x: ops.gelu(x, "tanh"),
        unary(),
        lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    Case("cross_entropy", OPS.cross_entropy, ops.cross_entropy, draw.loss_inputs(), theirs.loss),
    Case("embedding", OPS.embedding, ops.embedding, draw.lookups(), theirs.embedding),
    Case("attention", OPS.attention, ops.attention, draw.attention_inputs(), theirs.attention),
    Case(
        "self_attention",
        OPS.self_attention,
        ops.self_attention,
        draw.packed_inputs(),
        theirs.packed,
    ),
]

DOMAINS = {
    "all": any_number,
    "nonzero": odd,
    "positive": positive,
    "inside one": small,
    "fractions": odd,
}


# Two operands that are never equal, where a tie has its gradient by convention, or never both 0.
PAIRS = {
    "divide": binary(any_number, odd),
    "arctan2": binary(odd, even),
    "maximum": binary(odd, even),
    "minimum": binary(odd, even),
}


def of_the_table(name: str, function: Any) -> Case:
    """The case of an op of one or two arrays: only its domain decides what is drawn."""
    kind = DOMAINS[function.op.domain]
    inputs = unary(kind) if len(function.op.rules) == 1 else PAIRS.get(name, binary())
    return Case(
        name, function.op, function, inputs, theirs.same({"absolute": "abs"}.get(name, name))
    )


CASES = OWN + [
    of_the_table(name, function)
    for name, function in FUNCTIONS.items()
    if hasattr(function, "op") and name not in {"abs", *(case.name for case in OWN)}
]
