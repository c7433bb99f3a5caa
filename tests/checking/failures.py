"""Points to check gradients at, and the error of a gradient that is wrong."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import GradcheckError, gradcheck

X = np.array([[0.5, -1.25, 2.0], [0.25, 1.5, -0.75]])
ROW = np.array([1.5, -0.5, 0.25])


def failure(*arguments: Any, **options: Any) -> GradcheckError:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(*arguments, **options)
    return caught.value
