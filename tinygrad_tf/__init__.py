"""tinygrad_tf: reverse-mode autograd on NumPy, and the transformer built on it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.checking import GradcheckError, gradcheck
    from tinygrad_tf.drawing import draw
    from tinygrad_tf.engine import ops
    from tinygrad_tf.engine.graph import enable_grad, no_grad
    from tinygrad_tf.engine.mutation import detect_anomaly, mutation_checks_off
    from tinygrad_tf.engine.tensor import Tensor
    from tinygrad_tf.engine.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
    from tinygrad_tf.scalar import Value

__version__ = "0.1.0"
__all__ = [
    "GradcheckError",
    "Tensor",
    "Value",
    "detect_anomaly",
    "draw",
    "enable_grad",
    "grad",
    "gradcheck",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "mutation_checks_off",
    "no_grad",
    "ops",
    "value_and_grad",
    "vjp",
]

_HOMES = {
    "Value": "tinygrad_tf.scalar",
    "Tensor": "tinygrad_tf.engine.tensor",
    "grad": "tinygrad_tf.engine.transforms",
    "no_grad": "tinygrad_tf.engine.graph",
    "enable_grad": "tinygrad_tf.engine.graph",
    "detect_anomaly": "tinygrad_tf.engine.mutation",
    "mutation_checks_off": "tinygrad_tf.engine.mutation",
    "ops": "tinygrad_tf.engine",
    "value_and_grad": "tinygrad_tf.engine.transforms",
    "vjp": "tinygrad_tf.engine.transforms",
    "jvp": "tinygrad_tf.engine.transforms",
    "hvp": "tinygrad_tf.engine.transforms",
    "jacobian": "tinygrad_tf.engine.transforms",
    "hessian": "tinygrad_tf.engine.transforms",
    "gradcheck": "tinygrad_tf.checking",
    "GradcheckError": "tinygrad_tf.checking",
    "draw": "tinygrad_tf.drawing",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: the help of the command line must not wait for NumPy.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
