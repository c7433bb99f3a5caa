"""The encoder-decoder written once more, in PyTorch's own functions, as a reference.

It shares no code with the library: it is a function of a configuration and of named weights.
`modules_of` gives the same weights to PyTorch's own nn.Transformer.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.models.torch_gpt import ACTIVATIONS, Weights, sinusoids
from tinygrad_tf.models.config import EncoderConfig, Seq2SeqConfig

Config = Seq2SeqConfig | EncoderConfig


def embed(config: Config, w: Weights, name: str, given: Any) -> torch.Tensor:
    """Ids (B, T) or vectors (B, T, F), with positions."""
    table = w.get(f"{name}.input.embedding.weight")
    if name == "decoder" and getattr(config, "share_embeddings", False):
        table = w["encoder.input.embedding.weight"]
    if table is not None:
        x = F.embedding(torch.as_tensor(np.asarray(given)), table)
        if config.scale_embedding:
            x = x * math.sqrt(config.d_model)
    else:
        weight = w[f"{name}.input.projection.weight"]
        x = torch.as_tensor(np.asarray(given), dtype=weight.dtype) @ weight
        x = x + w[f"{name}.input.projection.bias"]
    length = x.shape[1]
    if config.positions == "learned":
        return x + w[f"{name}.input.positions.weight"][:length]
    return x + sinusoids(length, config.d_model).to(x.dtype)


def affine(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    y = x @ w[name + ".weight"]
    return y + w[name + ".bias"] if name + ".bias" in w else y


def norm(config: Config, w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    shift = w.get(name + ".bias")
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], shift, config.layer_norm_eps)


def attend(
    config: Config, w: Weights, p: str, x: torch.Tensor, memory: torch.Tensor, keep: torch.Tensor
) -> torch.Tensor:
    """Head by head; keep (B, T or 1, S)."""
    heads = config.n_heads
    d_k = config.d_k or config.d_model // heads
    d_v = config.d_v or config.d_model // heads
    widths = [heads * d_k, heads * d_k, heads * d_v]
    weights = w[p + ".c_attn.weight"].split(widths, dim=1)
    biases: Any = (0.0, 0.0, 0.0)
    if p + ".c_attn.bias" in w:
        biases = w[p + ".c_attn.bias"].split(widths)
    q, k, v = (
        source @ weight + bias
        for source, weight, bias in zip((x, memory, memory), weights, biases, strict=True)
    )
    parts = []
    for h in range(heads):
        qh, kh = q[..., h * d_k : (h + 1) * d_k], k[..., h * d_k : (h + 1) * d_k]
        scores = (qh @ kh.transpose(1, 2) / math.sqrt(d_k)).masked_fill(~keep, -math.inf)
        parts.append(torch.softmax(scores, dim=-1) @ v[..., h * d_v : (h + 1) * d_v])
    return affine(w, p + ".c_proj", torch.cat(parts, dim=-1))


def stack(
    config: Config,
    w: Weights,
    name: str,
    n_layers: int,
    x: torch.Tensor,
    keep: torch.Tensor,
    memory: torch.Tensor | None = None,
    memory_keep: torch.Tensor | None = None,
) -> torch.Tensor:
    pre = config.norm == "pre"
    for i in range(n_layers):
        p = f"{name}.h.{i}"

        def own(h: torch.Tensor, p: str = p) -> torch.Tensor:
            return attend(config, w, p + ".attn", h, h, keep)

        def cross(h: torch.Tensor, p: str = p) -> torch.Tensor:
            assert memory is not None and memory_keep is not None
            return attend(config, w, p + ".cross_attn", h, memory, memory_keep)

        def feed(h: torch.Tensor, p: str = p) -> torch.Tensor:
            hidden = ACTIVATIONS[config.activation](affine(w, p + ".mlp.c_fc", h))
            return affine(w, p + ".mlp.c_proj", hidden)

        parts = [("ln_1", own), ("ln_cross", cross), ("ln_2", feed)]
        for ln, part in parts if memory is not None else [parts[0], parts[2]]:
            if pre:
                x = x + part(norm(config, w, f"{p}.{ln}", x))
            else:
                x = norm(config, w, f"{p}.{ln}", x + part(x))
    return norm(config, w, f"{name}.ln_f", x) if pre else x


def encode(config: Config, w: Weights, src: Any, keep: torch.Tensor) -> torch.Tensor:
    """keep (B, S) -> (B, S, C)."""
    n = config.n_layers if isinstance(config, EncoderConfig) else config.n_encoder_layers
    return stack(config, w, "encoder", n, embed(config, w, "encoder", src), keep[:, None])


def logits(
    config: Seq2SeqConfig, w: Weights, src: Any, keep: torch.Tensor, tgt: Any
) -> torch.Tensor:
    """(B, T, V)."""
    memory = encode(config, w, src, keep)
    given = torch.as_tensor(np.asarray(tgt))
    length = given.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool).tril()
    own_keep = earlier & (given != config.pad_id)[:, None]
    x = embed(config, w, "decoder", tgt)
    n = config.n_decoder_layers
    x = stack(config, w, "decoder", n, x, own_keep, memory, keep[:, None])
    if not config.tie_output:
        return affine(w, "output", x)
    side = "encoder" if config.share_embeddings else "decoder"
    return x @ w[f"{side}.input.embedding.weight"].T


def loss(
    config: Seq2SeqConfig, w: Weights, src: Any, keep: torch.Tensor, tgt: Any, labels: Any
) -> torch.Tensor:
    """Mean nats per label that is not PAD."""
    return F.cross_entropy(
        logits(config, w, src, keep, tgt).flatten(0, 1),
        torch.as_tensor(np.asarray(labels)).flatten(),
        ignore_index=config.pad_id,
        label_smoothing=config.label_smoothing,
    )


def give_attention(theirs: nn.MultiheadAttention, state: dict[str, Any], prefix: str) -> None:
    """Copy the weights of one attention, ours stored as [in, out] and theirs as [out, in]."""
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.tensor(state[f"{prefix}.c_attn.weight"].T))
        theirs.out_proj.weight.copy_(torch.tensor(state[f"{prefix}.c_proj.weight"].T))
        if theirs.in_proj_bias is not None:
            theirs.in_proj_bias.copy_(torch.tensor(state[f"{prefix}.c_attn.bias"]))
            theirs.out_proj.bias.copy_(torch.tensor(state[f"{prefix}.c_proj.bias"]))


def give_stack(theirs: Any, state: dict[str, Any], name: str, *, pre: bool) -> None:
    """Copy the weights of a stack into PyTorch's TransformerEncoder or TransformerDecoder."""
    norms = {"encoder": ("ln_1", "ln_2"), "decoder": ("ln_1", "ln_cross", "ln_2")}[name]
    for i, layer in enumerate(theirs.layers):
        p = f"{name}.h.{i}"
        give_attention(layer.self_attn, state, f"{p}.attn")
        if name == "decoder":
            give_attention(layer.multihead_attn, state, f"{p}.cross_attn")
        pairs = [(getattr(layer, f"norm{k}"), f"{p}.{ln}", False) for k, ln in enumerate(norms, 1)]
        pairs += [(layer.linear1, f"{p}.mlp.c_fc", True), (layer.linear2, f"{p}.mlp.c_proj", True)]
        for module, key, turned in pairs:
            _give(module, state, key, turned)
    if pre:
        _give(theirs.norm, state, f"{name}.ln_f", False)
    else:
        theirs.norm = None  # the paper has no further norm at the end


def _give(module: Any, state: dict[str, Any], key: str, turned: bool) -> None:
    weight = torch.tensor(state[f"{key}.weight"])
    with torch.no_grad():
        module.weight.copy_(weight.T if turned else weight)
        module.bias.copy_(torch.tensor(state[f"{key}.bias"]))
