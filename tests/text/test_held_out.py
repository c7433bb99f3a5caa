"""Splits into what is trained on and what is held out."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import held_out_mask, hold_out, random_generator

fractions = st.floats(0.001, 0.999)
seeds = st.integers(0, 5)


@given(st.integers(2, 200), fractions, seeds)
def test_a_mask_holds_out_a_random_share_and_leaves_both_parts_some(total, fraction, seed):
    mask = held_out_mask(total, fraction, seed)
    count = min(total - 1, max(1, round(total * fraction)))
    assert mask.shape == (total,) and mask.sum() == count
    assert set(mask.nonzero()[0]) == set(random_generator(seed).permutation(total)[:count])


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30), fractions, seeds)
def test_equal_examples_go_to_one_part_and_none_is_lost(examples, fraction, seed):
    if len(set(examples)) < 2:
        with pytest.raises(InputError, match="there are 1 different examples"):
            hold_out(examples, fraction, seed)
        return
    train, held_out = hold_out(examples, fraction, seed)
    assert Counter(train) + Counter(held_out) == Counter(examples)
    assert train and held_out and not set(train) & set(held_out)


@given(st.lists(st.sampled_from(["x1", "x2", "x3", "y1", "y2", "z1"]), max_size=30), seeds)
def test_with_labels_each_one_is_split_apart(examples, seed):
    labels = [example[0] for example in examples]
    kinds = {label: {x for x in examples if x[0] == label} for label in labels}
    if all(len(kind) < 2 for kind in kinds.values()):
        with pytest.raises(InputError, match=r"different examples, and some are held out"):
            hold_out(examples, 0.3, seed, labels)
        return
    _, held_out = hold_out(examples, 0.3, seed, labels)
    for label, kind in kinds.items():
        alone = [x for x in examples if x[0] == label]
        expected = hold_out(alone, 0.3, seed)[1] if len(kind) > 1 else []
        assert [x for x in held_out if x[0] == label] == expected


def test_no_seed_is_negative():
    with pytest.raises(InputError, match="the seed is -1"):
        random_generator(0, -1)
