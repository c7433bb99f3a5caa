"""Models go to Hugging Face's GPT-2 and come back, or it is said why not."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinygrad_tf.errors import InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.huggingface import (
    config_from_json,
    config_json,
    why_not,
)
from tinygrad_tf.storage import save_safetensors, write_json

EXPORTABLE: dict[str, dict[str, Any]] = {
    "gpt2": {"activation": "gelu_tanh"},
    "no bias": {"bias": False, "activation": "gelu"},
    "untied": {"tie_weights": False, "activation": "relu"},
    "sinusoidal": {"positions": "sinusoidal"},
    "no bias but in qkv": {"bias": False, "qkv_bias": True, "d_ff": 24},
    "all": {
        "positions": "sinusoidal",
        "bias": False,
        "tie_weights": False,
        "activation": "relu",
        "layer_norm_eps": 1e-3,
    },
}
PRIVATE = {"post": {"norm": "post"}, "head bias": {"head_bias": True, "tie_weights": False}}


def make(options: dict[str, Any], seed: int = 0) -> GPT:
    """A small model whose every parameter is random and matters."""
    fields = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 10, "init_std": 0.3}
    gpt = GPT(GPTConfig(vocab_size=13, **(fields | options)), seed)
    rng = np.random.default_rng(seed)
    for p in gpt.parameters():
        p.data += 0.1 * rng.standard_normal(p.shape, np.float32)
    gpt.eval()
    return gpt


def write(gpt: GPT, directory: Path) -> Path:
    write_json(directory / "config.json", config_json(gpt.config))
    save_safetensors(directory / "model.safetensors", gpt.file_tensors())
    return directory


IDS = np.random.default_rng(0).integers(0, 13, (2, 8))


@pytest.mark.reference
@pytest.mark.parametrize("name", EXPORTABLE)
@pytest.mark.filterwarnings("default")
def test_hugging_face_loads_it(name: str, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    gpt = make(EXPORTABLE[name])
    assert why_not(gpt.config) is None
    theirs, report = transformers.GPT2LMHeadModel.from_pretrained(
        write(gpt, tmp_path), output_loading_info=True
    )
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    assert set(report["missing_keys"]) <= ({"lm_head.weight"} if gpt.lm_head is None else set())
    theirs.eval()
    with torch.no_grad():
        logits = theirs(torch.from_numpy(IDS)).logits.numpy()
    np.testing.assert_allclose(gpt(IDS).data, logits, atol=1e-4)
    text = IDS[:, :3]
    for _ in range(7):
        with torch.no_grad():
            token = theirs(torch.from_numpy(text)).logits[:, -1].argmax(-1).numpy()
        text = np.concatenate([text, token[:, None]], axis=1)
    np.testing.assert_array_equal(gpt.generate(IDS[:, :3], 7, temperature=0.0), text)


@pytest.mark.reference
@pytest.mark.parametrize("activation", ["gelu_new", "gelu", "relu", "gelu_pytorch_tanh"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.filterwarnings("default")
def test_a_hugging_face_model_loads_here(activation: str, tied: bool, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=13,
            n_positions=10,
            n_embd=16,
            n_layer=2,
            n_head=4,
            n_inner=24,
            activation_function=activation,
            tie_word_embeddings=tied,
            initializer_range=0.3,
            layer_norm_epsilon=1e-4,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p += 0.1 * torch.randn_like(p)
        logits = theirs(torch.from_numpy(IDS)).logits.numpy()
    theirs.save_pretrained(tmp_path)
    gpt = GPT.load(tmp_path)
    assert not gpt.training and gpt.config.tie_weights == tied and gpt.config.d_ff == 24
    np.testing.assert_allclose(gpt(IDS).data, logits, atol=1e-4)


@pytest.mark.parametrize("name", [*EXPORTABLE, *PRIVATE])
def test_files_come_back_exactly(name: str, tmp_path: Path) -> None:
    gpt = make((EXPORTABLE | PRIVATE)[name])
    write(gpt, tmp_path)
    again = GPT.load(tmp_path)
    assert again.config == gpt.config
    for key, x in gpt.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key], x)
    np.testing.assert_array_equal(again(IDS).data, gpt(IDS).data)


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_no_gpt2_says_why_and_does_not_pretend(name: str) -> None:
    gpt = make(PRIVATE[name])
    reason = why_not(gpt.config)
    assert reason and {"post": "norm=post", "head bias": "bias"}[name] in reason
    written = config_json(gpt.config)
    assert written["model_type"] != "gpt2" and written["tt"]["huggingface"] == reason
    assert not any(key.startswith("transformer.") for key in gpt.file_tensors())


def test_tensors_under_other_names_are_understood() -> None:
    gpt, other = make({}), make({}, seed=1)
    tensors = {n.removeprefix("transformer."): x for n, x in gpt.file_tensors().items()}
    tensors["h.0.attn.bias"] = np.tril(np.ones((1, 1, 10, 10), np.float32))
    tensors["h.1.attn.masked_bias"] = np.float32(-1e4)
    tensors["lm_head.weight"] = tensors["wte.weight"]
    other.load_tensors(tensors)
    np.testing.assert_array_equal(other(IDS).data, gpt(IDS).data)


def test_tensors_that_do_not_fit_are_named() -> None:
    gpt = make({})
    tensors = dict(gpt.file_tensors())
    del tensors["transformer.wpe.weight"]
    tensors["transformer.h.7.ln_1.weight"] = np.ones(16, np.float32)
    tensors["transformer.ln_f.bias"] = np.ones(15, np.float32)
    with pytest.raises(InputError) as caught:
        gpt.load_tensors(tensors)
    for part in ("missing wpe.weight", "unexpected h.7.ln_1.weight", "ln_f.bias has shape (15,)"):
        assert part in str(caught.value)


def test_a_bias_that_the_model_lacks_must_be_zero() -> None:
    gpt = make({"bias": False})
    tensors = dict(gpt.file_tensors())
    gpt.load_tensors(tensors)
    tensors["transformer.ln_f.bias"] = np.ones(16, np.float32)
    with pytest.raises(InputError, match=r"unexpected ln_f\.bias"):
        gpt.load_tensors(tensors)


SMALL = {"model_type": "gpt2", "vocab_size": 13, "n_embd": 16, "n_layer": 2, "n_head": 2}


def test_missing_fields_have_hugging_faces_defaults() -> None:
    config = config_from_json(SMALL)
    assert config.block_size == 1024 and config.activation == "gelu_tanh"
    assert config.tie_weights and config.bias and config.layer_norm_eps == 1e-5
    assert config.feed_forward_width == 64


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "llama"},
        {"model_type": None},
        {"activation_function": "silu"},
        {"activation_function": ["relu"]},
        {"scale_attn_weights": False},
        {"scale_attn_by_inverse_layer_idx": True},
        {"add_cross_attention": True},
        {"n_embd": 15},
        {"n_embd": "16"},
        {"n_layer": 0},
        {"n_head": None},
        {"vocab_size": 13.5},
        {"n_positions": "many"},
        {"n_inner": -1},
        {"layer_norm_epsilon": "small"},
        {"layer_norm_epsilon": math.nan},
        {"resid_pdrop": None},
        {"tie_word_embeddings": "no"},
        {"initializer_range": []},
        {"tt": {}},
        {"tt": {"model": []}},
        {"tt": {"model": {"vocab_size": 5, "colour": 1}}},
    ],
    ids=str,
)
def test_malformed_configurations_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        config_from_json(SMALL | change)


@pytest.mark.parametrize("name", ["vocab_size", "n_embd", "n_layer", "n_head"])
def test_a_configuration_that_lacks_a_size_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        config_from_json({k: v for k, v in SMALL.items() if k != name})


def test_directories_that_are_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        GPT.load(tmp_path / "absent")
    with pytest.raises(InputError):
        GPT.load(tmp_path)
    write_json(tmp_path / "config.json", SMALL)
    with pytest.raises(InputError):
        GPT.load(tmp_path)
    save_safetensors(tmp_path / "model.safetensors", {"weight": np.zeros(3, np.float32)})
    with pytest.raises(InputError, match="unexpected weight"):
        GPT.load(tmp_path)


def test_written_tensors_are_gpt2s() -> None:
    gpt = make({"bias": False, "positions": "sinusoidal"})
    tensors = gpt.file_tensors()
    assert all(x.dtype == np.float32 for x in tensors.values())
    assert tensors["transformer.wpe.weight"].shape == (10, 16)
    assert tensors["transformer.h.1.attn.c_attn.bias"].shape == (48,)
    assert "lm_head.weight" not in tensors
    assert "lm_head.weight" in make({"tie_weights": False}).file_tensors()
