"""Count models: known values, and the counting of pairs against a dictionary."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.text import baselines
from tinygrad_tf.text.baselines import bigram_nats, unigram_nats
from tinygrad_tf.text.reading import FileSource
from tinygrad_tf.text.tokenizers import CharTokenizer
from tinygrad_tf.text.tokens import build_tokens

VOCAB = 5
streams = st.lists(st.integers(0, VOCAB - 1), min_size=2, max_size=40)


@given(streams, streams, st.sampled_from([0.1, 1.0]), st.booleans())
def test_equal_to_counting_by_hand(train, val, add, dense):
    followers = Counter(pairwise(train))
    contexts, tokens = Counter(train[:-1]), Counter(train)
    bigram = [
        -math.log((followers[a, b] + add) / (contexts[a] + add * VOCAB)) for a, b in pairwise(val)
    ]
    unigram = [-math.log((tokens[b] + add) / (len(train) + add * VOCAB)) for b in val[1:]]
    arrays = np.array(train, dtype=np.uint8), np.array(val, dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_CHUNK", 7)
        patch.setattr(baselines, "_DENSE_VOCAB", VOCAB if dense else 0)
        assert bigram_nats(*arrays, VOCAB, add=add) == pytest.approx(np.mean(bigram))
        assert unigram_nats(*arrays, VOCAB, add=add) == pytest.approx(np.mean(unigram))


def test_unseen_tokens_cost_infinity_without_smoothing():
    train, val = np.array([0, 0, 0]), np.array([0, 1])
    assert unigram_nats(train, val, 2, add=0) == math.inf
    assert bigram_nats(train, val, 2, add=0) == math.inf


def test_nothing_to_predict_is_refused():
    with pytest.raises(ValueError, match="no token"):
        unigram_nats(np.array([0, 1]), np.array([0]), 2)


def test_large_vocabularies_need_no_square_table():
    tokens = np.array([0, 99_999, 0, 99_999], dtype=np.uint32)
    assert bigram_nats(tokens, tokens, 100_000, add=0) == 0


def test_known_values_of_shakespeare(tmp_path, shared_data):
    source = FileSource(shared_data / "tinyshakespeare.txt")
    data = build_tokens(source, CharTokenizer.from_text(source), tmp_path)
    splits = data.train.tokens, data.val.tokens, data.vocab_size
    assert unigram_nats(*splits) == pytest.approx(3.347, abs=5e-4)
    assert bigram_nats(*splits) == pytest.approx(2.4819, abs=5e-5)
    train = data.train.tokens
    assert bigram_nats(train, train, 65, add=0) == pytest.approx(2.4519, abs=5e-5)


def test_known_values_of_names(tmp_path, shared_data):
    source = FileSource(shared_data / "names.txt")
    data = build_tokens(source, CharTokenizer.from_text(source), tmp_path, lines=True)
    # The closing boundary of one split is the opening one of the other.
    names = np.concatenate([data.train.tokens, data.val.tokens[1:]])
    assert bigram_nats(names, names, 27, add=0) == pytest.approx(2.4540, abs=5e-5)
    assert bigram_nats(names, names, 27) == pytest.approx(2.4546, abs=5e-5)
