"""Encoder-decoder, encoder and attention compute what PyTorch's own do with the same weights."""

from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, grad, ops
from tinygrad_tf.models.encoder import Encoder, EncoderConfig
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import teacher_forcing
from tinygrad_tf.nn import Dropout, MultiHeadAttention

torch = pytest.importorskip("torch")
from tests.models import torch_seq2seq  # noqa: E402  # after the skip
from tests.models.torch_gpt import weights_of  # noqa: E402

pytestmark = pytest.mark.reference

SRC = np.array([[5, 3, 4, 6, 1], [7, 8, 2, 0, 0], [4, 0, 0, 0, 0]])
TGT = np.array([[4, 5, 6, 3], [8, 3, 0, 0], [7, 4, 0, 0]])
SMALL: dict[str, Any] = {
    "d_model": 12,
    "n_heads": 3,
    "d_ff": 20,
    "max_length": 8,
    "init_std": 0.25,
}
# Every value of every choice, in few models.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"share_embeddings": True, "tie_output": True, "scale_embedding": True},
    "pre": {"norm": "pre", "qkv_bias": True, "activation": "gelu", "positions": "learned"},
    "wide values": {"d_k": 3, "d_v": 5},
    "narrow values": {"d_k": 6, "d_v": 2, "norm": "pre", "qkv_bias": True, "n_decoder_layers": 1},
    "five heads of their own": {"d_k": 2, "d_v": 2, "n_heads": 5, "activation": "gelu_tanh"},
    "tied target": {"tie_output": True, "bias": False, "label_smoothing": 0.1},
    "vectors": {"src_vocab_size": None, "src_features": 5, "n_encoder_layers": 1},
}


def shaken(model: Any, dtype: Any) -> Any:
    """Every parameter, gains and biases too, made random, so that it matters."""
    rng = np.random.default_rng(3)
    for p in model.parameters():
        p.data += 0.1 * rng.standard_normal(p.shape, np.float32)
    return model.astype(dtype)


def make(dtype: Any, **options: Any) -> Transformer:
    fields = {"src_vocab_size": 9, "tgt_vocab_size": 9} | SMALL | options
    return shaken(Transformer(Seq2SeqConfig(**fields)), dtype)


def close(ours: Any, theirs: Any, tolerance: float, name: str = "") -> None:
    """Equal within `tolerance` of the largest entry."""
    theirs = theirs.detach().numpy()
    size = max(np.abs(theirs).max(), 1e-12)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * size, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_logits_loss_and_every_gradient(variant: str, dtype: Any, tolerance: float) -> None:
    model = make(dtype, **VARIANTS[variant])
    w = weights_of(model)
    src, lengths = SRC, None
    if model.config.src_features:
        src = np.random.default_rng(5).standard_normal((3, 5, 5)).astype(dtype)
        lengths = [5, 3, 1]
    keep = torch.tensor(SRC != 0)
    given, labels = teacher_forcing(TGT, model.config)
    expected = torch_seq2seq.logits(model.config, w, src, keep, given)
    close(model(src, given, lengths).data, expected, tolerance / 10)
    loss = model.loss(src, TGT, lengths)
    assert loss.dtype == dtype
    other = torch_seq2seq.loss(model.config, w, src, keep, given, labels)
    assert loss.item() == pytest.approx(other.item(), rel=tolerance / 10)
    ours = grad(loss, model.named_parameters())
    theirs = torch.autograd.grad(other, list(w.values()))
    for (name, mine), wanted in zip(ours.items(), theirs, strict=True):
        close(mine, wanted, tolerance, name)


def test_second_derivatives_of_the_whole_model() -> None:
    model = make(np.float64, **VARIANTS["pre"] | {"n_encoder_layers": 1, "n_decoder_layers": 1})
    w = weights_of(model)
    given, labels = teacher_forcing(TGT, model.config)
    own = model.named_parameters()
    first = grad(model.loss(SRC, TGT), own, create_graph=True)
    ours = grad(sum((g * g).sum() for g in first.values()), own)
    other = torch_seq2seq.loss(model.config, w, SRC, torch.tensor(SRC != 0), given, labels)
    their_first = torch.autograd.grad(other, list(w.values()), create_graph=True)
    theirs = torch.autograd.grad(sum((g * g).sum() for g in their_first), list(w.values()))
    for (name, mine), wanted in zip(ours.items(), theirs, strict=True):
        close(mine, wanted, 1e-9, name)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_nn_transformer(norm: str, activation: str) -> None:
    model = make(np.float32, norm=norm, activation=activation, qkv_bias=True)
    pre, state = norm == "pre", model.state_dict()
    theirs = torch.nn.Transformer(
        12, 3, 2, 2, 20, dropout=0.0, activation=activation, batch_first=True, norm_first=pre
    )
    torch_seq2seq.give_stack(theirs.encoder, state, "encoder", pre=pre)
    torch_seq2seq.give_stack(theirs.decoder, state, "decoder", pre=pre)
    given, _ = teacher_forcing(TGT, model.config)
    vectors = [model.encoder.input(SRC).data, model.decoder.input(given).data]
    src, tgt = (torch.tensor(x, requires_grad=True) for x in vectors)
    blank, later = torch.tensor(SRC == 0), torch.ones(5, 5, dtype=torch.bool).triu(1)
    other = theirs(
        src,
        tgt,
        tgt_mask=later,
        src_key_padding_mask=blank,
        memory_key_padding_mask=blank,
        tgt_key_padding_mask=torch.tensor(given == 0),
    )
    memory = model.encode(SRC)
    x = model.decoder(given, memory, memory_mask=model.encoder.mask(SRC))
    close(x.data, other, 1e-5)
    direction = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    found = grad(ops.sum(x * direction), model.named_parameters())
    (other * torch.tensor(direction)).sum().backward()
    attn, cross = theirs.encoder.layers[0].self_attn, theirs.decoder.layers[1].multihead_attn
    for name, wanted in {
        "encoder.h.0.attn.c_attn.weight": attn.in_proj_weight.grad.T,
        "encoder.h.0.attn.c_proj.weight": attn.out_proj.weight.grad.T,
        "encoder.h.1.ln_2.weight": theirs.encoder.layers[1].norm2.weight.grad,
        "encoder.h.1.mlp.c_fc.weight": theirs.encoder.layers[1].linear1.weight.grad.T,
        "decoder.h.1.cross_attn.c_attn.weight": cross.in_proj_weight.grad.T,
        "decoder.h.1.cross_attn.c_proj.bias": cross.out_proj.bias.grad,
        "decoder.h.0.ln_cross.weight": theirs.decoder.layers[0].norm2.weight.grad,
        "decoder.h.0.mlp.c_proj.bias": theirs.decoder.layers[0].linear2.bias.grad,
    }.items():
        close(found[name], wanted, 1e-4, name)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_nn_transformer_encoder(norm: str) -> None:
    config = EncoderConfig(vocab_size=9, norm=norm, qkv_bias=True, n_layers=3, **SMALL)
    model, pre = shaken(Encoder(config), np.float32), norm == "pre"
    layer = torch.nn.TransformerEncoderLayer(
        12, 3, 20, dropout=0.0, batch_first=True, norm_first=pre
    )
    final = torch.nn.LayerNorm(12) if pre else None
    theirs = torch.nn.TransformerEncoder(layer, 3, norm=final, enable_nested_tensor=False)
    torch_seq2seq.give_stack(theirs, model.state_dict(), "encoder", pre=pre)
    x = torch.tensor(model.encoder.input(SRC).data, requires_grad=True)
    other = theirs(x, src_key_padding_mask=torch.tensor(SRC == 0))
    y = model(SRC)
    close(y.data, other, 1e-5)
    direction = np.random.default_rng(0).standard_normal(y.shape).astype(np.float32)
    found = grad(ops.sum(y * direction), model.named_parameters())
    (other * torch.tensor(direction)).sum().backward()
    for i, block in enumerate(theirs.layers):
        p = f"encoder.h.{i}"
        wanted = block.self_attn.in_proj_weight.grad.T
        close(found[f"{p}.attn.c_attn.weight"], wanted, 1e-4)
        close(found[f"{p}.mlp.c_fc.weight"], block.linear1.weight.grad.T, 1e-4)
        close(found[f"{p}.ln_1.weight"], block.norm1.weight.grad, 1e-4)
    rows = np.zeros((9, 12), np.float32)
    np.add.at(rows, SRC, x.grad.numpy())
    np.testing.assert_allclose(
        found["encoder.input.embedding.weight"], rows, atol=1e-4 * np.abs(rows).max()
    )


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_nn_multihead_attention(crossed: bool, bias: bool) -> None:
    rng = np.random.default_rng(1)
    attn = MultiHeadAttention(
        12, 3, bias=bias, dropout=Dropout(0.0, rng), rng=rng, std=0.3, proj_std=0.3
    )
    theirs = torch.nn.MultiheadAttention(12, 3, bias=bias, batch_first=True)
    state = {f"a.{name}": value for name, value in attn.state_dict().items()}
    torch_seq2seq.give_attention(theirs, state, "a")
    x, memory = (rng.standard_normal((3, n, 12)).astype(np.float32) for n in (4, 5))
    asked = [Tensor(a, requires_grad=True) for a in ((x, memory) if crossed else (memory,))]
    others = [torch.tensor(a.data, requires_grad=True) for a in asked]
    keep = (SRC != 0)[:, None, None]
    y = attn(*asked, mask=keep)
    other, _ = theirs(others[0], others[-1], others[-1], key_padding_mask=torch.tensor(SRC == 0))
    close(y.data, other, 1e-5)
    direction = rng.standard_normal(y.shape).astype(np.float32)
    found = grad(ops.sum(y * direction), [*asked, attn.c_attn.weight, attn.c_proj.weight])
    (other * torch.tensor(direction)).sum().backward()
    wanted = [a.grad for a in others]
    wanted += [theirs.in_proj_weight.grad.T, theirs.out_proj.weight.grad.T]
    for mine, expected in zip(found, wanted, strict=True):
        close(mine, expected, 1e-4)
