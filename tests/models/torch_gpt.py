"""The same GPT written once more, in PyTorch's own functions, as a reference.

It shares no code with the library: it is a function of a configuration and of named weights.
"""

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from tinygrad_tf.models import GPT, GPTConfig

Weights = dict[str, torch.Tensor]
ACTIVATIONS: dict[str, Any] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def weights_of(gpt: GPT) -> Weights:
    """A copy of every parameter as a PyTorch leaf of the same dtype."""
    return {n: torch.tensor(x, requires_grad=True) for n, x in gpt.state_dict().items()}


def sinusoids(length: int, width: int) -> torch.Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos."""
    table = torch.zeros(length, width, dtype=torch.float64)
    for i in range(0, width, 2):
        angle = torch.arange(length, dtype=torch.float64) / 10000 ** (i / width)
        table[:, i] = torch.sin(angle)
        table[:, i + 1 : i + 2] = torch.cos(angle)[:, None][:, : width - i - 1]
    return table


def logits(config: GPTConfig, w: Weights, ids: Any) -> torch.Tensor:
    """(B, T) -> (B, T, V)."""
    x = F.embedding(torch.as_tensor(np.asarray(ids)), w["wte.weight"])
    length, width = x.shape[1:]
    if config.positions == "learned":
        x = x + w["wpe.weight"][:length]
    else:
        x = x + sinusoids(length, width).to(torch.float32).to(x.dtype)
    for i in range(config.n_layer):
        p = f"h.{i}."
        if config.norm == "pre":
            x = x + attend(config, w, p, norm(config, w, p + "ln_1", x))
            x = x + feed(config, w, p, norm(config, w, p + "ln_2", x))
        else:
            x = norm(config, w, p + "ln_1", x + attend(config, w, p, x))
            x = norm(config, w, p + "ln_2", x + feed(config, w, p, x))
    if config.norm == "pre":
        x = norm(config, w, "ln_f", x)
    table = w["wte.weight"] if config.tie_weights else w["lm_head.weight"]
    return F.linear(x, table, w.get("head_bias"))


def loss(config: GPTConfig, w: Weights, ids: Any, targets: Any) -> torch.Tensor:
    """Mean nats per target that is not -1."""
    scores = logits(config, w, ids).flatten(0, 1)
    return F.cross_entropy(scores, torch.as_tensor(np.asarray(targets)).flatten(), ignore_index=-1)


def norm(config: GPTConfig, w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    gain, shift = w[name + ".weight"], w.get(name + ".bias")
    return F.layer_norm(x, x.shape[-1:], gain, shift, config.layer_norm_eps)


def apply(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    y = x @ w[name + ".weight"]
    return y + w[name + ".bias"] if name + ".bias" in w else y


def attend(config: GPTConfig, w: Weights, p: str, x: torch.Tensor) -> torch.Tensor:
    batch, length, width = x.shape
    q, k, v = (
        part.view(batch, length, config.n_head, -1).transpose(1, 2)
        for part in apply(w, p + "attn.c_attn", x).split(width, dim=2)
    )
    scores = q @ k.transpose(2, 3) / math.sqrt(width // config.n_head)
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    context = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1) @ v
    return apply(w, p + "attn.c_proj", context.transpose(1, 2).reshape(batch, length, width))


def feed(config: GPTConfig, w: Weights, p: str, x: torch.Tensor) -> torch.Tensor:
    hidden = ACTIVATIONS[config.activation](apply(w, p + "mlp.c_fc", x))
    return apply(w, p + "mlp.c_proj", hidden)
