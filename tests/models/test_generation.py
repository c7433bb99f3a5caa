"""Temperature, top-k and top-p against their plainest definitions; generation of all models."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinygrad_tf.models.generation import Sampling

Array = npt.NDArray[np.float64]
# Few different values, so that ties are common.
ROWS = hnp.arrays(np.float32, st.integers(1, 8), elements=st.integers(-8, 8).map(lambda i: i / 2))
TEMPERATURES = st.sampled_from([0.25, 1.0, 3.0])
TOP_K = st.none() | st.integers(1, 12)
TOP_P = st.none() | st.sampled_from([0.05, 0.3, 0.77, 0.95, 1.0])


def definition(logits: Array, temperature: float, top_k: int | None, top_p: float | None) -> Array:
    """One row, by sorting and adding up one token after the other."""
    weights = [float(np.exp(x / temperature)) for x in logits.astype(float)]
    ranked = sorted(range(len(weights)), key=lambda token: (-weights[token], token))
    ranked = ranked[: len(ranked) if top_k is None else top_k]
    total = sum(weights[token] for token in ranked)
    kept: list[int] = []
    for token in ranked:
        reached = sum(weights[t] for t in kept) / total
        if top_p is not None and reached >= top_p - 1e-12:
            break
        kept.append(token)
    probs = np.array([weights[t] if t in kept else 0.0 for t in range(len(weights))])
    return probs / probs.sum()


@given(ROWS, TEMPERATURES, TOP_K, TOP_P)
def test_probabilities_follow_the_definition(
    logits: Array, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    ours = Sampling(temperature, top_k, top_p).probs(logits[None])
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours[0], definition(logits, temperature, top_k, top_p), atol=1e-9)


@given(ROWS, TEMPERATURES, TOP_K, TOP_P, st.integers(0, 99))
def test_what_is_chosen_was_possible(
    logits: Array, temperature: float, top_k: int | None, top_p: float | None, seed: int
) -> None:
    chosen = Sampling(temperature, top_k, top_p).choose(logits[None], np.random.default_rng(seed))
    assert chosen.shape == (1,)
    assert Sampling(temperature, top_k, top_p).probs(logits[None])[0, chosen[0]] > 0


@given(ROWS, st.integers(0, 99))
def test_greedy_ways_agree(logits: Array, seed: int) -> None:
    """Temperature 0, top_k 1, a tiny top_p and a tiny temperature: the first of the largest."""
    rng, first = np.random.default_rng(seed), int(np.argmax(logits))
    for sampling in (Sampling(0.0), Sampling(top_k=1), Sampling(top_p=1e-9)):
        assert sampling.choose(logits[None], rng) == [first]
    for tiny in (1e-3, 1e-300, 1e-323):
        assert logits[Sampling(tiny).choose(logits[None], rng)[0]] == logits[first]


@given(ROWS, TEMPERATURES)
def test_what_cuts_nothing_changes_nothing(logits: Array, temperature: float) -> None:
    plain = Sampling(temperature).probs(logits[None])
    for options in ({"top_k": len(logits)}, {"top_k": 99}, {"top_p": 1.0}):
        np.testing.assert_allclose(
            Sampling(temperature, **options).probs(logits[None]), plain, atol=1e-12
        )


def test_ties_keep_the_lower_ids() -> None:
    np.testing.assert_allclose(Sampling(top_k=2).probs(np.zeros((1, 4))), [[0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(
        Sampling(top_p=0.6).probs(np.zeros((1, 4))), [[1 / 3, 1 / 3, 1 / 3, 0]]
    )


def test_rows_are_independent_and_forbidden_tokens_stay_so() -> None:
    logits = np.array([[0.0, -np.inf, 1.0], [5.0, 0.0, -np.inf]])
    probs = Sampling().probs(logits)
    assert probs[0, 1] == 0.0 and probs[1, 2] == 0.0
    for row in range(2):
        np.testing.assert_array_equal(Sampling().probs(logits[row : row + 1])[0], probs[row])


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.8}, {"temperature": 2.0}])
def test_draws_have_the_frequencies(options: dict[str, Any]) -> None:
    logits, sampling = np.array([1.0, 0.0, 2.0, -1.0]), Sampling(**options)
    drawn = sampling.choose(np.tile(logits, (40_000, 1)), np.random.default_rng(0))
    frequencies = np.bincount(drawn, minlength=4) / 40_000
    expected = sampling.probs(logits[None])[0]
    np.testing.assert_allclose(frequencies, expected, atol=0.01)  # four standard deviations
