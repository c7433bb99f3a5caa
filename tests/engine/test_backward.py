"""Tensor beside its textbook twin: reuse, no_grad, detach, retain_graph, repeated backward."""

import contextlib
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests import twins
from tests.twins import Twin
from tinygrad_tf import Tensor, no_grad, ops

EIGHTHS = st.integers(-24, 24).map(lambda n: n / 8)
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "max": ops.maximum,
}


class BesideItsTwin(RuleBasedStateMachine):
    """Scalars of shape (); leaves collect gradients, and a walk frees what it passes."""

    @initialize(numbers=st.lists(EIGHTHS, min_size=1, max_size=3))
    def begin(self, numbers):
        self.pairs = []
        for x in numbers:
            self.leaf(x, True)

    def _keep(self, tensor, twin):
        if abs(twin.data) < 100:
            assert tensor.item() == pytest.approx(twin.data, rel=1e-12, abs=1e-12)
            assert tensor.requires_grad == twin.needs_grad
            self.pairs.append((tensor, twin))

    def _pick(self, data):
        return self.pairs[data.draw(st.integers(0, len(self.pairs) - 1))]

    @rule(x=EIGHTHS, needs_grad=st.booleans())
    def leaf(self, x, needs_grad):
        self.pairs.append((Tensor(np.array(x), needs_grad), Twin(x, needs_grad=needs_grad)))

    @rule(data=st.data())
    def detach(self, data):
        tensor, twin = self._pick(data)
        self.pairs.append((tensor.detach(), Twin(twin.data, needs_grad=False)))

    @rule(data=st.data(), name=st.sampled_from(sorted(twins.UNARY)), off=st.booleans())
    def unary(self, data, name, off):
        tensor, twin = self._pick(data)
        if twin.data < 5:
            with no_grad() if off else contextlib.nullcontext():
                result = getattr(ops, name)(tensor)
            self._keep(result, cut(twins.unary(name, twin), off))

    @rule(data=st.data(), name=st.sampled_from(sorted(twins.BINARY)), off=st.booleans())
    def binary(self, data, name, off):
        (a, twin_a), (b, twin_b) = self._pick(data), self._pick(data)
        if name == "/" and abs(twin_b.data) < 0.1:
            return
        with no_grad() if off else contextlib.nullcontext():
            result = OPERATORS[name](a, b)
        self._keep(result, cut(twins.binary(name, twin_a, twin_b), off))

    @rule(data=st.data(), retain=st.booleans())
    def backward(self, data, retain):
        tensor, twin = self._pick(data)
        if not twin.needs_grad:
            with pytest.raises(RuntimeError, match="nothing was recorded"):
                tensor.backward()
            return
        reached = walk(twin)
        freed = next((i for i, node in enumerate(reached) if node.freed), len(reached))
        if freed < len(reached):
            with pytest.raises(RuntimeError, match="retain_graph=True"):
                tensor.backward(retain_graph=retain)
        else:
            tensor.backward(retain_graph=retain)
            for node in reached:
                if not node.parents:
                    twin.add_slope(node)
        if not retain:
            for node in reached[:freed]:
                node.freed = bool(node.parents)

    @rule()
    def zero_grad(self):
        for tensor, twin in self.pairs:
            tensor.grad = None
            twin.grad = twin.size = 0.0

    @invariant()
    def every_gradient_is_the_same(self):
        for tensor, twin in getattr(self, "pairs", []):
            got = tensor.grad
            assert got is None or (type(got) is np.ndarray and got.shape == ())
            assert twin.agrees(0.0 if got is None else float(got)), (tensor, twin.grad)


def cut(twin: Twin, off: bool) -> Twin:
    """Remove from a twin what the engine does not record: under no_grad, or of a constant."""
    twin.parents = [(parent, slope) for parent, slope in twin.parents if parent.needs_grad]
    twin.needs_grad = bool(twin.parents) and not off
    if off:
        twin.parents = []
    return twin


def walk(root: Twin) -> list[Twin]:
    """List the numbers that the root was computed from, the youngest first."""
    reached = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if not node.freed:
            new = {parent for parent, _ in node.parents} - reached
            reached |= new
            stack.extend(new)
    return sorted(reached, key=lambda node: node.born, reverse=True)


TestBesideItsTwin = BesideItsTwin.TestCase
TestBesideItsTwin.settings = settings(max_examples=60, stateful_step_count=25)


@pytest.mark.slow
class TestBesideItsTwinForLong(BesideItsTwin.TestCase):
    settings = settings(max_examples=300, stateful_step_count=25)


@given(EIGHTHS)
def test_the_machine_knows_a_freed_graph(x):
    twin = twins.binary("*", Twin(x), Twin(x))
    twin.freed = True
    assert walk(twin) == [twin]
