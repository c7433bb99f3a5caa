"""A soft prompt: vectors before the text, learned alone; the model that reads them is frozen."""

import json

import numpy as np
import pytest

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.engine.transforms import grad
from tinygrad_tf.errors import InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.soft_prompt import PromptedGPT, SoftPrompt, freeze, weights_sha256
from tinygrad_tf.storage import load_safetensors, save_safetensors
from tinygrad_tf.text.tokenizers import CharTokenizer

V, T, C, P = 7, 6, 8, 3
IDS = np.random.default_rng(0).integers(V, size=(2, T))


def base(seed: int = 0, **changes) -> GPT:
    shape = {"block_size": T, "n_layer": 2, "n_head": 2, "n_embd": C, "init_std": 0.3}
    return GPT(GPTConfig(vocab_size=V, **(shape | changes)), seed)


def vectors(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((P, C)).astype(np.float32)


# --- what it computes ---


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_vectors_that_a_longer_text_would_give_are_as_good_as_its_tokens(positions):
    """A prompt made of tokens' vectors equals those tokens, where no positions tell them apart."""
    gpt = base(positions=positions)
    if gpt.wpe is not None:
        gpt.wpe.weight.data[...] = 0.0
    else:
        gpt.position_table[...] = 0.0
    words = gpt.wte.weight.data[[1, 4]]
    whole = gpt(np.concatenate([[[1, 4]] * 2, IDS[:, :4]], axis=1)).data[:, 2:]
    assert np.allclose(PromptedGPT(gpt, words)(IDS[:, :4]).data, whole, atol=1e-6)


def test_the_text_keeps_its_positions_and_all_of_its_context():
    gpt = base()
    prompted = PromptedGPT(gpt, vectors())
    assert prompted(IDS).shape == (2, T, V)
    x = np.concatenate([np.tile(vectors(), (2, 1, 1)), gpt.embed(IDS).data], axis=1)
    assert np.array_equal(prompted(IDS).data, gpt.read(Tensor(x)).data[:, P:])
    with pytest.raises(InputError, match="7 positions, but `block_size` is 6"):
        prompted(np.zeros((1, T + 1), int))


def test_a_later_token_changes_no_earlier_logits_and_the_prompt_changes_all():
    prompted, other = PromptedGPT(base(), vectors()), IDS.copy()
    other[:, 3] = (other[:, 3] + 1) % V
    same = prompted(IDS).data == prompted(other).data
    assert same[:, :3].all() and not same[:, 3:].all(axis=-1).any()
    changed = PromptedGPT(base(), vectors(2))(IDS).data != prompted(IDS).data
    assert changed.any(axis=-1).all()


def test_the_gradient_is_that_of_finite_differences():
    gpt = base().astype(np.float64)
    prompted = PromptedGPT(gpt, vectors())
    prompted.prompt.data = vectors().astype(np.float64)
    targets = np.roll(IDS, -1, axis=1)
    found = grad(prompted.loss(IDS, targets), prompted.named_parameters())["prompt"].data
    for place in ((0, 0), (1, 3), (2, 7)):
        losses = []
        for step in (1e-5, -1e-5):
            moved = vectors().astype(np.float64)
            moved[place] += step
            prompted.prompt.data = moved
            losses.append(prompted.loss(IDS, targets).item())
        assert found[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-5)


# --- what is frozen ---


def test_only_the_prompt_is_learned_and_the_base_refuses_to_change():
    gpt = base(dropout=0.5)
    before = weights_sha256(gpt)
    prompted = PromptedGPT(gpt, vectors())
    assert list(prompted.named_parameters()) == ["prompt"]
    assert prompted.parameter_count() == P * C
    prompted.train()
    assert np.array_equal(prompted(IDS).data, prompted(IDS).data), "the base drops nothing out"
    prompted.loss(IDS, IDS).backward()
    assert prompted.prompt.grad is not None
    assert all(parameter.grad is None for parameter in gpt.parameters())
    for parameter in gpt.parameters():
        with pytest.raises(ValueError, match="read-only"):
            parameter.data[...] = 0.0
    assert weights_sha256(gpt) == before


def test_the_digest_is_that_of_the_file_and_sees_one_bit(tmp_path):
    gpt = base()
    assert weights_sha256(gpt) == save_safetensors(tmp_path / "x", gpt.file_tensors())
    before = weights_sha256(gpt)
    word = gpt.wte.weight.data.view(np.uint32)
    word[0, 0] ^= 1
    assert weights_sha256(gpt) != before


def test_a_prompt_begins_as_tokens_and_one_seed_gives_one():
    table = base().wte.weight.data.tolist()
    first, again, other = (PromptedGPT.start(base(), 5, seed).prompt.data for seed in (1, 1, 2))
    assert all(row in table for row in first.tolist())
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("shape", [(P, C + 1), (0, C), (C,)])
def test_vectors_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match="for a model of width 8"):
        PromptedGPT(base(), np.zeros(shape, np.float32))


@pytest.mark.parametrize("length", [0, 5000])
def test_a_length_out_of_range_is_refused(length):
    with pytest.raises(InputError, match="give 1 to 4096"):
        PromptedGPT.start(base(), length)


# --- the file ---


def test_a_prompt_comes_back_from_its_file_bit_for_bit(tmp_path):
    path = tmp_path / "p.safetensors"
    prompt = SoftPrompt(vectors(), weights_sha256(base()), "a task", 7, 2.5, 1.25)
    prompt.save(path)
    found = SoftPrompt.load(path)
    assert found.vectors.tobytes() == prompt.vectors.tobytes()
    assert (found.task, found.steps, found.loss_before, found.loss_after) == (
        "a task",
        7,
        2.5,
        1.25,
    )
    assert found.length == P
    assert np.array_equal(
        PromptedGPT.load(base(), path)(IDS).data, PromptedGPT(base(), vectors())(IDS).data
    )
    pytest.importorskip("safetensors")
    from safetensors.numpy import load_file

    assert np.array_equal(load_file(path)["prompt"], vectors())


def test_another_model_is_refused(tmp_path):
    SoftPrompt(vectors(), weights_sha256(base())).save(tmp_path / "p")
    with pytest.raises(InputError, match="tuned for another model") as fault:
        PromptedGPT.load(base(seed=1), tmp_path / "p")
    assert weights_sha256(base())[:12] in str(fault.value)


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"prompt": vectors()}, {"format": "pt"}, "no soft_prompt in its metadata"),
        ({"prompt": vectors()}, {"soft_prompt": "{"}, "is not JSON"),
        ({"prompt": vectors()}, {"soft_prompt": "[]"}, "schema_version is not 1"),
        ({"prompt": vectors()}, {"soft_prompt": '{"schema_version": 2}'}, "is not 1"),
        ({"prompt": vectors()}, {"soft_prompt": '{"schema_version": 1}'}, "missing or unknown"),
        (
            {"prompt": vectors()},
            {"soft_prompt": '{"schema_version": 1, "base_sha256": 3}'},
            "right types",
        ),
        (
            {"other": vectors()},
            {"soft_prompt": json.dumps({"schema_version": 1, "base_sha256": ""})},
            "one matrix",
        ),
        (
            {"prompt": vectors() * np.float32(np.nan)},
            {"soft_prompt": json.dumps({"schema_version": 1, "base_sha256": ""})},
            "not finite float32",
        ),
    ],
)
def test_what_is_no_prompt_is_refused_in_one_line(tmp_path, tensors, metadata, message):
    path = tmp_path / "p.safetensors"
    save_safetensors(path, tensors, metadata)
    with pytest.raises(InputError, match=message) as fault:
        SoftPrompt.load(path)
    assert "p.safetensors" in str(fault.value)
    assert load_safetensors(path)


def test_a_generator_writes_with_it_and_goes_on_past_the_context():
    tokenizer = CharTokenizer("\nabcdef")
    plain = TextGenerator(freeze(base()), tokenizer)
    prompted = TextGenerator(PromptedGPT(base(), vectors()), tokenizer)
    texts = [it.write("ab", 4 * T, seed=3) for it in (plain, prompted, prompted)]
    assert texts[0] != texts[1] == texts[2] and len(texts[1]) == 4 * T
