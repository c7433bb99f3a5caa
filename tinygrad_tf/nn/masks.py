"""Which keys a query may attend to, as boolean arrays: True is kept.

They broadcast to (B, H, T, S): rows are queries, columns are keys. Padding hides columns only:
what a padded query computes is read by nobody. Attention turns a mask into 0 and -inf, added to
the scores before softmax; a query whose keys are all hidden receives zeros, and passes back a
gradient of zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_tf.types import Mask


def padding_mask(ids: Any, pad_id: int) -> Mask:
    """Hides the PAD keys of integer ids (B, S): (B, 1, 1, S)."""
    return np.asarray(np.asarray(ids) != pad_id)[:, None, None, :]


def length_mask(lengths: Any, longest: int) -> Mask:
    """Hides the keys beyond each row's length, for vectors that have no PAD: (B, 1, 1, S)."""
    return np.asarray(np.arange(longest) < np.asarray(lengths)[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None) -> Mask:
    """Hides the keys after each query: (1, 1, T, S), S being T without `keys`.

    The last query stands at the last key, so that T < S is the case of earlier keys in a cache.
    """
    keys = queries if keys is None else keys
    return np.tri(queries, keys, keys - queries, dtype=bool)[None, None]


def target_mask(ids: Any, pad_id: int) -> Mask:
    """Hides later and PAD keys of a decoder's own ids (B, T): (B, 1, T, T)."""
    return causal_mask(np.shape(ids)[1]) & padding_mask(ids, pad_id)


def cross_mask(source_ids: Any, pad_id: int) -> Mask:
    """Hides the source's PAD from every query of the target: (B, 1, 1, S).

    The target's own PAD and order hide nothing of the source.
    """
    return padding_mask(source_ids, pad_id)
