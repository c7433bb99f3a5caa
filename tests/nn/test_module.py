"""Modules: names, sharing, state in and out, training and evaluation."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tinygrad_tf import Tensor, ops
from tinygrad_tf.errors import InputError
from tinygrad_tf.nn import Dropout, Linear, Module, Parameter


class Net(Module):
    """Two layers, a list of layers, and a parameter of its own that one layer shares."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.scale = Parameter(np.ones(3, np.float32))
        self.first = Linear(2, 3, rng=rng)
        self.rest = [Linear(3, 3, bias=False, rng=rng) for _ in range(2)]
        self.rest[1].weight = self.rest[0].weight
        self.drop = Dropout(0.5, rng)
        self.note = "not a parameter"

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x) * self.scale
        for layer in self.rest:
            x = layer(x)
        return self.drop(x)


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight"]


def test_every_parameter_has_one_name() -> None:
    net = Net()
    named = net.named_parameters()
    assert list(named) == NAMES
    assert named["rest.0.weight"] is net.rest[1].weight
    assert len(net.parameters()) == 4 and net.parameter_count() == 3 + 6 + 3 + 9
    assert all(p.requires_grad for p in net.parameters())


def test_state_goes_round() -> None:
    net, other = Net(), Net()
    for p in net.parameters():
        p.data[...] = np.random.default_rng(p.size).normal(size=p.shape)
    state = net.state_dict()
    other.load_state_dict(state)
    for name, p in other.named_parameters().items():
        np.testing.assert_array_equal(p.data, state[name])
        assert p.dtype == np.float32 and not np.shares_memory(p.data, state[name])
    state["scale"][:] = 7.0
    assert net.scale.data[0] != 7.0 and other.scale.data[0] != 7.0


def test_loading_names_every_key_that_does_not_fit_and_changes_nothing() -> None:
    net = Net()
    before = net.state_dict()
    state = {name: x + 1.0 for name, x in before.items()}
    del state["scale"]
    state["extra.weight"] = np.zeros(2)
    state["first.bias"] = np.zeros((3, 1))
    with pytest.raises(InputError) as caught:
        net.load_state_dict(state)
    message = str(caught.value)
    assert "missing scale" in message and "unexpected extra.weight" in message
    assert "first.bias has shape (3, 1) where (3,) is needed" in message
    for name, x in net.state_dict().items():
        np.testing.assert_array_equal(x, before[name])


def test_train_and_eval_reach_everything_below() -> None:
    net = Net()
    assert net.training and net.drop.training
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert net.train() is net and all(m.training for m in net.modules())
    assert not Net().eval().drop.training and Net().drop.training


def test_zero_grad_forgets_and_passes_over_the_frozen() -> None:
    net = Net()
    net.eval()
    net.scale.requires_grad = False
    ops.sum(net(Tensor(np.ones((1, 2), np.float32)))).backward()
    assert net.first.weight.grad is not None and net.scale.grad is None
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("again", [copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))])
def test_a_copy_keeps_what_is_shared(again: Any) -> None:
    net = Net()
    twin = again(net)
    assert twin.rest[0].weight is twin.rest[1].weight
    assert twin.rest[0].weight is not net.rest[0].weight
    assert list(twin.named_parameters()) == NAMES
    assert all(type(p) is Parameter and p.requires_grad for p in twin.parameters())


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Module"):
        Module()()
