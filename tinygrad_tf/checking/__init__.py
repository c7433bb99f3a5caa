"""Check gradients, by differences that explain what is wrong and by laws that need no differences.

`gradcheck` is a function, and `tinygrad_tf.gradcheck` must remain that function; so no module has
its name (importing such a module would replace the function).
"""

from tinygrad_tf.checking.check import gradcheck
from tinygrad_tf.checking.report import GradcheckError, GradientEntry, Report

__all__ = ["GradcheckError", "GradientEntry", "Report", "gradcheck"]
