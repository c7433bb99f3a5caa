"""Checking gradients: by differences that explain what is wrong, and by laws that need none.

`gradcheck` is a function, and both `from tinygrad_tf import gradcheck` and `tinygrad_tf.gradcheck`
mean it; so no module bears that name (importing one would put the module in its place).
"""

from tinygrad_tf.checking.check import gradcheck
from tinygrad_tf.checking.report import Entry, GradcheckError, Report

__all__ = ["Entry", "GradcheckError", "Report", "gradcheck"]
