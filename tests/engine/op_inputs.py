"""Inputs to draw for operations: numbers, shapes that fit together, axes, indices, masks.

Numbers are whole eighths: exact in float32, and readable when hypothesis shrinks them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinygrad_tf.types import Array

# The arrays that gradients flow to, and the other arguments.
Drawn = tuple[list[Array], dict[str, Any]]


# --- numbers --------------------------------------------------------------------------------------
def any_number(i: Array) -> Array:
    return i / 8.0


def even(i: Array) -> Array:
    return i / 4.0


def odd(i: Array) -> Array:
    """Never 0, and never equal to an even one."""
    return (2 * i + 1) / 8.0


def positive(i: Array) -> Array:
    return (np.abs(i) + 4) / 8.0


def small(i: Array) -> Array:
    """From -1/2 to 1/2."""
    return i / 32.0


def whole(i: Array) -> Array:
    """Small whole numbers, 0 among them."""
    return np.asarray(i // 6, float)


def zero(i: Array) -> Array:
    return i * 0.0


def numbers(shape: Any, kind: Callable[[Array], Array] = any_number) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.int64, shape, elements=st.integers(-16, 16)).map(kind)


def distinct(shape: Any) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.int64, shape, elements=st.integers(-99, 99), unique=True).map(any_number)


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
lines = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)
full_shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3)
# Any shape whose last axis is not of length 0.
filled_rows = st.tuples(shapes, st.integers(1, 3)).map(lambda pair: (*pair[0][:2], pair[1]))
side = st.integers(1, 3)


def of_kind(kind: Callable[[Array], Array]) -> Callable[[Any], st.SearchStrategy[Array]]:
    return lambda shape: numbers(shape, kind)


def axes(ndim: int) -> st.SearchStrategy[Any]:
    """None, one axis or several, counted from either end."""
    one = st.integers(-ndim, ndim - 1) if ndim else st.none()
    return st.none() | one | hnp.valid_tuple_axes(ndim, min_size=0)


# --- inputs ---------------------------------------------------------------------------------------
def unary(kind: Callable[[Array], Array] = any_number) -> st.SearchStrategy[Drawn]:
    return numbers(shapes, kind).map(lambda x: ([x], {}))


@st.composite
def binary(draw: Any, first: Any = any_number, second: Any = any_number) -> Drawn:
    both = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3))
    a, b = both.input_shapes
    return [draw(numbers(a, first)), draw(numbers(b, second))], {}


@st.composite
def chosen(draw: Any) -> Drawn:
    both = draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3))
    condition, a, b = both.input_shapes
    mask = draw(hnp.arrays(np.bool_, condition))
    return [draw(numbers(a)), draw(numbers(b))], {"condition": mask}


@st.composite
def reduced(draw: Any, values: Any = numbers, filled: bool = False) -> Drawn:
    """An array and axes; with `filled` none of the axes is of length 0, though others may be."""
    shape = list(draw(shapes))
    axis = draw(axes(len(shape)))
    if filled:
        chosen = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
        for a in chosen:
            shape[a] = max(1, shape[a])
    return [draw(values(tuple(shape)))], {"axis": axis, "keepdims": draw(st.booleans())}


@st.composite
def along_axis(draw: Any, values: Any = numbers, sizes: Any = None, least: int = 1) -> Drawn:
    """An array and an axis of at least that length, whatever the others have."""
    shape = list(draw(lines if sizes is None else sizes))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = max(least, shape[axis])
    return [draw(values(tuple(shape)))], {"axis": axis}


@st.composite
def clipped(draw: Any) -> Drawn:
    (x, low), _ = draw(binary(odd, even))
    width = draw(numbers(low.shape, positive)) + 0.125
    return [x, low, low + np.round(width * 4) / 4 + 0.25], {}


@st.composite
def normed(draw: Any) -> Drawn:
    # Halves: nearer to 0 the second derivative of a single number cancels only in float64.
    (x,), options = draw(along_axis(of_kind(lambda i: odd(i) * 4.0)))
    ord = draw(st.sampled_from([None, 2, 1, 3, 2.5]))
    return [x], options | {"ord": ord, "keepdims": draw(st.booleans())}


@st.composite
def joined_or_along(draw: Any, values: Any = numbers) -> Drawn:
    (x,), options = draw(along_axis(values, least=0))
    return [x], options if draw(st.booleans()) else {"axis": None}


SUMS = [
    *("ij,jk->ik", "ij,jk", "kj,ij", "ij->ji", "ij->", "ij->j", "ii", "ii->i", "iij->ji"),
    *("i,i", "i,i->i", "i,j->ij", "bij,bjk->bik", "...ij,...jk->...ik", "...i->...", "i...->...i"),
    *("ij,j,i->", "ij,ik,k->j", "aab,bc->ac", "...i,i", "a,b,c->cab", "i,->i"),
]


@st.composite
def einstein(draw: Any) -> Drawn:
    """Operands in which an axis of length 1 may stand for any length."""
    subscripts = draw(st.sampled_from(SUMS))
    sizes = {c: draw(st.integers(0, 3)) for c in "abcijk"}
    extra = tuple(draw(st.lists(side, max_size=2)))
    parts = []
    for term in subscripts.split("->")[0].split(","):
        thin = draw(st.sampled_from([None, None, *term]))
        shape: tuple[int, ...] = ()
        for piece in term.replace("...", "."):
            if piece == ".":
                shape += extra[draw(st.integers(0, len(extra))) :]
            else:
                shape += (1 if piece == thin else sizes[piece],)
        parts.append(draw(numbers(shape)))
    return parts, {"subscripts": subscripts}


@st.composite
def dotted(draw: Any) -> Drawn:
    n = draw(st.integers(0, 3))
    lead, mid, tail = (tuple(draw(st.lists(side, max_size=k))) for k in (2, 2, 1))
    b = (*mid, n, *tail) if tail else (n,)
    return [draw(numbers((*lead, n))), draw(numbers(b))], {}


@st.composite
def outers(draw: Any) -> Drawn:
    return [draw(numbers(draw(st.integers(0, 3)))) for _ in range(2)], {}


@st.composite
def rolled(draw: Any) -> Drawn:
    x = draw(numbers(lines))
    axis = draw(
        st.none() | st.integers(-x.ndim, x.ndim - 1) | hnp.valid_tuple_axes(x.ndim, min_size=1)
    )
    one = st.integers(-4, 4)
    shift = draw(st.tuples(*[one] * len(axis)) if isinstance(axis, tuple) else one)
    return [x], {"shift": shift, "axis": axis}


@st.composite
def padded(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    pairs = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in x.shape]
    return [x], {"pad_width": pairs or 0, "constant_values": draw(st.sampled_from([0.0, 0.5]))}


@st.composite
def flipped(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    return [x], {"axis": draw(axes(x.ndim))}


@st.composite
def tiled(draw: Any) -> Drawn:
    times = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)
    return [draw(numbers(shapes))], {"reps": draw(times)}


@st.composite
def repeated(draw: Any) -> Drawn:
    (x,), options = draw(joined_or_along())
    axis = options["axis"]
    length = x.size if axis is None else x.shape[axis]
    times = draw(st.integers(0, 3) | st.lists(st.integers(0, 2), min_size=length, max_size=length))
    return [x], {"repeats": times, "axis": axis}


@st.composite
def moved(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    start = draw(hnp.valid_tuple_axes(x.ndim))
    end = draw(st.permutations(range(x.ndim)))[: len(start)]
    return [x], {"source": start, "destination": tuple(end)}


@st.composite
def swapped(draw: Any) -> Drawn:
    x = draw(numbers(lines))
    axis = st.integers(-x.ndim, x.ndim - 1)
    return [x], {"axis1": draw(axis), "axis2": draw(axis)}


@st.composite
def alike(draw: Any) -> Drawn:
    shape = draw(shapes)
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    return [draw(numbers(shape)), draw(numbers(shape))], {"axis": axis}


@st.composite
def triangles(draw: Any) -> Drawn:
    x = draw(numbers(hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=3)))
    return [x], {"k": draw(st.integers(-2, 2))}


@st.composite
def taken(draw: Any) -> Drawn:
    (x,), options = draw(along_axis() | numbers(full_shapes).map(lambda x: ([x], {"axis": None})))
    axis = options["axis"]
    length = x.size if axis is None else x.shape[axis]
    places = hnp.arrays(np.int64, shapes, elements=st.integers(-length, length - 1))
    return [x], {"indices": draw(places), "axis": axis}


@st.composite
def taken_along(draw: Any) -> Drawn:
    (x,), options = draw(along_axis())
    axis = options["axis"]
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 3))
    places = hnp.arrays(np.int64, shape, elements=st.integers(0, x.shape[axis] - 1))
    return [x], {"indices": draw(places), "axis": axis}


@st.composite
def ranked(draw: Any) -> Drawn:
    (x,), options = draw(along_axis(distinct))
    k = draw(st.integers(0, x.shape[options["axis"]]))
    return [x], options | {"k": k, "largest": draw(st.booleans())}


@st.composite
def products(draw: Any) -> Drawn:
    both = draw(
        hnp.mutually_broadcastable_shapes(
            signature=np.matmul.signature, max_dims=2, min_side=0, max_side=3
        )
    )
    a, b = both.input_shapes
    return [draw(numbers(a)), draw(numbers(b))], {}


@st.composite
def reshaped(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    whole = draw(st.sampled_from([(x.size,), (1, x.size), (*x.shape, 1), x.shape]))
    return [x], {"shape": (-1,) if x.size and draw(st.booleans()) else whole}


@st.composite
def transposed(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    signed = [a - x.ndim * draw(st.booleans()) for a in draw(st.permutations(range(x.ndim)))]
    return [x], {"axes": draw(st.sampled_from([tuple(signed), None]))}


@st.composite
def widened(draw: Any) -> Drawn:
    x = draw(numbers(shapes))
    shape = tuple(3 if n == 1 else n for n in x.shape)
    return [x], {"shape": (*draw(st.sampled_from([(), (2,), (2, 1)])), *shape)}


@st.composite
def joined(draw: Any) -> Drawn:
    shape = draw(lines)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    at = axis % len(shape)
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    parts = [draw(numbers((*shape[:at], n, *shape[at + 1 :]))) for n in lengths]
    return parts, {"axis": axis}


@st.composite
def indexed(draw: Any) -> Drawn:
    x = draw(numbers(lines))
    basic = hnp.basic_indices(x.shape, allow_newaxis=True, max_dims=4)
    sizes = hnp.array_shapes(max_dims=2, min_side=0)
    listed = hnp.integer_array_indices(x.shape, result_shape=sizes) if x.size else basic
    masks = hnp.arrays(np.bool_, x.shape)
    rows = hnp.arrays(np.bool_, x.shape[0]).map(lambda mask: (mask, Ellipsis))
    return [x], {"index": draw(st.one_of(basic, listed, masks, rows))}


@st.composite
def gathered(draw: Any) -> Drawn:
    x = draw(numbers(full_shapes))
    sizes = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0)
    return [x], {"index": draw(hnp.integer_array_indices(x.shape, result_shape=sizes))}


@st.composite
def scattered(draw: Any) -> Drawn:
    (x,), options = draw(indexed())
    return [draw(numbers(x[options["index"]].shape))], options | {"shape": x.shape}


@st.composite
def linear_inputs(draw: Any) -> Drawn:
    lead = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    rows, columns = draw(st.integers(0, 3)), draw(side)
    parts = [draw(numbers((*lead, rows))), draw(numbers((rows, columns)))]
    return parts + [draw(numbers(columns))] * draw(st.booleans()), {}


@st.composite
def norm_inputs(draw: Any, most: int) -> Drawn:
    """An array, and up to so many rows such as a gain and a bias."""
    x = draw(numbers(filled_rows))
    count = draw(st.integers(0, most))
    return [x, *(draw(numbers(x.shape[-1])) for _ in range(count))], {"eps": 0.125}


@st.composite
def loss_inputs(draw: Any) -> Drawn:
    lead = draw(shapes)
    classes = draw(side)
    ids = draw(hnp.arrays(np.int64, lead, elements=st.integers(-1, classes - 1)))
    if ids.size:
        ids.reshape(-1)[0] = draw(st.integers(0, classes - 1))  # at least one counts
    return [draw(numbers((*lead, classes)))], {
        "targets": ids,
        "ignore_index": -1,
        "label_smoothing": draw(st.sampled_from([0.0, 0.25])),
        # A mean of nothing is 0 here and nan in PyTorch: see the conventions.
        "reduction": draw(st.sampled_from(["mean", "sum", "none"] if ids.size else ["sum"])),
    }


@st.composite
def lookups(draw: Any) -> Drawn:
    count = draw(side)
    kind = draw(st.sampled_from([np.int32, np.int64, np.uint8, np.uint16]))
    ids = draw(hnp.arrays(kind, shapes, elements=st.integers(0, count - 1)))
    return [draw(numbers((count, draw(side))))], {"ids": ids}


@st.composite
def attention_options(draw: Any, batch: int, heads: int, queries: int, keys: int) -> Any:
    shape = draw(st.sampled_from([(queries, keys), (1, 1, 1, keys), (batch, heads, queries, keys)]))
    keep = draw(hnp.arrays(np.bool_, shape))
    mask = draw(st.sampled_from([None, keep, np.where(keep, 0.25, -0.5)]))
    drop = draw(st.sampled_from([None, 0.0]))
    if drop is not None:
        drop = draw(hnp.arrays(np.bool_, (batch, heads, queries, keys))) * 2.0
    return {"n_head": heads, "causal": draw(st.booleans()), "mask": mask, "drop": drop}


@st.composite
def attention_inputs(draw: Any) -> Drawn:
    batch, queries = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    heads, keys = draw(st.integers(1, 2)), draw(st.integers(0, 3))
    wide, deep = draw(side), draw(side)
    parts = [
        draw(numbers((batch, queries, heads * wide))),
        draw(numbers((batch, keys, heads * wide))),
        draw(numbers((batch, keys, heads * deep))),
    ]
    return parts, draw(attention_options(batch, heads, queries, keys))


@st.composite
def packed_inputs(draw: Any) -> Drawn:
    batch, length = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    heads, wide = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    options = draw(attention_options(batch, heads, length, length))
    return [draw(numbers((batch, length, 3 * heads * wide)))], options
