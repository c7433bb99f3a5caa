"""Masks: which keys a query may attend to, as boolean arrays in which True is kept.

Masks broadcast to (B, H, T, S): rows are queries, columns are keys. Padding hides columns only,
since no position uses the result of a padded query. Attention turns a mask into 0 and -inf, added
to the scores before softmax; a query whose keys are all hidden receives zeros, and passes back a
gradient of zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.types import Mask


def padding_mask(ids: Any, pad_id: int) -> Mask:
    """Hide the PAD keys of integer ids (B, S): (B, 1, 1, S)."""
    return np.asarray(np.asarray(ids) != pad_id)[:, None, None, :]


def length_mask(lengths: Any, longest: int) -> Mask:
    """Hide the keys beyond each row's length, for vectors that have no PAD: (B, 1, 1, S)."""
    return np.asarray(np.arange(longest) < np.asarray(lengths)[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None) -> Mask:
    """Hide the keys after each query: (1, 1, T, S), where S is T unless `keys` is given.

    The last query has the position of the last key; T < S where earlier keys are in a cache.
    """
    keys = queries if keys is None else keys
    return np.tri(queries, keys, keys - queries, dtype=bool)[None, None]


def target_mask(ids: Any, pad_id: int) -> Mask:
    """Hide later and PAD keys of a decoder's own ids (B, T): (B, 1, T, T)."""
    return causal_mask(np.shape(ids)[1]) & padding_mask(ids, pad_id)
