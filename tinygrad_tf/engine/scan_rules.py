"""The table, continued: products, and running sums and products along one axis.

The gradient of a product is the product over the entry. Where an entry is 0 that says nothing, and
the products of what stands before and after each entry are taken instead: exact at any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.engine.graph import Op


def _cut(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _reversed(x: Any, axis: int) -> Any:
    return _cut(x, axis, None, None, -1)


def _product_before(x: Any, axis: int) -> Any:
    """1, x0, x0 x1, ...: of each entry, the product of those before it."""
    first = _cut(x, axis, 0, 1)
    rest = cumprod(_cut(x, axis, 0, -1), axis=axis)
    return np.concatenate([np.ones(first.shape, x.dtype), rest], axis=axis)


def _prod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    g, y = np.expand_dims(g, axis), np.expand_dims(y, axis)
    if not np.any(x == 0.0):
        return g * y / x
    after = _reversed(_product_before(_reversed(x, axis), axis), axis)
    return g * _product_before(x, axis) * after


def _cumsum_rule(g: Any, _y: Any, _x: Any, *, axis: int) -> Any:
    return _reversed(np.cumsum(_reversed(g, axis), axis=axis), axis)


def _cumprod_rule(g: Any, y: Any, x: Any, *, axis: int) -> Any:
    if not np.any(x == 0.0):
        return _cumsum_rule(g * y, None, None, axis=axis) / x
    # What entry k does to the products from k on: g_k + x_(k+1) (g_(k+1) + x_(k+2) (...)).
    later = _cut(g, axis, -1, None)
    parts = [later]
    for k in range(x.shape[axis] - 2, -1, -1):
        later = _cut(g, axis, k, k + 1) + _cut(x, axis, k + 1, k + 2) * later
        parts.append(later)
    return _product_before(x, axis) * np.concatenate(parts[::-1], axis=axis)


prod = Op("prod", lambda x, axis: np.multiply.reduce(x, axis=axis), (_prod_rule,))
cumsum = Op("cumsum", lambda x, axis: np.cumsum(x, axis=axis), (_cumsum_rule,))
cumprod = Op("cumprod", lambda x, axis: np.cumprod(x, axis=axis), (_cumprod_rule,))
