"""The training loop: what it learns, and what has no influence on that; when and how it ends."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.text.tokens import TokenFile
from tinygrad_tf.train.batches import Batch, WindowBatches, evaluation_batches
from tinygrad_tf.train.parallel import Compute, loss_and_gradients
from tinygrad_tf.train.trainer import TextMeasure, TrainConfig, Trainer
from tinygrad_tf.types import IGNORE

V, T = 11, 8


def tokens(length: int, seed: int) -> TokenFile:
    """A text with structure: mostly the successor of the token before."""
    steps = np.random.default_rng(seed).choice([1, 1, 1, 4], length)
    return TokenFile("training", (steps.cumsum() % V).astype(np.uint8))


TRAIN, VAL = tokens(400, 1), tokens(100, 2)


def small_gpt(seed: int = 0, **changes) -> GPT:
    shape = {"block_size": T, "n_layer": 2, "n_head": 2, "n_embd": 16, "dropout": 0.1}
    return GPT(GPTConfig(vocab_size=V, **(shape | changes)), seed)


def validation() -> Iterable[Batch]:
    return evaluation_batches(VAL, T, 5)


@dataclass
class Memory:
    """A store that remembers what it was asked to keep."""

    saved: list[tuple[int, bool]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def save(self, trainer, best):
        self.saved.append((trainer.progress.step, best))
        return f"step {trainer.progress.step}"

    def log(self, event):
        self.told.append(json.dumps(event.as_json(), allow_nan=False))


def trainer(model: GPT | None = None, *, seed: int = 0, store=None, batches=None, **config):
    return Trainer(
        model or small_gpt(seed),
        batches or WindowBatches(TRAIN, T, 4, seed),
        TrainConfig(**{"steps": 12, "warmup": 2, "eval_every": 100, **config}),
        validation=validation,
        training_sample=lambda: evaluation_batches(TRAIN, T, 16),
        store=store,
    )


def weights(model: GPT) -> bytes:
    return b"".join(p.data.tobytes() for p in model.parameters())


def trained(**options) -> bytes:
    it = trainer(**options)
    for _ in it.run():
        pass
    return weights(it.model)


# --- what is learned, and what has no part in it ---


def test_one_seed_one_model_bit_for_bit():
    assert trained(seed=3) == trained(seed=3)
    assert trained(seed=3) != trained(seed=4)


@pytest.mark.parametrize("config", [{"eval_every": 1}, {"checkpoint_every": 1}, {"eval_every": 5}])
def test_evaluating_and_saving_change_nothing(config):
    assert trained(store=Memory(), **config) == trained()


def test_sampling_changes_nothing():
    it = trainer()
    for event in it.run():
        if event.event == "step":
            it.model.generate([[1, 2]], 3, temperature=1.0, seed=event.step)
    assert weights(it.model) == trained()


def test_the_loss_falls_from_that_of_guessing():
    it = trainer(small_gpt(dropout=0.0), steps=150, learning_rate=1e-2)
    evaluations = [event for event in it.run() if event.event == "eval"]
    assert evaluations[0].step == 0
    assert evaluations[0].val_loss == pytest.approx(math.log(V), abs=0.1)
    # The source's entropy is 0.56 nats; successors alone bring the loss near it.
    assert 0.5 < evaluations[-1].val_loss < 1.0


class Listed:
    """Batches from a list."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = list(batches)

    def next_batch(self) -> Batch:
        return self.batches.pop(0)


def test_accumulating_two_halves_is_one_batch():
    """Also where one half has fewer targets that count, so that the mean of means is wrong."""
    rng = np.random.default_rng(0)
    ids, targets = rng.integers(0, V, (2, 6, T))
    targets[:3, 2:] = IGNORE
    targets[4, 5] = IGNORE
    whole = Batch(ids, targets)
    halves = [Batch(ids[part], targets[part]) for part in (slice(3), slice(3, None))]
    results = []
    for batches, count in ((Listed(whole), 1), (Listed(*halves), 2)):
        model = small_gpt(dropout=0.0).astype(np.float64)
        it = trainer(model, batches=batches, grad_accum=count, steps=1)
        (step,) = (event for event in it.run() if event.event == "step")
        results.append((step, model.state_dict(), it.optimizer.state_dict()))
    (one, weights_one, moments_one), (two, weights_two, moments_two) = results
    assert two.loss == pytest.approx(one.loss, rel=1e-6)
    assert two.grad_norm == pytest.approx(one.grad_norm, rel=1e-6)
    assert one.tokens == two.tokens == whole.count
    for name in weights_one:
        np.testing.assert_allclose(weights_two[name], weights_one[name], rtol=1e-6, atol=1e-9)
    for name in moments_one:
        np.testing.assert_allclose(moments_two[name], moments_one[name], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_clipping_shortens_long_gradients_only(share):
    batch = WindowBatches(TRAIN, T, 4, 0).next_batch()
    model = small_gpt(dropout=0.0)
    _, gradients = loss_and_gradients(model, batch)
    norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients.values()))
    it = trainer(model, batches=Listed(batch), steps=1, grad_clip=share * norm, beta1=0.9)
    (step,) = (event for event in it.run() if event.event == "step")
    assert step.grad_norm == pytest.approx(norm, rel=1e-5), "as it was before clipping"
    first_moment = {n: m for n, m in it.optimizer.state_dict().items() if n.startswith("m.")}
    for name, gradient in gradients.items():
        expected = 0.1 * min(1.0, share) * gradient
        np.testing.assert_allclose(first_moment[f"m.{name}"], expected, rtol=1e-4, atol=1e-9)


# --- evaluation ---


def test_the_whole_validation_split_is_evaluated():
    """Equal to the mean of -ln p over every target, taken by hand from the logits."""
    model = small_gpt().eval()
    nats = []
    ids = VAL.tokens.astype(np.int64)
    for start in range(0, len(ids) - 1, T):
        window = ids[start : start + T + 1]
        logits = model(window[None, :-1]).data[0].astype(np.float64)
        log_z = np.log(np.exp(logits).sum(axis=1))
        nats += list(log_z - logits[np.arange(len(window) - 1), window[1:]])
    assert len(nats) == VAL.targets
    assert Compute().mean_loss(model, validation()) == pytest.approx(np.mean(nats), rel=1e-6)


def test_a_mean_of_no_targets_is_refused_not_guessed():
    with pytest.raises(InputError):
        Compute().mean_loss(
            small_gpt(), evaluation_batches(TokenFile("validation", VAL.tokens[:1]), T, 5)
        )


def test_bits_per_character_and_byte():
    it = trainer(steps=1)
    it.measure = TextMeasure(0.5, 2.0)  # a token is half a character, or two bytes
    *_, done = it.run()
    bits = done.val_loss / math.log(2)
    assert done.val_bits_per_char == pytest.approx(2 * bits)
    assert done.val_bits_per_byte == pytest.approx(bits / 2)
    *_, unknown = trainer(steps=1).run()
    assert unknown.val_bits_per_char is None and unknown.val_bits_per_byte is None


# --- when it ends ---


def test_events_come_in_order_and_once():
    store = Memory()
    it = trainer(store=store, steps=6, eval_every=2, checkpoint_every=3)
    seen = [(e.event, getattr(e, "step", e.as_json().get("steps"))) for e in it.run()]
    without_best = [pair for pair in seen if pair[0] != "checkpoint"]
    steps = [("step", n) for n in range(1, 7)]
    expected = [("eval", 0), *steps[:2], ("eval", 2), *steps[2:4], ("eval", 4), *steps[4:]]
    assert without_best == [*expected, ("eval", 6), ("done", 6)]
    assert [pair for pair in seen if pair[0] == "checkpoint"] == [
        ("checkpoint", step) for step, _ in store.saved
    ]
    assert {0, 3, 6} <= {step for step, _ in store.saved}
    assert len(store.saved) == len(set(store.saved)), "no step is saved twice over"
    assert [json.loads(line)["event"] for line in store.told] == [e for e, _ in without_best]


def test_the_time_limit_ends_it_in_order():
    store = Memory()
    done = list(trainer(store=store, steps=10**6, time_limit=0.3).run())[-1]
    assert done.reason == "time-limit" and 0 < done.steps < 10**6
    assert math.isfinite(done.val_loss)
    assert store.saved[-1][0] == done.steps


def test_early_stop_ends_after_evaluations_without_a_better_one():
    still = {"learning_rate": 0.0, "min_lr": 0.0}
    done = list(trainer(steps=500, eval_every=3, early_stop=2, **still).run())[-1]
    assert (done.reason, done.steps, done.best_step) == ("early-stop", 6, 0)


def test_stop_finishes_the_step_and_saves():
    store = Memory()
    it = trainer(store=store, eval_every=5)
    for event in it.run():
        if event.event == "step" and event.step == 5:
            it.stop()
    assert (event.reason, event.steps) == ("interrupted", 5)
    assert store.saved[-1][0] == 5
    assert it.progress.evaluated_at == 0, "nothing more is evaluated"


def test_stop_in_the_last_step_comes_too_late():
    it = trainer(steps=5)
    for event in it.run():
        if event.event == "step" and event.step == 5:
            it.stop()
    assert (event.reason, event.steps) == ("steps", 5)
    assert it.progress.evaluated_at == 5


# --- what goes wrong ---


def run_until(it: Trainer, step: int, then) -> list:
    events = []
    for event in it.run():
        events.append(event)
        if event.event == "step" and event.step == step:
            then(it.model)
    return events


def test_the_first_loss_that_is_not_finite_ends_it_naming_step_and_layer():
    def poison(model: GPT) -> None:
        model.h[1].mlp.c_fc.weight.data[...] = 3e38  # finite, but not what comes of it

    store = Memory()
    it = trainer(store=store, checkpoint_every=2)
    with pytest.raises(FailedError, match=r"step 4 .*blocks\.1\.mlp\.hook_pre.*step 2 is kept"):
        run_until(it, 3, poison)
    assert store.saved[-1][0] == 2


def test_a_parameter_that_is_not_finite_is_named():
    def poison(model: GPT) -> None:
        model.h[1].mlp.c_proj.weight.data[0, 0] = np.nan

    with pytest.raises(FailedError, match=r"parameter h\.1\.mlp\.c_proj\.weight"):
        run_until(trainer(), 3, poison)


def test_an_evaluated_loss_that_is_not_finite_ends_it_before_it_is_saved():
    def poison(model: GPT) -> None:
        model.h[0].mlp.c_fc.weight.data[...] = 3e38

    store = Memory()
    it = trainer(store=store, eval_every=3, checkpoint_every=3)
    with pytest.raises(FailedError, match=r"evaluated loss .*step 3 .*blocks\.0\.mlp"):
        run_until(it, 3, poison)
    assert store.saved == [(0, True)]


def test_the_first_gradient_that_is_not_finite_ends_it_and_moves_nothing():
    calls = []

    class Poisoned(Compute):
        def gradients(self, model, batch):
            calls.append(None)
            loss, gradients = loss_and_gradients(model, batch)
            if len(calls) == 3:
                gradients["h.1.attn.c_attn.weight"][0, 0] = np.inf
                calls.append(weights(model))
            return loss, gradients

    it = trainer()
    it.compute = Poisoned()
    with pytest.raises(FailedError, match=r"gradient .*step 3 .*h\.1\.attn\.c_attn\.weight"):
        list(it.run())
    assert weights(it.model) == calls[-1]


def test_a_learning_rate_far_too_high_fails_with_a_remedy():
    with pytest.raises(FailedError, match=r"lower rate, such as `learning_rate="):
        list(trainer(learning_rate=1e6, grad_clip=0.0, steps=100, eval_every=1).run())


def test_over_fitting_is_warned_of_once():
    few = TokenFile("training", np.random.default_rng(5).integers(0, V, 30).astype(np.uint8))
    it = Trainer(
        small_gpt(dropout=0.0),
        WindowBatches(few, T, 8, 0),
        TrainConfig(steps=150, learning_rate=1e-2, warmup=0, eval_every=10),
        validation=validation,
        training_sample=lambda: evaluation_batches(few, T, 16),
    )
    warnings = [event for event in it.run() if event.event == "warning"]
    assert len(warnings) == 1
    assert "over-fitting" in warnings[0].message and warnings[0].step < 150


def test_no_warning_where_validation_falls():
    events = trainer(small_gpt(), steps=60, eval_every=5, learning_rate=3e-3).run()
    assert not [event for event in events if event.event == "warning"]


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"grad_accum": 0},
        {"eval_every": 0},
        {"checkpoint_every": -1},
        {"warmup": -1},
        {"learning_rate": math.nan},
        {"learning_rate": -1e-3},
        {"min_lr": math.inf},
        {"weight_decay": -0.1},
        {"grad_clip": math.nan},
        {"beta1": 1.0},
        {"beta2": -0.1},
        {"early_stop": 0},
        {"time_limit": 0.0},
        {"time_limit": math.nan},
    ],
)
def test_numbers_that_mean_nothing_are_refused(bad):
    (name,) = bad
    with pytest.raises(InputError, match=name):
        TrainConfig(**bad)
