"""Greedy, sampling and beam search: against plain loops, each other, and all targets."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinygrad_tf import no_grad, ops
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models.beam_search import Hypothesis, beam_search, greedy, penalty, sample
from tinygrad_tf.models.seq2seq import Seq2SeqConfig, Transformer
from tinygrad_tf.models.targets import pad_sequences
from tinygrad_tf.train.optim import AdamW

V, PAD, START, END = 7, 0, 1, 2
LONGEST = 5


def make(seed: int, dtype: Any = float, **options: Any) -> Transformer:
    """A small model that was not trained, whose probabilities are far from even."""
    fields: dict[str, Any] = {"src_vocab_size": V, "tgt_vocab_size": V, "max_length": LONGEST}
    fields |= {"d_model": 12, "n_heads": 2, "d_ff": 16, "init_std": 0.5, "n_encoder_layers": 1}
    return Transformer(Seq2SeqConfig(**(fields | options)), seed).astype(dtype)


seeds = st.integers(0, 30)
sources = st.lists(st.lists(st.integers(3, V - 1), min_size=1, max_size=5), min_size=1, max_size=3)


@no_grad()
def log_prob(model: Transformer, src: list[int], h: Hypothesis) -> float:
    """ln of the probability of a hypothesis, from one pass over it."""
    answered = [*h.tokens, END] if h.finished else list(h.tokens)
    logits = model([src], [[START, *answered][: len(answered)]])
    chosen = ops.log_softmax(logits).data[0, np.arange(len(answered)), answered]
    return float(chosen.sum())


@no_grad()
def greedy_by_hand(model: Transformer, src: list[int], limit: int) -> tuple[list[int], bool]:
    """The loop of the original description: feed all, take the last word, append."""
    ids = [START]
    for _ in range(limit):
        last = model([src], [ids]).data[0, -1].copy()
        last[[PAD, START]] = -np.inf
        token = int(np.argmax(last))
        if token == END:
            return ids[1:], True
        ids.append(token)
    return ids[1:], False


def beam_by_hand(model: Transformer, src: list[int], beam: int, alpha: float) -> set[Any]:
    """One source, prefix by prefix: all that leave the beam with END, or reach the limit."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    found: set[tuple[float, tuple[int, ...]]] = set()
    for _ in range(LONGEST):
        longer = []
        for total, tokens in live:
            log_probs = ops.log_softmax(model([src], [[START, *tokens]])).data[0, -1]
            longer += [(total + log_probs[t], [*tokens, t]) for t in range(END, V)]
        longer.sort(reverse=True)
        best, live = longer[: beam - len(found)], []
        for total, tokens in best:
            if tokens[-1] == END:
                found.add((round(total / penalty(len(tokens), alpha), 9), tuple(tokens[:-1])))
            else:
                live.append((total, tokens))
    return found | {(round(s / penalty(LONGEST, alpha), 9), tuple(ids)) for s, ids in live}


@given(seeds, sources, st.integers(2, 4), st.sampled_from([0.0, 0.6]))
@settings(max_examples=12)
@no_grad()
def test_beam_search_is_the_plain_loop(seed: int, srcs: Any, beam: int, alpha: float) -> None:
    """The best of what it finds, and of the greedy hypothesis."""
    model, padded = make(seed), pad_sequences(srcs, PAD)
    found = beam_search(model, padded, beam=beam, n_best=beam, length_penalty=alpha)
    firsts = greedy(model, padded, length_penalty=alpha)
    for src, mine, first in zip(srcs, found, firsts, strict=True):
        candidates = beam_by_hand(model, src, beam, alpha) | {(round(first.score, 9), first.tokens)}
        expected = sorted(candidates, reverse=True)[:beam]
        assert sorted(((round(h.score, 9), h.tokens) for h in mine), reverse=True) == expected


@given(seeds, sources, st.integers(1, LONGEST))
@settings(max_examples=12)
def test_greedy_is_the_plain_loop(seed: int, srcs: Any, limit: int) -> None:
    model = make(seed)
    found = greedy(model, pad_sequences(srcs, PAD), limit)
    for src, h in zip(srcs, found, strict=True):
        assert (list(h.tokens), h.finished) == greedy_by_hand(model, src, limit)
        assert h.log_prob == pytest.approx(log_prob(model, src, h), abs=1e-9)


@given(seeds, sources, st.sampled_from([0.0, 0.6, 1.0]))
@settings(max_examples=12)
def test_beam_one_is_greedy(seed: int, srcs: Any, alpha: float) -> None:
    model, padded = make(seed), pad_sequences(srcs, PAD)
    one = beam_search(model, padded, beam=1, length_penalty=alpha)
    assert [h for (h,) in one] == greedy(model, padded, length_penalty=alpha)


@given(seeds, sources, st.integers(1, 5), st.integers(1, LONGEST))
@settings(max_examples=12)
def test_hypotheses_are_what_they_say(seed: int, srcs: Any, beam: int, limit: int) -> None:
    model = make(seed)
    found = beam_search(model, pad_sequences(srcs, PAD), limit, beam=beam, n_best=beam)
    for src, hypotheses in zip(srcs, found, strict=True):
        assert 1 <= len(hypotheses) <= beam
        assert len({(h.tokens, h.finished) for h in hypotheses}) == len(hypotheses)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for h in hypotheses:
            assert not {PAD, START, END} & set(h.tokens)
            length = len(h.tokens) + h.finished
            assert length <= limit and (h.finished or length == limit)
            assert h.log_prob == pytest.approx(log_prob(model, src, h), abs=1e-9)
            assert h.score == pytest.approx(h.log_prob / ((5 + length) / 6) ** 0.6, abs=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_cached_logits_in_float32(norm: str) -> None:
    model = make(3, np.float32, norm=norm, d_k=3, d_v=5).eval()
    assert isinstance(model, Transformer)
    src, tgt = np.array([[3, 4, 5], [6, PAD, PAD]]), np.array([[START, 4, 5, 3], [START, 6, 6, 4]])
    with no_grad():
        memory = model.encode(src)
        whole = model.decode(tgt, memory, src).data
        cache = model.new_cache(memory, src)
        for t in range(4):
            step = model.next_logits(tgt[:, t : t + 1], cache).data[:, 0]
            np.testing.assert_allclose(step, whole[:, t], atol=1e-6 * np.abs(whole).max())


@given(seeds, sources)
@settings(max_examples=12)
def test_rows_of_a_batch_are_decoded_as_if_alone(seed: int, srcs: Any) -> None:
    model = make(seed)
    together = beam_search(model, pad_sequences(srcs, PAD), beam=3, n_best=3)
    for src, mine in zip(srcs, together, strict=True):
        (alone,) = beam_search(model, [src], beam=3, n_best=3)
        assert [h.tokens for h in mine] == [h.tokens for h in alone]


@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_all_targets_finds_the_best_of_all(seed: int, alpha: float) -> None:
    model, src, limit = make(seed), [3, 5, 4], 3
    everything = []
    for length in range(limit + 1):
        for tokens in itertools.product(range(3, V), repeat=length):
            finished = length < limit
            h = Hypothesis(tokens, 0.0, 0.0, finished)
            score = log_prob(model, src, h) / penalty(length + finished, alpha)
            everything.append((score, tokens))
    everything.sort(reverse=True)
    (found,) = beam_search(model, [src], limit, beam=200, n_best=10, length_penalty=alpha)
    assert [h.tokens for h in found] == [tokens for _, tokens in everything[:10]]
    np.testing.assert_allclose(
        [h.score for h in found], [score for score, _ in everything[:10]], atol=1e-9
    )


def test_a_wider_beam_finds_what_greedy_misses() -> None:
    better = 0
    for seed in range(12):
        model = make(seed)
        (h,), (best,) = greedy(model, [[3, 4]]), beam_search(model, [[3, 4]], beam=5)
        better += best[0].score > h.score
    assert better >= 2


def test_the_length_penalty() -> None:
    assert penalty(1, 0.6) == 1.0 and penalty(7, 1.0) == 2.0 and penalty(99, 0.0) == 1.0
    lengths = []
    for alpha in (0.0, 4.0):
        found = [beam_search(make(s), [[3, 4]], beam=4, length_penalty=alpha) for s in range(12)]
        lengths.append(sum(len(best[0].tokens) for (best,) in found))
    assert lengths[0] < lengths[1]


# --- sampling ---
@given(seeds, sources, st.integers(0, 99))
@settings(max_examples=12)
def test_samples_are_what_they_say(seed: int, srcs: Any, draw: int) -> None:
    model, padded = make(seed), pad_sequences(srcs, PAD)
    found = sample(model, padded, rng=np.random.default_rng(draw))
    assert found == sample(model, padded, rng=np.random.default_rng(draw))
    for src, h in zip(srcs, found, strict=True):
        assert not {PAD, START, END} & set(h.tokens)
        assert h.finished or len(h.tokens) == LONGEST
        assert h.log_prob == pytest.approx(log_prob(model, src, h), abs=1e-9)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-9}])
def test_samples_without_choice_are_greedy(options: dict[str, Any]) -> None:
    src = [[3, 4, 5], [6, PAD, PAD]]
    for seed in range(5):
        assert sample(make(seed), src, **options) == greedy(make(seed), src)


def test_samples_come_as_often_as_their_probability() -> None:
    model = make(1)
    found = sample(model, [[3, 4]] * 4000, 1, rng=np.random.default_rng(0))
    with no_grad():
        probs = ops.softmax(model([[3, 4]], [[START]])).data[0, 0]
    probs[[PAD, START]] = 0.0
    probs /= probs.sum()
    first = [h.tokens[0] if h.tokens else END for h in found]
    counts = np.bincount(first, minlength=V)
    assert np.abs(counts / 4000 - probs).max() < 4 * math.sqrt(0.25 / 4000)


# --- sources of vectors, and what is refused ---
def test_dense_sources_are_decoded() -> None:
    model = make(5, src_vocab_size=None, src_features=3)
    src = np.random.default_rng(0).standard_normal((2, 5, 3))
    both = beam_search(model, src, src_lengths=[5, 2], beam=3)
    (alone,) = beam_search(model, src[1:, :2], beam=3)
    assert both[1][0].tokens == alone[0].tokens
    assert both[1][0].score == pytest.approx(alone[0].score, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "a limit of 0 tokens; the model can write 1 to 5"),
        ({"limit": 6}, "a limit of 6 tokens"),
        ({"beam": 0}, "a beam of 0"),
        ({"beam": 2, "n_best": 3}, "the 3 best of a beam of 2"),
        ({"length_penalty": -1.0}, "length penalty -1.0"),
        ({"length_penalty": math.nan}, "length penalty nan"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        beam_search(make(0), [[3]], **options)
    with pytest.raises(InputError, match="`temperature` is -1"):
        sample(make(0), [[3]], temperature=-1.0)


def test_a_model_that_diverged_is_reported() -> None:
    model = make(0)
    model.parameters()[0].data[:] = np.nan
    with pytest.raises(FailedError, match="not finite"):
        greedy(model, [[3, 4]])


# --- how often encoder and decoder run ---
@pytest.fixture(scope="module")
def translator() -> Transformer:
    """Learned by heart: You are welcome / De nada, and one more pair."""
    config = Seq2SeqConfig(
        src_vocab_size=7, tgt_vocab_size=7, d_model=12, n_heads=2, d_ff=16, max_length=6
    )
    model = Transformer(config)
    optimizer = AdamW(model, lr=3e-3)
    src, tgt = np.array([[3, 4, 5], [4, 6, PAD]]), np.array([[5, 6, PAD], [6, 3, 3]])
    for _ in range(80):
        optimizer.zero_grad()
        model.loss(src, tgt).backward()
        optimizer.step()
    return model


def test_passes_for_de_nada_end(translator: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training: each stack once for three labels. Inference: encoder once, decoder thrice."""
    passes: list[str] = []
    for stack in (translator.encoder, translator.decoder):

        def counted(*args: Any, stack: Any = stack, forward: Any = stack.forward, **kw: Any) -> Any:
            passes.append(type(stack).__name__)
            return forward(*args, **kw)

        monkeypatch.setattr(stack, "forward", counted)
    translator.loss([[3, 4, 5]], [[5, 6]])
    assert passes == ["EncoderStack", "DecoderStack"]
    (h,) = greedy(translator, [[3, 4, 5]])
    assert h.tokens == (5, 6) and h.finished
    assert passes[2:] == ["EncoderStack", *["DecoderStack"] * 3]


def test_the_memory_is_projected_once_per_layer(
    translator: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    for block in translator.decoder.h:
        attn = block.cross_attn
        assert attn is not None

        def counted(memory: Any, own: Any = attn.project) -> Any:
            calls.append(1)
            return own(memory)

        monkeypatch.setattr(attn, "project", counted)
    greedy(translator, [[3, 4, 5]])
    assert len(calls) == len(translator.decoder.h)


def test_it_stops_at_end_or_at_the_limit(translator: Transformer) -> None:
    src = [[3, 4, 5], [4, 6, PAD]]
    assert [h.tokens for h in greedy(translator, src)] == [(5, 6), (6, 3, 3)]
    cut = greedy(translator, src, 2)
    assert [(h.tokens, h.finished) for h in cut] == [((5, 6), False), ((6, 3), False)]
    exact = greedy(translator, src, 3)
    assert [h.finished for h in exact] == [True, False]


def test_training_goes_on_as_it_was(translator: Transformer) -> None:
    for mode in (True, False):
        translator.train(mode)
        greedy(translator, [[3, 4, 5]])
        assert translator.training is translator.decoder.h[0].mlp.training is mode
    translator.train()
