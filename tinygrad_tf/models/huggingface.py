"""Hugging Face's GPT-2 layout, in which a GPT is written wherever it is a GPT-2.

The tensors have the same names and shapes ([in, out], Q, K, V side by side), so a run loads with
`GPT2LMHeadModel.from_pretrained(run)`. What GPT-2 lacks is written exactly where that is
possible: absent biases as zeros, sinusoidal positions as a table. Otherwise the weights are
stored under our own names, and `why_not` gives the reason. Only configurations and arrays by name
are known here, no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.types import Array

PREFIX = "transformer."
ACTIVATION_NAMES = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new"}
ACTIVATIONS = {name: ours for ours, name in ACTIVATION_NAMES.items()} | {
    "gelu_pytorch_tanh": "gelu_tanh"
}
# Variants of GPT-2 that this GPT does not compute, with the values under which it is the same.
PLAIN_VALUES = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}


def why_not(config: GPTConfig) -> str | None:
    """Return why Hugging Face cannot load a model of this shape as a GPT-2, or None if it can."""
    if config.norm == "post":
        return "its norms come after each part (norm=post), GPT-2's before"
    if config.head_bias:
        return "its output layer has a bias, GPT-2's has none"
    return None


def config_json(config: GPTConfig, **tt: Any) -> dict[str, Any]:
    """Return the content of config.json: Hugging Face's fields, and ours in the block "tt"."""
    reason = why_not(config)
    ours = {"schema_version": 1, **tt, "model": config.as_dict(), "huggingface": reason or "loads"}
    if reason is not None:
        return {"model_type": "tinygrad_tf", "architectures": [], "tt": ours}
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab_size,
        "n_positions": config.block_size,
        "n_ctx": config.block_size,
        "n_embd": config.n_embd,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_inner": config.d_ff,
        "activation_function": ACTIVATION_NAMES[config.activation],
        "layer_norm_epsilon": config.layer_norm_eps,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "initializer_range": config.init_std,
        **PLAIN_VALUES,
        "reorder_and_upcast_attn": False,
        "tie_word_embeddings": config.tie_weights,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
        "tt": ours,
    }


def config_from_json(content: Mapping[str, Any]) -> GPTConfig:
    """Return the GPT that a config.json describes, ours or Hugging Face's; InputError if none."""
    block = content.get("tt")
    if isinstance(block, Mapping):
        model, task = block.get("model"), block.get("task")
        if isinstance(task, str):
            raise InputError(
                f"this is a run of the task {task}, not a GPT", "give the run of a GPT"
            )
        if not isinstance(model, dict):
            raise InputError('config.json has no "model" in its "tt" block', "was it edited?")
        return GPTConfig.from_dict(model)
    if content.get("model_type") != "gpt2":
        raise InputError(
            f"config.json describes a {content.get('model_type', 'nameless')!r} model",
            "give the directory of a run, or of a Hugging Face GPT-2",
        )
    for name, plain in PLAIN_VALUES.items():
        if content.get(name, plain) != plain:
            raise InputError(f"this GPT-2 has {name}={content[name]}, which is not computed here")
    activation = content.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise InputError(f"this GPT-2 uses the activation {activation!r}, which is not known here")
    missing = [n for n in ("vocab_size", "n_embd", "n_layer", "n_head") if n not in content]
    if missing:
        raise InputError(f"config.json lacks {', '.join(missing)}", "was the download complete?")
    return GPTConfig(
        vocab_size=content["vocab_size"],
        block_size=content.get("n_positions", content.get("n_ctx", 1024)),
        n_layer=content["n_layer"],
        n_head=content["n_head"],
        n_embd=content["n_embd"],
        d_ff=content.get("n_inner"),
        dropout=content.get("resid_pdrop", 0.1),
        activation=ACTIVATIONS[activation],
        tie_weights=content.get("tie_word_embeddings", True),
        layer_norm_eps=content.get("layer_norm_epsilon", 1e-5),
        init_std=content.get("initializer_range", 0.02),
    )


def to_gpt2(
    config: GPTConfig, parameters: Mapping[str, Array], position_table: Array | None = None
) -> dict[str, Array]:
    """Return the arrays of a model as they are written: under GPT-2's names, if it is a GPT-2.

    position_table: the sinusoidal positions (block_size, n_embd) of a model that has no `wpe`.
    """
    if why_not(config) is not None:
        return dict(parameters)
    tensors = {n if n == "lm_head.weight" else PREFIX + n: x for n, x in parameters.items()}
    if position_table is not None:
        tensors[f"{PREFIX}wpe.weight"] = position_table
    for name, width in _biases(config).items():
        tensors.setdefault(PREFIX + name, np.zeros(width, np.float32))
    return tensors


def from_gpt2(config: GPTConfig, tensors: Mapping[str, Array], names: Set[str]) -> dict[str, Array]:
    """Return the arrays of a file by our parameters' `names`; the reverse of `to_gpt2`.

    Accepts GPT-2's names with and without their prefix. Leaves out what the model does not need:
    GPT-2's buffers, biases of zero, a table that is tied or computed.
    """
    state = {name.removeprefix(PREFIX): x for name, x in tensors.items()}
    if why_not(config) is not None:
        return state
    optional = {f"h.{i}.attn.{b}" for i in range(config.n_layer) for b in ("bias", "masked_bias")}
    optional |= {n for n in _biases(config) if n in state and not np.any(state[n])}
    optional |= {"wpe.weight"} if config.positions == "sinusoidal" else set()
    optional |= {"lm_head.weight"} if config.tie_weights else set()
    return {name: x for name, x in state.items() if name in names or name not in optional}


def _biases(config: GPTConfig) -> dict[str, int]:
    """Return the names and lengths of all biases of a GPT-2."""
    c, inner = config.n_embd, config.feed_forward_width
    parts = {
        "ln_1": c,
        "attn.c_attn": 3 * c,
        "attn.c_proj": c,
        "ln_2": c,
        "mlp.c_fc": inner,
        "mlp.c_proj": c,
    }
    names = {f"h.{i}.{part}.bias": n for i in range(config.n_layer) for part, n in parts.items()}
    return names | {"ln_f.bias": c}
