"""Whole runs: the plan, what is written and when, what the events say and the figures mean."""

import json
import math
import os
import shutil
from dataclasses import fields

import numpy as np
import pytest

from tests.language_runs import create, resume
from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.models import GPT
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.train import events

DOCUMENTED = {
    "plan": "run params epochs references notes config",
    "step": "step loss lr grad_norm tokens tokens_per_second elapsed",
    "eval": "step train_loss val_loss best_val_loss best_step elapsed",
    "checkpoint": "step path",
    "warning": "step message",
    "done": "run steps reason val_loss val_bits_per_char val_bits_per_byte floor_bits_per_char "
    "best_val_loss "
    "best_step elapsed unit",
    "report": "step figures",
}
FACTS = "preset tokens_train tokens_val vocab_size flops memory_bytes"


def run(options) -> list[dict]:
    return [event.as_json() for event in create(options).run()]


# --- the plan ---


def test_a_run_that_never_begins_leaves_nothing(tiny_options, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    options = tiny_options()
    before = sorted(tmp_path.iterdir())
    experiment = create(options)
    experiment.plan()
    assert [p.name.startswith("data.tmp") for p in (tmp_path / "run").iterdir()] == [True]
    del experiment
    assert sorted(tmp_path.iterdir()) == before, "a run that never begins leaves nothing"
    experiment = create(options, dry_run=True)
    experiment.plan()
    assert sorted(tmp_path.iterdir()) == before
    del experiment
    assert not list(temporary.iterdir()), "its own files go with it"


def test_the_plan_counts(tiny_options):
    options = tiny_options(grad_accum=2)
    text = options["texts"][0].read_text(encoding="utf-8")
    plan = create(options).plan()
    total, val = len(text), plan.facts["tokens_val"] + 1
    assert plan.facts["tokens_train"] + 1 + val == total
    assert val == pytest.approx(0.1 * total, abs=1)
    assert plan.facts["vocab_size"] == len(set(text))
    assert plan.epochs == pytest.approx(20 * 2 * 4 * 8 / plan.facts["tokens_train"])
    assert plan.config["block_size"] == 8 and plan.config["grad_accum"] == 2
    assert GPT(create(options).task.config).parameter_count() == plan.params


def test_the_references_are_in_order(tiny_options):
    plan = create(tiny_options()).plan()
    known = plan.references
    assert known["uniform"] == pytest.approx(math.log(plan.facts["vocab_size"]))
    assert known["bigram"] < known["unigram"] < known["uniform"]
    assert known["floor"] is None, "nobody knows it for a text of one's own"


def test_too_little_memory_is_told_before_training(tiny_options, monkeypatch):
    monkeypatch.setattr("tinygrad_tf.train.run._free_memory", lambda: 1000)
    with pytest.raises(InputError, match="`force=True`"):
        create(tiny_options())
    create(tiny_options(force=True))


# --- events ---


def test_the_documented_keys_are_those_of_the_records():
    classes = [c for c in vars(events).values() if isinstance(c, type) and "event" in vars(c)]
    known = {c.event: {f.name for f in fields(c)} for c in classes if c.event}
    known["plan"].remove("facts")
    assert known == {name: set(keys.split()) for name, keys in DOCUMENTED.items()}


def test_every_event_is_json_with_the_documented_keys(tiny_options, tmp_path):
    experiment = create(tiny_options(dropout=0.1))
    told = [experiment.plan().as_json(), *(event.as_json() for event in experiment.run())]
    for event in told:
        assert json.loads(json.dumps(event, allow_nan=False)) == event
        facts = FACTS.split() if event["event"] == "plan" else []
        assert event.keys() == {"event", *DOCUMENTED[event["event"]].split(), *facts}
    assert {e["event"] for e in told} == {"plan", "step", "eval", "checkpoint", "done"}
    assert [e["step"] for e in told if e["event"] == "step"] == list(range(1, 21))
    kept = [e for e in told if e["event"] != "checkpoint"]
    metrics = RunDirectory(tmp_path / "run").read_metrics()
    assert metrics[1:] == kept[1:] and metrics[0]["event"] == "plan"
    done, evaluations = told[-1], [e for e in told if e["event"] == "eval"]
    assert done["steps"] == 20 and done["reason"] == "steps"
    assert done["val_loss"] == evaluations[-1]["val_loss"]
    assert done["best_val_loss"] == min(e["val_loss"] for e in evaluations)
    assert evaluations[0]["val_loss"] == pytest.approx(math.log(told[0]["vocab_size"]), abs=0.1)
    assert evaluations[-1]["val_loss"] < evaluations[0]["val_loss"] - 0.1


def test_bits_per_char_count_characters_not_bytes(tiny_options, tmp_path):
    """By hand: the nats of all targets, over the characters that begin among the targets."""
    text = tmp_path / "accents.txt"
    text.write_text("l'été où naît l'œuf, 日本語 » " * 40, encoding="utf-8")
    for tokenizer in ("byte", "char"):
        out = tmp_path / tokenizer
        done = run(tiny_options(texts=(text,), tokenizer=tokenizer, out=out))[-1]
        experiment = resume(out, steps=99)
        val = experiment.task.tokens.val
        predicted = experiment.task.tokenizer.decode(val.tokens[1:])
        characters = len(predicted.replace("�", ""))
        assert characters < val.targets or tokenizer == "char"
        bits = done["val_loss"] * val.targets / math.log(2)
        assert done["val_bits_per_char"] == pytest.approx(bits / characters, rel=1e-9)
    assert done["floor_bits_per_char"] is None


# --- what is on the disk ---


def test_a_run_is_a_model_that_loads(tiny_options, tmp_path):
    done = run(tiny_options(learning_rate=0.3))[-1]  # the best is not the last
    out = tmp_path / "run"
    last, best = GPT.load(out), GPT.load(out, weights="best")
    steps = RunDirectory.open(out).checkpoint_steps()
    assert steps["latest"] == 20 and steps["best"] == done["best_step"]
    same = np.array_equal(last.wte.weight.data, best.wte.weight.data)
    assert same == (done["best_step"] == 20)
    np.testing.assert_array_equal(GPT.load(out / "best").wte.weight.data, best.wte.weight.data)


def test_an_existing_run_is_replaced_only_by_force(tiny_options, tmp_path, outcome):
    run(tiny_options(seed=1))
    first = outcome(tmp_path / "run")
    with pytest.raises(InputError, match=r"exists already.*`force=True`.*`resume="):
        create(tiny_options(seed=2))
    assert outcome(tmp_path / "run") == first
    run(tiny_options(seed=2, force=True))
    assert outcome(tmp_path / "run") != first
    run(tiny_options(seed=1, force=True))
    assert outcome(tmp_path / "run") == first


def test_force_does_not_touch_what_is_no_run(tiny_options, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="left alone"):
        run(tiny_options(force=True))
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_runs_without_a_name_of_their_own_get_free_ones(tiny_options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = []
    for _ in range(2):
        paths.append(run(tiny_options(out=None, steps=2))[-1]["run"])
    assert paths == [os.path.join("runs", "text"), os.path.join("runs", "text-2")]  # noqa: PTH118


def test_a_diverging_run_keeps_its_last_checkpoint(tiny_options, tmp_path):
    with pytest.raises(FailedError, match=r"not finite at step .*checkpoint of step \d+ is kept"):
        run(tiny_options(learning_rate=1e6, grad_clip=0.0, steps=200))
    assert all(np.isfinite(p.data).all() for p in GPT.load(tmp_path / "run").parameters())
    for record in RunDirectory.open(tmp_path / "run").read_metrics():
        assert None not in (record.get("loss", 0), record.get("val_loss", 0))


def test_warnings_that_come_while_it_runs_are_told(tiny_options):
    experiment = create(tiny_options(steps=3))
    told = []
    for event in experiment.run():
        if event.event == "step" and event.step == 1:
            experiment._warnings.append("the disk is nearly full")
        told += [event.message] if event.event == "warning" else []
    assert told == ["the disk is nearly full"]


def test_the_embedded_corpus_has_a_floor_below_every_reference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = create({}).plan()
    known = plan.references
    assert 0 < known["floor"] < known["bigram"] < known["unigram"] < known["uniform"]


def test_a_dry_run_tells_what_only_training_would_refuse(tmp_path, monkeypatch):
    """A taken directory and too little memory do not keep the plan from being shown."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("x", encoding="utf-8")
    monkeypatch.setattr("tinygrad_tf.train.run._free_memory", lambda: 1)
    options = {"out": tmp_path / "taken", "steps": 1}
    with pytest.raises(InputError):
        create(options)
    plan = create(options, dry_run=True).plan()
    assert any("GiB" in note for note in plan.notes)


def test_a_model_too_large_leaves_the_run_that_it_would_replace(tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    text.write_text("abcdefgh\n" * 200, encoding="utf-8")
    small = {"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 8, "steps": 2, "batch_size": 2}
    options = dict(texts=(text,), out=tmp_path / "run", force=True, **small)
    list(create(options).run())
    before = (tmp_path / "run" / "model.safetensors").read_bytes()

    def too_large(*_):
        raise MemoryError("no room")

    monkeypatch.setattr("tinygrad_tf.tasks.language_model.GPT", too_large)
    with pytest.raises(MemoryError):
        list(create(options).run())
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_a_changed_text_is_named_even_where_its_tokens_are_gone(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcdefgh\n" * 200, encoding="utf-8")
    small = {"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 8, "steps": 2, "batch_size": 2}
    list(create(dict(texts=(text,), out=tmp_path / "run", **small)).run())
    shutil.rmtree(tmp_path / "run" / "data")
    text.write_text("xyz\n" * 200, encoding="utf-8")
    with pytest.raises(InputError, match=r"the text of .* has changed"):
        resume(tmp_path / "run", steps=4)
