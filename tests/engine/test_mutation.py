"""Arrays changed after they were recorded, and the first NaN or infinity: both are named."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf import Tensor, detect_anomaly, grad, mutation_checks_off, no_grad, ops
from tinygrad_tf.engine.mutation import AnomalyError, MutationError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.types import Array


# --- arrays changed in place ----------------------------------------------------------------------
def test_changing_an_input_before_backward_is_refused_with_what_to_write() -> None:
    x, y = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor(np.ones(3), requires_grad=True)
    z = x * y
    x.data[:] = 0.0
    with pytest.raises(MutationError, match=r"input 0 of multiply, an array of shape \(3,\)") as e:
        z.sum().backward()
    assert "x = x + change" in str(e.value) and x.grad is None and y.grad is None


def test_the_array_that_a_tensor_was_made_of_and_plain_constants_are_watched_too() -> None:
    a, constant = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    w = Tensor([5.0, 6.0], requires_grad=True)
    for change in (a, constant):
        loss = (Tensor(a) * w * constant).sum()
        change[0] += 1.0
        with pytest.raises(MutationError):
            loss.backward()
        assert w.grad is None


def test_a_view_recorded_in_place_of_its_leaf_is_watched() -> None:
    x, y = Tensor(np.ones((2, 3)), requires_grad=True), Tensor(np.ones((3, 2)), requires_grad=True)
    loss = (x.T * y).sum()
    x.data[0, 2] = 7.0
    with pytest.raises(MutationError):
        loss.backward()


def test_results_that_were_recorded_are_read_only_and_others_are_not() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()

    def ways(data: Any) -> list[Callable[[], object]]:
        return [
            lambda: data.__setitem__(0, 0.0),
            lambda: np.add(data, 1.0, out=data),
            lambda: data.__iadd__(1.0),
            data.sort,
            lambda: data[:1].fill(0.0),
        ]

    for change in ways(h.data):
        with pytest.raises(MutationError, match=r"write y = y \+ change"):
            change()
    assert type(h.data * 2) is np.ndarray and repr(h.data) == repr(h.data.copy() * 1.0)
    with no_grad():
        x.exp().data[0] = 0.0
    Tensor([1.0]).exp().data[0] = 0.0
    x.data[0] = 5.0  # nothing holds the leaf itself: exp keeps its output


def test_a_step_in_place_after_backward_is_no_fault() -> None:
    x = Tensor([3.0], requires_grad=True)
    for _ in range(40):
        x.grad = None
        (x * x).sum().backward()
        assert x.grad is not None
        x.data -= 0.1 * x.grad
    assert abs(x.item()) < 1e-3


def test_an_input_that_no_rule_needs_may_change() -> None:
    x, b = Tensor([1.0, 2.0], requires_grad=True), Tensor([0.0, 0.0], requires_grad=True)
    y = x + b
    b.data[:] = 9.0
    y.sum().backward()
    assert np.array_equal(b.grad, [1.0, 1.0])


def test_a_graph_that_is_walked_twice_is_watched_until_the_end() -> None:
    for create_graph in (False, True):
        x = Tensor([2.0], requires_grad=True)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        x.data[0] = 3.0
        with pytest.raises(MutationError):
            grad(y, x, create_graph=create_graph)


@given(st.data())
def test_any_single_change_is_seen_whatever_the_size_and_layout(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(), (1,), (5, 7), (64, 128), (3, 1000), (20011,)]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    array: Array = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=dtype).reshape(shape)
    array = data.draw(st.sampled_from([array, array.T, array[..., ::-1] if shape else array]))
    x, y = Tensor(array, requires_grad=True), Tensor(np.ones_like(array), requires_grad=True)
    loss = (x * y).sum()
    flat = data.draw(st.integers(0, array.size - 1))
    place = np.unravel_index(flat, array.shape)
    array[place] = np.nextafter(array[place], 0)
    with pytest.raises(MutationError):
        loss.backward()


def test_mutation_checks_off_is_for_loops_that_know_what_they_do() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 1.0], requires_grad=True)
    with mutation_checks_off():
        loss = (x * y).sum()
        x.data[:] = 0.0
    loss.backward()
    assert np.array_equal(y.grad, [0.0, 0.0])


@pytest.mark.parametrize(
    "use",
    [
        lambda x, places: x[places],
        lambda x, places: x[places, 1:],
        lambda x, places: x[:, places],
        lambda x, places: ops.take(x, places, 1),
        lambda x, places: ops.embedding(x, places),
        lambda x, places: ops.cross_entropy(x, places),
        lambda x, places: ops.take_along_axis(x, places[:, None], 1),
    ],
)
def test_indices_and_targets_are_watched_too(use: Any) -> None:
    places = np.array([0, 2, 1])
    x = Tensor(np.arange(9.0).reshape(3, 3), requires_grad=True)
    loss = use(x, places).sum()
    places[0] = 1
    with pytest.raises(MutationError, match="changed in place"):
        loss.backward()
    assert x.grad is None


def test_a_list_of_places_is_copied() -> None:
    x, places = Tensor(np.zeros(5), requires_grad=True), [0, 1]
    loss = x[places].sum()
    places[0] = 4
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1, 0, 0, 0]


def test_what_no_wanted_gradient_reads_may_change() -> None:
    x, c = Tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0])
    y = (x * c).sum()
    x.data += 1.0  # only the gradient of c, which nobody wants, would read x
    assert np.array_equal(grad(y, x), c)
    table = Tensor(np.ones((4, 2)), requires_grad=True)
    y = ops.embedding(table, [1, 1]).sum()
    table.data[:] = 0.0
    assert grad(y, table).tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]


@pytest.mark.parametrize("width", [61, 64, 122, 128])
def test_no_regular_change_of_a_large_array_goes_unseen(width: int) -> None:
    rng = np.random.default_rng(width)

    def swap(a: Array) -> None:
        a[[0, 61]] = a[[61, 0]]

    def negate(a: Array) -> None:
        a[:122] *= -1

    for change in (rng.shuffle, swap, negate, lambda a: np.negative(a, out=a)):
        a = rng.normal(size=(200, width))
        y = (Tensor(np.ones_like(a), requires_grad=True) * a).sum()
        change(a)
        with pytest.raises(MutationError):
            y.backward()


# --- the first NaN or infinity --------------------------------------------------------------------
def line_of(action: Callable[[], object]) -> str:
    """The file and first body line of a lambda or function on one line."""
    return f"{Path(__file__)}:{action.__code__.co_firstlineno}"


def test_the_first_nan_names_op_shapes_and_line() -> None:
    x = Tensor([[1.0, -4.0]], requires_grad=True)
    with np.errstate(invalid="ignore"), detect_anomaly():
        fault = lambda: ops.sqrt(x)  # noqa: E731
        with pytest.raises(AnomalyError) as e:
            fault()
    message = str(e.value)
    assert message.startswith("sqrt made NaN (1 of 2 entries) from inputs of shape (1, 2)")
    assert message.endswith(f"at {line_of(fault)}")


def test_the_first_infinity_also_within_no_grad_and_a_layer() -> None:
    model = GPT(GPTConfig(n_layer=1, n_head=1, n_embd=4, block_size=4, vocab_size=3), seed=0)
    model.named_parameters()["h.0.ln_1.weight"].data[:] = 3e38
    with np.errstate(all="ignore"), detect_anomaly(), no_grad(), pytest.raises(AnomalyError) as e:
        model(np.array([[0, 1, 2]]))
    assert "linear made" in str(e.value) or "layer_norm made" in str(e.value)
    assert "tinygrad_tf/nn" in str(e.value).replace("\\", "/")


def test_the_infinity_of_a_mask_is_meant() -> None:
    scores = Tensor(np.zeros((2, 2)), requires_grad=True)
    with detect_anomaly():
        masked = scores + np.array([[0.0, -np.inf], [0.0, 0.0]])
        loss = ops.softmax(masked)[0, 0]
        loss.backward()
    assert loss.item() == 1.0 and np.isfinite(scores.grad).all()


def test_a_nan_that_was_given_is_said_to_be_given() -> None:
    with detect_anomaly(), pytest.raises(AnomalyError, match="its input 1 already holds NaN"):
        Tensor([1.0, 2.0]) * Tensor([1.0, np.nan])


def test_a_gradient_that_is_not_finite_names_the_op_and_where_it_was_recorded() -> None:
    x = Tensor([0.0, 4.0], requires_grad=True)
    make = lambda: ops.sqrt(x).sum()  # noqa: E731
    for create_graph in (False, True):
        with np.errstate(divide="ignore"), detect_anomaly():
            loss = make()
            with pytest.raises(AnomalyError) as e:
                grad(loss, x, create_graph=create_graph)
            message = str(e.value)
            assert message.startswith("the gradient of sqrt for its input 0 has infinity (1 of 2")
            assert f"recorded at {line_of(make)}" in message
    assert x.grad is None


def test_anomaly_mode_names_the_line_of_a_changed_array() -> None:
    x = Tensor([1.0], requires_grad=True)
    with detect_anomaly():
        make = lambda: (x * x).sum()  # noqa: E731
        loss = make()
    x.data[0] = 2.0
    with pytest.raises(MutationError) as e:
        loss.backward()
    assert f"recorded at {line_of(make)}" in str(e.value)


def test_the_modes_are_of_this_thread_and_end_with_an_exception() -> None:
    x, values = Tensor([0.0], requires_grad=True), []

    def other() -> None:
        with np.errstate(divide="ignore"):
            values.append(ops.log(x).item())

    with pytest.raises(KeyError), detect_anomaly():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        raise KeyError
    other()
    assert values == [-np.inf, -np.inf]
