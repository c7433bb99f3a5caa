"""Type aliases that every room shares, and the target that does not count."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# A target with this value adds nothing to a loss.
IGNORE = -1
