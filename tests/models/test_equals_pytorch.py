"""The GPT computes what an independent one in PyTorch computes: logits, gradients, training."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import grad
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.train.optim import AdamW

torch = pytest.importorskip("torch")
from tests.models import torch_gpt  # noqa: E402  # after the skip

pytestmark = pytest.mark.reference

# Every value of every choice, in few models.
VARIANTS: dict[str, dict[str, Any]] = {
    "gpt2": {"activation": "gelu_tanh"},
    "nanogpt": {"bias": False, "activation": "gelu"},
    "untied": {"tie_weights": False, "activation": "relu"},
    "paper": {"norm": "post", "positions": "sinusoidal", "activation": "relu"},
    "seed": {
        "norm": "post",
        "positions": "sinusoidal",
        "tie_weights": False,
        "qkv_bias": False,
        "head_bias": True,
        "activation": "gelu_tanh",
    },
    "post, no bias": {"norm": "post", "bias": False, "activation": "gelu", "d_ff": 20},
    "one head": {"n_head": 1, "n_layer": 1, "positions": "sinusoidal", "layer_norm_eps": 1e-3},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def make(variant: str, dtype: Any = np.float32, seed: int = 0) -> GPT:
    """A small model whose every parameter, gains and biases too, is random and matters."""
    fields = {"n_layer": 2, "n_head": 3, "n_embd": 12, "block_size": 8, "init_std": 0.2}
    gpt = GPT(GPTConfig(vocab_size=11, **(fields | VARIANTS[variant])), seed)
    rng = np.random.default_rng(seed)
    for p in gpt.parameters():
        p.data += 0.1 * rng.standard_normal(p.shape, np.float32)
    return gpt.astype(dtype)


def batch(seed: int, length: int = 7) -> tuple[Any, Any]:
    """Ids and targets, of which some do not count."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 11, (3, length))
    targets = rng.integers(-1, 11, (3, length))
    return ids, targets


@every_variant
def test_logits(variant: str) -> None:
    gpt = make(variant)
    ids, _ = batch(0)
    theirs = torch_gpt.logits(gpt.config, torch_gpt.weights_of(gpt), ids)
    np.testing.assert_allclose(gpt(ids).data, theirs.detach().numpy(), atol=1e-5, rtol=1e-5)


@every_variant
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_the_gradient_of_every_parameter(variant: str, dtype: Any, tolerance: float) -> None:
    gpt = make(variant, dtype)
    weights = torch_gpt.weights_of(gpt)
    ids, targets = batch(1)
    loss, other = gpt.loss(ids, targets), torch_gpt.loss(gpt.config, weights, ids, targets)
    assert loss.dtype == dtype
    assert loss.item() == pytest.approx(other.item(), rel=tolerance)
    ours = grad(loss, gpt.named_parameters())
    theirs = dict(zip(weights, torch.autograd.grad(other, list(weights.values())), strict=True))
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert ours[name].dtype == dtype
        size = np.abs(expected.numpy()).max()
        np.testing.assert_allclose(
            ours[name], expected.numpy(), rtol=0, atol=tolerance * size, err_msg=name
        )


def test_second_derivatives_of_the_whole_model() -> None:
    gpt = make("gpt2", np.float64)
    weights = torch_gpt.weights_of(gpt)
    ids, targets = batch(2, length=4)
    own = gpt.named_parameters()
    first = grad(gpt.loss(ids, targets), own, create_graph=True)
    ours = grad(sum((g * g).sum() for g in first.values()), own)
    other = torch_gpt.loss(gpt.config, weights, ids, targets)
    their_first = torch.autograd.grad(other, list(weights.values()), create_graph=True)
    theirs = torch.autograd.grad(sum((g * g).sum() for g in their_first), list(weights.values()))
    for (name, mine), expected in zip(ours.items(), theirs, strict=True):
        size = np.abs(expected.numpy()).max()
        np.testing.assert_allclose(mine, expected.numpy(), rtol=0, atol=1e-9 * size, err_msg=name)


@pytest.mark.slow
@every_variant
def test_twenty_steps_of_adamw_with_clipping(variant: str) -> None:
    gpt = make(variant)
    weights = torch_gpt.weights_of(gpt)
    settings = {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8}
    decayed = [w for w in weights.values() if w.ndim >= 2]
    kept = [w for w in weights.values() if w.ndim < 2]
    theirs = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": kept, "weight_decay": 0.0}],
        **settings,
    )
    ours = AdamW(gpt, weight_decay=0.1, **settings)
    clipped = 0
    for step in range(20):
        ids, targets = batch(100 + step % 2)
        loss = gpt.loss(ids, targets)
        other = torch_gpt.loss(gpt.config, weights, ids, targets)
        assert loss.item() == pytest.approx(other.item(), abs=1e-4)
        theirs.zero_grad()
        other.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        theirs.step()
        mine = ours.step(grad(loss, ours.params), max_norm=1.0)
        assert mine == pytest.approx(norm.item(), rel=1e-3)
        clipped += mine > 1.0
    assert clipped >= 3 and loss.item() < 0.9 * gpt.loss(*batch(999)).item()
    for name, p in gpt.named_parameters().items():
        difference = p.data - weights[name].detach().numpy()
        if name.endswith("c_attn.bias"):
            # A bias of the keys moves no softmax: its gradient is rounding, which Adam enlarges.
            difference[12:24] = 0.0
        np.testing.assert_allclose(difference, 0.0, atol=1e-3, err_msg=name)
