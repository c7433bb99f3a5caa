"""Models: GPT and its configuration, loaded when first asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.models.config import GPTConfig
    from tinygrad_tf.models.gpt import GPT

__all__ = ["GPT", "GPTConfig"]


def __getattr__(name: str) -> Any:
    # Help must not wait for NumPy, and the presets live beside the models.
    if name == "GPT":
        from tinygrad_tf.models.gpt import GPT

        return GPT
    if name == "GPTConfig":
        from tinygrad_tf.models.config import GPTConfig

        return GPTConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
