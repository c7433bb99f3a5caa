"""Models: GPT and its configuration, imported on first use."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinygrad_tf.models.config import GPTConfig
    from tinygrad_tf.models.gpt import GPT

__all__ = ["GPT", "GPTConfig"]


def __getattr__(name: str) -> Any:
    # Help must not wait for NumPy, and it needs the presets of this room.
    if name == "GPT":
        from tinygrad_tf.models.gpt import GPT

        return GPT
    if name == "GPTConfig":
        from tinygrad_tf.models.config import GPTConfig

        return GPTConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
