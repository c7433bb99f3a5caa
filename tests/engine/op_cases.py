"""For every record of the tables: a call, inputs to draw for it, and PyTorch's name for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.engine.op_inputs import (
    Array,
    Drawn,
    along_axis,
    any_number,
    attention_inputs,
    binary,
    chosen,
    distinct,
    even,
    full_shapes,
    gathered,
    indexed,
    joined,
    linear_inputs,
    lookups,
    loss_inputs,
    norm_inputs,
    odd,
    packed_inputs,
    positive,
    products,
    reduced,
    reshaped,
    scattered,
    transposed,
    unary,
    widened,
    zero,
)
from tinygrad_tf import Tensor, ops
from tinygrad_tf.engine import attention, fused, rules
from tinygrad_tf.engine.graph import Fused, Op


@dataclass(frozen=True)
class Case:
    """One way to use a record: `call(*tensors, **options)` with what `draw` gives.

    torch: takes the module torch, then the same arguments; None where PyTorch has no such op.
    """

    name: str
    record: Op | Fused
    call: Callable[..., Tensor]
    draw: st.SearchStrategy[Drawn]
    torch: Callable[..., Any] | None = field(default=None)


# --- calls and PyTorch's counterparts, where a lambda would not do --------------------------------
def call_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return ops.linear(x, weight, bias)


def call_scatter(g: Tensor, index: Any, shape: Any) -> Tensor:
    return rules.scatter(g, index=index, shape=shape)  # type: ignore[no-any-return]


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


def torch_loss(torch: Any, logits: Any, targets: Array, ignore_index: int) -> Any:
    rows = logits.reshape(-1, logits.shape[-1])
    ids = torch.from_numpy(targets.reshape(-1))
    return torch.nn.functional.cross_entropy(rows, ids, ignore_index=ignore_index)


def torch_embedding(torch: Any, table: Any, ids: Array) -> Any:
    return table[torch.from_numpy(ids.astype(np.int64))]


def torch_attention(
    torch: Any, q: Any, k: Any, v: Any, n_head: int, causal: bool, mask: Any, drop: Any
) -> Any:
    q, k, v = (x.reshape(*x.shape[:2], n_head, -1).transpose(1, 2) for x in (q, k, v))
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
    return lambda torch, *xs, **options: getattr(torch, name)(*xs, **options)


CASES = [
    # arithmetic
    Case("add", rules.add, ops.add, binary(), same("add")),
    Case("subtract", rules.subtract, ops.subtract, binary(), same("subtract")),
    Case("multiply", rules.multiply, ops.multiply, binary(), same("multiply")),
    Case("divide", rules.divide, ops.divide, binary(any_number, odd), same("divide")),
    Case("negative", rules.negative, ops.negative, unary(), same("negative")),
    Case("square", rules.square, ops.square, unary(), same("square")),
    Case("power", rules.power, ops.power, binary(positive, odd), same("pow")),
    # At exponent 0 the mixed second derivative is 1/x, where PyTorch says 0.
    Case("power_0", rules.power, ops.power, binary(positive, zero)),
    Case("cube", rules.power, lambda x: x**3, unary(), lambda _, x: x**3),
    Case("reciprocal", rules.power, lambda x: x**-1.0, unary(odd), lambda _, x: x**-1.0),
    Case("two_to", rules.power, lambda p: 2.0**p, unary(), lambda _, p: 2.0**p),
    Case(
        "array_to",
        rules.power,
        lambda p: np.full(p.shape, 1.5, p.dtype) ** p,
        unary(),
        lambda _, p: 1.5**p,
    ),
    # elementwise
    Case("exp", rules.exp, ops.exp, unary(), same("exp")),
    Case("log", rules.log, ops.log, unary(positive), same("log")),
    Case("sqrt", rules.sqrt, ops.sqrt, unary(positive), same("sqrt")),
    Case("tanh", rules.tanh, ops.tanh, unary(), same("tanh")),
    Case("erf", rules.erf, ops.erf, unary(), same("erf")),
    Case("sigmoid", rules.sigmoid, ops.sigmoid, unary(), same("sigmoid")),
    Case("relu", rules.relu, ops.relu, unary(odd), same("relu")),
    Case("absolute", rules.absolute, ops.absolute, unary(odd), same("abs")),
    Case("sign", rules.sign, ops.sign, unary(odd), same("sign")),
    Case("maximum", rules.maximum, ops.maximum, binary(odd, even), same("maximum")),
    Case("minimum", rules.minimum, ops.minimum, binary(odd, even), same("minimum")),
    Case("maximum_0", rules.maximum, lambda x: ops.maximum(x, 0.0), unary(odd), same("relu")),
    Case(
        "where",
        rules.where,
        lambda a, b, condition: ops.where(condition, a, b),
        chosen(),
        lambda torch, a, b, condition: torch.where(torch.from_numpy(condition), a, b),
    ),
    Case("astype", rules.astype, lambda x: ops.astype(x, x.dtype), unary()),
    # reductions
    Case("sum", rules.sum, ops.sum, reduced(), torch_reduce("sum")),
    Case("max", rules.max, ops.max, reduced(distinct, full_shapes), torch_reduce("amax")),
    Case(
        "softmax",
        rules.softmax,
        ops.softmax,
        along_axis(),
        lambda torch, x, axis: torch.softmax(x, axis),
    ),
    Case(
        "log_softmax",
        rules.log_softmax,
        ops.log_softmax,
        along_axis(),
        lambda torch, x, axis: torch.log_softmax(x, axis),
    ),
    Case(
        "logsumexp",
        rules.logsumexp,
        lambda x, axis: ops.logsumexp(x, axis, keepdims=True),
        along_axis(),
        lambda torch, x, axis: torch.logsumexp(x, axis, keepdim=True),
    ),
    # matrices and shape
    Case("matmul", rules.matmul, ops.matmul, products(), same("matmul")),
    Case("reshape", rules.reshape, ops.reshape, reshaped(), same("reshape")),
    Case(
        "transpose",
        rules.transpose,
        ops.transpose,
        transposed(),
        lambda torch, x, axes: x.permute(tuple(range(x.ndim))[::-1] if axes is None else axes),
    ),
    Case(
        "broadcast_to",
        rules.broadcast_to,
        ops.broadcast_to,
        widened(),
        lambda torch, x, shape: x.expand(shape),
    ),
    Case(
        "concatenate",
        rules.concatenate,
        lambda *xs, axis: ops.concatenate(xs, axis),
        joined(),
        lambda torch, *xs, axis: torch.cat(xs, axis),
    ),
    Case("getitem", rules.getitem, ops.getitem, indexed()),
    Case(
        "gather",
        rules.getitem,
        ops.getitem,
        gathered(),
        lambda torch, x, index: x[tuple(torch.from_numpy(i) for i in index)],
    ),
    Case("scatter", rules.scatter, call_scatter, scattered()),
    # fused
    Case("linear", fused.linear, call_linear, linear_inputs(), torch_linear),
    Case("layer_norm", fused.layer_norm, ops.layer_norm, norm_inputs(), torch_norm),
    Case("gelu", fused.gelu, ops.gelu, unary(), lambda t, x: t.nn.functional.gelu(x)),
    Case(
        "gelu_tanh",
        fused.gelu,
        lambda x: ops.gelu(x, "tanh"),
        unary(),
        lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    ),
    Case("cross_entropy", fused.cross_entropy, ops.cross_entropy, loss_inputs(), torch_loss),
    Case("embedding", fused.embedding, ops.embedding, lookups(), torch_embedding),
    Case("attention", attention.attention, ops.attention, attention_inputs(), torch_attention),
    Case(
        "self_attention",
        attention.self_attention,
        ops.self_attention,
        packed_inputs(),
        torch_packed,
    ),
]
