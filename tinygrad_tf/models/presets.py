"""Recipes with a name: the shape of a model and how it is trained. No NumPy is needed here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class Preset:
    """A named recipe: `model` are fields of GPTConfig, `training` fields of TrainOptions."""

    name: str
    summary: str
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


_NANOGPT = {
    "learning_rate": 1e-3,
    "min_lr": 1e-4,
    "warmup": 100,
    "beta1": 0.9,
    "beta2": 0.99,
    "weight_decay": 0.1,
    "grad_clip": 1.0,
    "eval_every": 250,
}

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "default",
            "for the embedded stories: 2 layers, 4 heads, 96 wide, context of the longest story",
            {
                "n_layer": 2,
                "n_head": 4,
                "n_embd": 96,
                "activation": "gelu_tanh",
                "init_std": 0.04,
                "hidden_std": 0.07,
            },
            {
                "steps": 3000,
                "batch_size": 12,
                "learning_rate": 4e-3,
                "min_lr": 0.0,
                "warmup": 50,
                "beta1": 0.9,
                "beta2": 0.99,
                "weight_decay": 0.2,
                "grad_clip": 1.0,
                "eval_every": 200,
            },
        ),
        Preset(
            "micro",
            "microgpt's size, for names: 1 layer, 4 heads, 16 wide, context 16",
            {
                "n_layer": 1,
                "n_head": 4,
                "n_embd": 16,
                "block_size": 16,
                "bias": False,
                "activation": "relu",
                "tie_weights": False,
            },
            {
                **_NANOGPT,
                "steps": 5000,
                "batch_size": 32,
                "learning_rate": 1e-2,
                "weight_decay": 0.0,
                "eval_every": 500,
            },
        ),
        Preset(
            "seed",
            "source document S0: 8 layers, 4 heads, 64 wide, context 16, ReLU, sinusoidal, untied",
            {
                "n_layer": 8,
                "n_head": 4,
                "n_embd": 64,
                "block_size": 16,
                "activation": "relu",
                "positions": "sinusoidal",
                "tie_weights": False,
                "head_bias": True,
                "qkv_bias": False,
                "dropout": 0.1,
            },
            {
                "steps": 5000,
                "batch_size": 4,
                "learning_rate": 1e-3,
                "min_lr": 1e-3,
                "warmup": 0,
                "beta1": 0.9,
                "beta2": 0.999,
                "weight_decay": 0.01,
                "grad_clip": 0.0,
                "eval_every": 500,
            },
        ),
        Preset(
            "nano-cpu",
            "nanoGPT's recipe for a laptop: 4 layers, 4 heads, 128 wide, context 64",
            {
                "n_layer": 4,
                "n_head": 4,
                "n_embd": 128,
                "block_size": 64,
                "bias": False,
                "hidden_std": 0.06,
            },
            {**_NANOGPT, "steps": 2000, "batch_size": 12},
        ),
        Preset(
            "baby",
            "nanoGPT's baby GPT: 6 layers, 6 heads, 384 wide, context 256",
            {
                "n_layer": 6,
                "n_head": 6,
                "n_embd": 384,
                "block_size": 256,
                "bias": False,
                "dropout": 0.2,
            },
            {**_NANOGPT, "steps": 5000, "batch_size": 64},
        ),
        Preset(
            "gpt2",
            "GPT-2 small, 124M: 12 layers, 12 heads, 768 wide, context 1024",
            {
                "n_layer": 12,
                "n_head": 12,
                "n_embd": 768,
                "block_size": 1024,
                "activation": "gelu_tanh",
            },
            {
                **_NANOGPT,
                "steps": 600000,
                "batch_size": 12,
                "learning_rate": 6e-4,
                "min_lr": 6e-5,
                "warmup": 2000,
                "beta2": 0.95,
                "eval_every": 1000,
            },
        ),
    )
}


def preset(name: str) -> Preset:
    """Return the preset of that name; InputError lists those that exist."""
    if name not in PRESETS:
        raise InputError(f"there is no preset {name!r}", f"choose one of {', '.join(PRESETS)}")
    return PRESETS[name]
