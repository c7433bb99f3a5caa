"""The encoder-decoder: framing of targets, the loss, and theorems about what depends on what."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf import Tensor, grad, no_grad, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences, teacher_forcing
from tinygrad_tf.nn import record

Array = npt.NDArray[Any]
V, PAD, START, END = 9, 0, 1, 2
LONGEST = 7
SMALL: dict[str, Any] = {
    "src_vocab_size": V,
    "tgt_vocab_size": V,
    "d_model": 12,
    "n_heads": 2,
    "d_ff": 16,
    "max_length": LONGEST + 1,
    "init_std": 0.3,
}


def make(seed: int = 0, **options: Any) -> Transformer:
    """A small model in float64."""
    return Transformer(Seq2SeqConfig(**(SMALL | options)), seed).astype(float)


MODELS = {
    "post": make(),
    "pre": make(norm="pre", positions="learned", d_k=3, d_v=5, qkv_bias=True),
    "shared": make(share_embeddings=True, tie_output=True, scale_embedding=True, n_heads=3),
}
models = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__)


def sentences(least: int = 1, most: int = LONGEST - 2) -> st.SearchStrategy[list[int]]:
    """Bare tokens, without PAD, START and END."""
    return st.lists(st.integers(3, V - 1), min_size=least, max_size=most)


# --- START, END and PAD ---
def test_sequences_are_filled_up_with_pad() -> None:
    padded = pad_sequences([[3], [4, 5, 6], []], PAD)
    np.testing.assert_array_equal(padded, [[3, 0, 0], [4, 5, 6], [0, 0, 0]])
    assert padded.dtype == np.int64 and pad_sequences([], PAD).shape == (0, 0)


def test_what_the_decoder_reads_and_answers() -> None:
    config = MODELS["post"].config
    read, answered = teacher_forcing([[5, 6], [7, PAD], [PAD, PAD]], config)
    np.testing.assert_array_equal(read, [[START, 5, 6], [START, 7, PAD], [START, PAD, PAD]])
    np.testing.assert_array_equal(answered, [[5, 6, END], [7, END, PAD], [END, PAD, PAD]])


@pytest.mark.parametrize(
    ("tgt", "message"),
    [
        ([[3, PAD, 4]], "a token after PAD"),
        ([[START, 3]], "contains START or END"),
        ([[3, END]], "contains START or END"),
        ([3, 4], r"targets of shape \(2,\)"),
        ([[3.0]], "dtype float64"),
    ],
)
def test_targets_that_are_framed_wrongly_are_refused(tgt: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        MODELS["post"].loss([[3, 4]], tgt)


# --- the loss ---
def test_the_loss_over_de_nada_end() -> None:
    """Vocabulary Bueno, Nada, De, END; the model says these probabilities."""
    probs = np.array([[0.24, 0.19, 0.52, 0.05], [0.14, 0.70, 0.11, 0.05], [0.10, 0.26, 0.18, 0.46]])
    logits = Tensor(np.log(probs), requires_grad=True)
    labels = np.array([2, 1, 3])
    loss = ops.cross_entropy(logits, labels)
    assert loss.item() == pytest.approx(0.5957100669481309, abs=1e-15)
    each = ops.cross_entropy(logits, labels, reduction="none").data
    np.testing.assert_allclose(
        each, [0.6539264674066639, 0.35667494393873245, 0.7765287894989963], atol=1e-15
    )
    expected = [
        [0.08, 0.19 / 3, -0.16, 0.05 / 3],
        [0.14 / 3, -0.1, 0.11 / 3, 0.05 / 3],
        [0.1 / 3, 0.26 / 3, 0.06, -0.18],
    ]
    np.testing.assert_allclose(grad(loss, logits), expected, atol=1e-15)


def test_the_loss_of_the_model_is_that_of_its_logits() -> None:
    model = MODELS["post"]
    src, tgt = [[5, 3, 4], [6, PAD, PAD]], [[5, 6], [7, PAD]]
    log_probs = ops.log_softmax(model(src, [[START, 5, 6], [START, 7, PAD]])).data
    chosen = [log_probs[0, 0, 5], log_probs[0, 1, 6], log_probs[0, 2, END]]
    chosen += [log_probs[1, 0, 7], log_probs[1, 1, END]]
    assert model.loss(src, tgt).item() == pytest.approx(-np.mean(chosen), abs=1e-12)


def test_label_smoothing_is_of_training_only() -> None:
    model, plain = make(label_smoothing=0.2), make()
    src, tgt = [[5, 3, 4]], [[5, 6]]
    log_probs = ops.log_softmax(plain(src, [[START, 5, 6]])).data
    even = -log_probs.mean()
    expected = 0.8 * plain.loss(src, tgt).item() + 0.2 * even
    assert model.loss(src, tgt).item() == pytest.approx(expected, abs=1e-12)
    model.eval()
    assert model.loss(src, tgt).item() == plain.loss(src, tgt).item()


@given(models, sentences(), sentences(), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=30)
def test_pad_changes_neither_loss_nor_gradient(
    model: Transformer, src: list[int], tgt: list[int], more: int, longer: int
) -> None:
    own = model.named_parameters()
    one, other = model.loss([src], [tgt]), model.loss([src + [PAD] * more], [tgt + [PAD] * longer])
    assert one.item() == pytest.approx(other.item(), rel=1e-12)
    first, second = grad(one, own), grad(other, own)
    for name in own:
        np.testing.assert_allclose(second[name], first[name], atol=1e-11, err_msg=name)


# --- what depends on what ---
@given(models, sentences(), sentences(), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=30)
@no_grad()
def test_appending_pad_changes_no_real_position(
    model: Transformer, src: list[int], tgt: list[int], more: int, longer: int
) -> None:
    read = [START, *tgt]
    padded = src + [PAD] * more
    memory, wider = model.encode([src]), model.encode([padded])
    np.testing.assert_allclose(wider.data[:, : len(src)], memory.data, atol=1e-12)
    logits = model.decode([read], memory, [src]).data
    again = model.decode([read + [PAD] * longer], wider, [padded]).data
    np.testing.assert_allclose(again[:, : len(read)], logits, atol=1e-12)


@given(models, sentences(), sentences(least=2), st.data())
@settings(max_examples=30)
@no_grad()
def test_a_later_target_token_changes_no_earlier_output(
    model: Transformer, src: list[int], tgt: list[int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(tgt) - 1))
    changed = list(tgt)
    changed[place] = data.draw(st.integers(3, V - 1).filter(lambda token: token != tgt[place]))
    one, other = (model([src], [[START, *ids]]).data[0] for ids in (tgt, changed))
    np.testing.assert_array_equal(one[: place + 1], other[: place + 1])
    assert (np.abs(one[place + 1 :] - other[place + 1 :]).max(axis=-1) > 1e-9).all()


@given(models, sentences(), sentences(), st.data())
@settings(max_examples=30)
@no_grad()
def test_a_source_token_may_change_every_output(
    model: Transformer, src: list[int], tgt: list[int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(src) - 1))
    changed = list(src)
    changed[place] = data.draw(st.integers(3, V - 1).filter(lambda token: token != src[place]))
    one, other = (model([ids], [[START, *tgt]]).data[0] for ids in (src, changed))
    assert (np.abs(one - other).max(axis=-1) > 1e-9).all()


@given(models, sentences(least=2), st.randoms(use_true_random=False))
@settings(max_examples=30)
@no_grad()
def test_permuting_the_source_with_its_positions_permutes_the_memory(
    model: Transformer, src: list[int], random: Any
) -> None:
    order = np.array(random.sample(range(len(src)), len(src)))
    vectors = model.encoder.input([src])

    def blocks(x: Tensor) -> Array:
        for block in model.encoder.h:
            x = block(x)
        return np.asarray((x if model.encoder.ln_f is None else model.encoder.ln_f(x)).data)

    plain = blocks(vectors)
    np.testing.assert_allclose(plain, model.encode([src]).data, atol=1e-12)
    np.testing.assert_allclose(blocks(vectors[:, order]), plain[:, order], atol=1e-12)


@given(models, st.lists(sentences(), min_size=2, max_size=4), sentences())
@settings(max_examples=20)
@no_grad()
def test_the_rows_of_a_batch_do_not_meet(
    model: Transformer, sources: list[list[int]], tgt: list[int]
) -> None:
    read = [[START, *tgt]] * len(sources)
    together = model(pad_sequences(sources, PAD), read).data
    for row, src in zip(together, sources, strict=True):
        np.testing.assert_allclose(row, model([src], read[:1]).data[0], atol=1e-12)


@no_grad()
def test_the_memory_feeds_every_decoder_layer() -> None:
    model, src = MODELS["post"], [[5, 3, 4]]
    for layer in range(2):
        name = f"decoder.{layer}.cross_attn.hook_v"
        with record() as seen:
            logits = model(src, [[START, 5]]).data
        memory = seen["encoder.1.hook_resid_post"].data
        attn = model.decoder.h[layer].cross_attn
        assert attn is not None
        by_hand = attn.project(Tensor(memory)).value.data.reshape(1, 3, 2, 6)
        np.testing.assert_allclose(seen[name].data, by_hand, atol=1e-12)
        with record({name: lambda value: value * 2.0}):
            assert np.abs(model(src, [[START, 5]]).data - logits).max() > 1e-6


def test_a_source_of_nothing_but_pad_gives_zeros_not_nan() -> None:
    model = MODELS["pre"]
    src, tgt = [[PAD, PAD], [3, 4]], [[5, 6], [5, 6]]
    with record() as seen:
        loss = model.loss(src, tgt)
    assert not seen["decoder.0.cross_attn.hook_z"].data[0].any()
    assert seen["decoder.0.cross_attn.hook_z"].data[1].any()
    assert all(np.isfinite(g).all() for g in grad(loss, model.parameters()))


# --- sources of vectors ---
def test_vectors_enter_without_an_embedding() -> None:
    """A projection of one-hot vectors is an embedding, and lengths are its PAD."""
    words = make()
    dense = make(src_vocab_size=None, src_features=V)
    state = words.state_dict()
    table = state.pop("encoder.input.embedding.weight")
    state |= {"encoder.input.projection.weight": table}
    state |= {"encoder.input.projection.bias": np.zeros(12)}
    dense.load_state_dict(state)
    src, tgt = np.array([[5, 3, 4], [6, 7, PAD], [8, PAD, PAD]]), [[4, 5], [6, PAD], [PAD, PAD]]
    expected = words.loss(src, tgt).item()
    assert dense.loss(np.eye(V)[src], tgt, [3, 2, 1]).item() == pytest.approx(expected, rel=1e-12)
    assert dense.loss(np.eye(V)[src], tgt).item() != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("src", "lengths", "message"),
    [
        (np.zeros((1, 3, 4)), None, r"vectors of shape \(1, 3, 4\) in the encoder; .*time, 5\)"),
        (np.zeros((1, 0, 5)), None, r"vectors of shape \(1, 0, 5\)"),
        (np.zeros((1, 3, 5)), [4], r"lengths \[4\] .* from 0 to 3"),
        (np.zeros((1, 3, 5)), [1, 2], r"lengths \[1, 2\]"),
        (np.zeros(5), None, r"a source of shape \(5,\)"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(src: Array, lengths: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(src_vocab_size=None, src_features=5).encode(src, lengths)


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        ([[3, V]], [[3]], "ids in the encoder run from 3 to 9; the model knows 0 to 8"),
        ([[3, -1]], [[3]], "ids in the encoder run from -1 to 3"),
        ([[3]], [[V]], "ids in the decoder run from 1 to 9"),
        ([[3] * 9], [[3]], "9 positions in the encoder, but the model knows 8"),
        ([[3]], [[3] * 8], "9 positions in the decoder, but the model knows 8"),
        (np.zeros((1, 0), int), [[3]], r"ids of shape \(1, 0\) in the encoder"),
        ([[3.5]], [[3]], "float64 ids"),
        ([[3], [4]], [[3]], "1 targets for 2 sources"),
    ],
)
def test_ids_that_do_not_fit_are_refused(src: Any, tgt: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        MODELS["post"].loss(src, tgt)


# --- seeds and dropout ---


def test_a_seed_makes_the_model() -> None:
    one, same, other = (make(seed).state_dict() for seed in (1, 1, 2))
    name = "decoder.h.1.cross_attn.c_attn.weight"
    np.testing.assert_array_equal(one[name], same[name])
    assert np.any(one[name] != other[name])


def test_dropout_is_of_training_only() -> None:
    model, plain = make(dropout=0.3), make()
    src, tgt = [[5, 3, 4]], [[5, 6]]
    assert model.loss(src, tgt).item() != model.loss(src, tgt).item()
    model.eval()
    assert model.loss(src, tgt).item() == plain.loss(src, tgt).item()
