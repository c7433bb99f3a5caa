"""For every record and function: a call, inputs to draw for it, and PyTorch's name for it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.engine import op_inputs as draw
from tests.engine.op_inputs import (
    Array,
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
    torch: Callable[..., Any] | None = field(default=None)


# --- calls and PyTorch's counterparts, where a lambda would not do --------------------------------
def call_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return ops.linear(x, weight, bias)


def call_scatter(g: Tensor, index: Any, shape: Any) -> Tensor:
    return OPS.scatter(g, index=index, shape=shape)


def torch_linear(torch: Any, x: Any, weight: Any, bias: Any = 0.0) -> Any:
    return x @ weight + bias


def torch_norm(torch: Any, x: Any, *gains: Any, eps: float) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], *gains, eps=eps)


def torch_reduce(name: str) -> Callable[..., Any]:
    def reduce(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        if axis == ():
            return x * 1.0
        axis = tuple(range(x.ndim)) if axis is None else axis
        return getattr(torch, name)(x, dim=axis, keepdim=keepdims) if x.ndim else x * 1.0

    return reduce


def torch_spread(name: str) -> Callable[..., Any]:
    def spread(torch: Any, x: Any, axis: Any, keepdims: bool = False) -> Any:
        if axis == ():
            return x * 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty result, without degrees of freedom
            return getattr(torch, name)(x, dim=axis, correction=0, keepdim=keepdims)

    return spread


def torch_loss(torch: Any, logits: Any, targets: Array, **options: Any) -> Any:
    rows = logits.reshape(-1, logits.shape[-1])
    ids = torch.from_numpy(targets.reshape(-1))
    loss = torch.nn.functional.cross_entropy(rows, ids, **options)
    return loss.reshape(targets.shape) if options["reduction"] == "none" else loss


def torch_rms(torch: Any, x: Any, *gain: Any, eps: float) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], *gain, eps=eps)


def torch_prod(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for a in sorted((a % x.ndim for a in axes), reverse=True):
        x = torch.prod(x, a, keepdim=keepdims)
    return x * 1.0


def torch_scan(name: str) -> Callable[..., Any]:
    def scan(torch: Any, x: Any, axis: int | None) -> Any:
        return getattr(torch, name)(x.flatten() if axis is None else x, axis or 0)

    return scan


def torch_norm_of(torch: Any, x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    return torch.linalg.vector_norm(x, 2 if ord is None else ord, axis, keepdim=keepdims)


def torch_roll(torch: Any, x: Any, shift: Any, axis: Any) -> Any:
    return torch.roll(x, shift) if axis is None else torch.roll(x, shift, axis)


def torch_pad(torch: Any, x: Any, pad_width: Any, constant_values: float) -> Any:
    if not x.ndim:
        return x * 1.0
    widths = [n for pair in reversed(pad_width) for n in pair]
    return torch.nn.functional.pad(x, widths, value=constant_values)


def torch_flip(torch: Any, x: Any, axis: Any) -> Any:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return torch.flip(x, tuple(axes))


def torch_repeat(torch: Any, x: Any, repeats: Any, axis: Any) -> Any:
    times = repeats if isinstance(repeats, int) else torch.tensor(repeats, dtype=torch.int64)
    return torch.repeat_interleave(x, times, axis)


def torch_take(torch: Any, x: Any, indices: Array, axis: int | None) -> Any:
    places = torch.from_numpy(indices)
    if axis is None:
        return x.flatten()[places]
    return x[(slice(None),) * (axis % x.ndim) + (places,)]


def torch_embedding(torch: Any, table: Any, ids: Array) -> Any:
    return table[torch.from_numpy(ids.astype(np.int64))]


def torch_attention(
    torch: Any, q: Any, k: Any, v: Any, n_head: int, causal: bool, mask: Any, drop: Any
) -> Any:
    q, k, v = (
        x.reshape(*x.shape[:2], n_head, x.shape[-1] // n_head).transpose(1, 2) for x in (q, k, v)
    )
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    keep = np.ones(scores.shape, bool)
    if causal:
        keep &= np.tri(*scores.shape[-2:], k=scores.shape[-1] - scores.shape[-2], dtype=bool)
    if mask is not None and mask.dtype == bool:
        keep &= mask
    elif mask is not None:
        scores = scores + torch.from_numpy(mask).to(scores.dtype)
    # Where no key is left PyTorch's softmax is nan; here the context is 0.
    some = torch.from_numpy(keep.any(-1, keepdims=True))
    kept = torch.from_numpy(keep)
    weights = torch.softmax(scores.masked_fill(~kept & some, -np.inf), -1) * some
    if drop is not None:
        weights = weights * torch.from_numpy(drop).to(weights.dtype)
    return (weights @ v).transpose(1, 2).flatten(2)


def torch_packed(torch: Any, qkv: Any, **options: Any) -> Any:
    return torch_attention(torch, *qkv.chunk(3, -1), **options)


def same(name: str) -> Callable[..., Any]:
    """PyTorch's function of that name."""

    def call(torch: Any, *xs: Any, **options: Any) -> Any:
        home = torch if hasattr(torch, name) else torch.nn.functional
        return getattr(home, name)(*xs, **options)

    return call


OWN = [
    # arithmetic
    Case("power", OPS.power, ops.power, binary(positive, odd), same("pow")),
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
    Case("root", OPS.root, OPS.root, unary(positive), same("sqrt")),
    Case("softplus", OPS.softplus, ops.softplus, unary(), same("softplus")),
    Case(
        "softplus_beta",
        None,
        lambda x: ops.softplus(x, 2.0),
        unary(),
        lambda t, x: t.nn.functional.softplus(x, 2.0),
    ),
    Case("reciprocal_of", OPS.divide, ops.reciprocal, unary(odd), same("reciprocal")),
    Case("clip", OPS.clip, ops.clip, draw.clipped(), same("clamp")),
    Case(
        "clip_0",
        OPS.clip,
        lambda x: ops.clip(x, max=0.5),
        unary(odd),
        lambda t, x: t.clamp(x, max=0.5),
    ),
    Case("maximum_0", OPS.maximum, lambda x: ops.maximum(x, 0.0), unary(odd), same("relu")),
    Case(
        "where",
        OPS.where,
        lambda a, b, condition: ops.where(condition, a, b),
        draw.chosen(),
        lambda torch, a, b, condition: torch.where(torch.from_numpy(condition), a, b),
    ),
    Case("astype", OPS.astype, lambda x: ops.astype(x, x.dtype), unary()),
    # reductions
    Case("sum", OPS.sum, ops.sum, reduced(), torch_reduce("sum")),
    Case("mean", None, ops.mean, reduced(filled=True), torch_reduce("mean")),
    Case("var", None, ops.var, reduced(filled=True), torch_spread("var")),
    Case("std", None, ops.std, draw.along_axis(distinct, least=2), torch_spread("std")),
    Case("norm", None, ops.norm, draw.normed(), torch_norm_of),
    Case("norm_all", OPS.root, ops.norm, reduced(draw.of_kind(odd), filled=True)),
    Case("prod", None, ops.prod, reduced(draw.of_kind(whole)), torch_prod),
    Case(
        "prod_along",
        OPS.prod,
        ops.prod,
        draw.along_axis(draw.of_kind(whole), least=0),
        lambda torch, x, axis: torch.prod(x, axis),
    ),
    Case("cumsum", OPS.cumsum, ops.cumsum, draw.joined_or_along(), torch_scan("cumsum")),
    Case(
        "cumprod",
        OPS.cumprod,
        ops.cumprod,
        draw.joined_or_along(draw.of_kind(whole)),
        torch_scan("cumprod"),
    ),
    Case("min", OPS.min, ops.min, reduced(distinct, filled=True), torch_reduce("amin")),
    Case("max", OPS.max, ops.max, reduced(distinct, filled=True), torch_reduce("amax")),
    Case(
        "softmax",
        OPS.softmax,
        ops.softmax,
        draw.along_axis(),
        lambda torch, x, axis: torch.softmax(x, axis),
    ),
    Case(
        "log_softmax",
        OPS.log_softmax,
        ops.log_softmax,
        draw.along_axis(),
        lambda torch, x, axis: torch.log_softmax(x, axis),
    ),
    Case(
        "logsumexp",
        OPS.logsumexp,
        lambda x, axis: ops.logsumexp(x, axis, keepdims=True),
        draw.along_axis(),
        lambda torch, x, axis: torch.logsumexp(x, axis, keepdim=True),
    ),
    Case(
        "logsumexp_axes",
        None,
        ops.logsumexp,
        reduced(filled=True),
        torch_reduce("logsumexp"),
    ),
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
        same("outer"),
    ),
    Case("dot", None, ops.dot, draw.dotted()),
    Case("outer", None, ops.outer, draw.outers(), same("outer")),
    Case(
        "swapaxes",
        OPS.transpose,
        ops.swapaxes,
        draw.swapped(),
        lambda torch, x, axis1, axis2: torch.swapaxes(x, axis1, axis2),
    ),
    Case(
        "expand_dims",
        OPS.reshape,
        lambda x, axis: ops.expand_dims(x, axis),
        draw.along_axis(),
        lambda torch, x, axis: torch.unsqueeze(x, axis),
    ),
    Case("squeeze", OPS.reshape, lambda x: ops.squeeze(x), unary(), same("squeeze")),
    Case("ravel", OPS.reshape, ops.ravel, unary(), same("ravel")),
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
    Case(
        "dropout",
        OPS.multiply,
        lambda x, seed: ops.dropout(x, 0.5, np.random.default_rng(seed)),
        draw.dropped(),
    ),
    Case("moveaxis", OPS.transpose, ops.moveaxis, draw.moved(), same("moveaxis")),
    Case("tile", None, ops.tile, draw.tiled(), lambda torch, x, reps: torch.tile(x, reps)),
    Case("repeat", None, ops.repeat, draw.repeated(), torch_repeat),
    Case("roll", None, ops.roll, draw.rolled(), torch_roll),
    Case("roll_along", OPS.roll, lambda x, axis: ops.roll(x, 1, axis), draw.along_axis()),
    Case("flip", OPS.getitem, ops.flip, draw.flipped(), torch_flip),
    Case("pad", OPS.pad, ops.pad, draw.padded(), torch_pad),
    Case("triu", OPS.where, ops.triu, draw.triangles(), lambda t, x, k: t.triu(x, k)),
    Case("tril", OPS.where, ops.tril, draw.triangles(), lambda t, x, k: t.tril(x, k)),
    Case("take", OPS.getitem, ops.take, draw.taken(), torch_take),
    Case(
        "take_along_axis",
        OPS.getitem,
        ops.take_along_axis,
        draw.taken_along(),
        lambda t, x, indices, axis: t.take_along_dim(x, t.from_numpy(indices), axis),
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
    Case("matmul", OPS.matmul, ops.matmul, draw.products(), same("matmul")),
    Case("reshape", OPS.reshape, ops.reshape, draw.reshaped(), same("reshape")),
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
    Case("scatter", OPS.scatter, call_scatter, draw.scattered()),
    # fused
    Case("linear", OPS.linear, call_linear, draw.linear_inputs(), torch_linear),
    Case("layer_norm", OPS.layer_norm, ops.layer_norm, draw.norm_inputs(), torch_norm),
    Case("rms_norm", OPS.rms_norm, ops.rms_norm, draw.rms_inputs(), torch_rms),
    Case("gelu", OPS.gelu, ops.gelu, unary(), lambda t, x: t.nn.functional.gelu(x)),
    Case(
        "gelu_tanh",
        OPS.gelu,
        lambda x: ops.gelu(x, "tanh"),
        unary(),
        lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    ),
    Case("cross_entropy", OPS.cross_entropy, ops.cross_entropy, draw.loss_inputs(), torch_loss),
    Case("embedding", OPS.embedding, ops.embedding, draw.lookups(), torch_embedding),
    Case("attention", OPS.attention, ops.attention, draw.attention_inputs(), torch_attention),
    Case(
        "self_attention",
        OPS.self_attention,
        ops.self_attention,
        draw.packed_inputs(),
        torch_packed,
    ),
]

DOMAINS = {
    "all": any_number,
    "nonzero": odd,
    "positive": positive,
    "inside one": small,
    "fractions": odd,
}


def of_the_table(name: str, function: Any) -> Case:
    """The case of an op of one or two arrays: only its domain decides what is drawn."""
    kind = DOMAINS[function.op.domain]
    inputs = unary(kind) if len(function.op.rules) == 1 else binary(even, odd)
    return Case(name, function.op, function, inputs, same({"absolute": "abs"}.get(name, name)))


CASES = OWN + [
    of_the_table(name, function)
    for name, function in FUNCTIONS.items()
    if hasattr(function, "op") and name not in {"abs", *(case.name for case in OWN)}
]
