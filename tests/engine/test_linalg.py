"""Einstein's sums beside NumPy's."""

import math

import numpy as np

from tinygrad_tf import ops

inf, nan = math.inf, math.nan


def test_einsum_is_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 4)), rng.normal(size=(1, 3))
    for subscripts, *operands in (
        ("bij,jk->bik", a, b),
        ("bii->b", a),
        ("bii", a),
        ("...i,ij", a, b),
        ("bij, xi -> bj", a, c),
        ("...ij->...ji", a),
        ("bij,jk,xj->kb", a, b, c),
        ("->", np.array(2.0)),
        ("...,...", a, c),
    ):
        ours = ops.einsum(subscripts, *operands)
        theirs = np.einsum(subscripts, *operands)
        assert ours.shape == np.shape(theirs)
        np.testing.assert_allclose(ours.data, theirs, rtol=1e-13, atol=1e-15)
    # The diagonal is chosen: what stands beside it does not matter, be it infinite.
    assert ops.einsum("ii", np.array([[1.0, inf], [nan, 2.0]])).item() == 3.0
