"""Runs on examples: what they write, how they go on, and what they refuse."""

import json
import shutil

import pytest

from tests.tasks.tiny_tasks import MAKERS, new_run, train
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.tasks.masked_lm import MaskedLMTask
from tinygrad_tf.tasks.translation import TranslationTask
from tinygrad_tf.tasks.translator import Translator
from tinygrad_tf.train.run import Run

KINDS = list(MAKERS)


def resume(folder, kind, name="run", **changes):
    task = new_run(folder, kind, "unused").task
    return Run.resume(type(task), folder / name, **changes)


# --- going on ---


@pytest.mark.parametrize("changes", [{}, {"threads": 2}, {"schedule": "noam"}])
@pytest.mark.parametrize("kind", KINDS)
def test_n_and_n_more_are_2n(tmp_path, outcome, kind, changes):
    whole = train(new_run(tmp_path, kind, "whole", **changes))
    done = train(new_run(tmp_path, kind, **changes), stop_at=10)[-1]
    assert (done.event, done.reason, done.steps) == ("done", "interrupted", 10)
    events = train(resume(tmp_path, kind))
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    assert events[-1] == whole[-1] and events[-1].event == "report"


def test_the_source_file_may_go(tmp_path, outcome):
    train(new_run(tmp_path, "translation", "whole"))
    train(new_run(tmp_path, "translation"), stop_at=10)
    run = Run.resume(TranslationTask, tmp_path / "run")
    (tmp_path / "pairs.tsv").unlink()
    train(run)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


# --- files and events ---


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_run_holds(tmp_path, kind):
    run = new_run(tmp_path, kind)
    assert not (tmp_path / "run").exists(), "nothing is written before it runs"
    plan = run.plan().as_json()
    events = [event.event for event in train(run)]
    assert events[-2:] == ["done", "report"] and events.count("eval") == 5
    directory = RunDirectory.open(tmp_path / "run")
    block = directory.read_config()["tt"]
    assert block["task"] == run.task.name and block["model"] == run.task.recipe.model
    names = set(block["files_sha256"])
    assert {"data/train.tsv", "data/train.txt"} & names
    assert all((tmp_path / "run" / name).is_file() for name in names)
    assert directory.checkpoint_steps()["latest"] == 20
    metrics = directory.read_metrics()
    assert metrics[0] == json.loads(json.dumps(plan)) and metrics[-1]["event"] == "report"
    assert {"run", "task", "unit", "params", "examples_train", "references"} <= set(plan)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(tmp_path, kind):
    changes = {"steps": 60, "learning_rate": 1e-2, "eval_every": 60, "checkpoint_every": 60}
    evals = [e for e in train(new_run(tmp_path, kind, **changes)) if e.event == "eval"]
    assert evals[-1].train_loss < 0.8 * evals[0].train_loss


def test_a_run_of_another_task_is_replaced_by_force(tmp_path):
    train(new_run(tmp_path, "translation"))
    train(new_run(tmp_path, "masked_lm", force=True))
    with pytest.raises(InputError, match="is a run of the task fill, not of the task translate"):
        Translator.load(tmp_path / "run")


# --- what is refused ---


def test_runs_of_another_kind_are_refused(tmp_path):
    train(new_run(tmp_path, "translation"))
    run = tmp_path / "run"
    with pytest.raises(InputError, match="is a run of the task translate, not of the task gpt"):
        Run.resume(LanguageModelTask, run)
    with pytest.raises(InputError, match="a run of the task translate, not a GPT"):
        GPT.load(run)
    with pytest.raises(InputError, match="not of the task fill"):
        Run.resume(MaskedLMTask, run)
    with pytest.raises(InputError, match="there are no weights 'first' of a run"):
        Translator.load(run, "first")


@pytest.mark.parametrize(
    "name", ["config.json", "source_tokenizer.json", "data/train.tsv", "data/held_out.tsv"]
)
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_file_is_named(tmp_path, name, damage):
    train(new_run(tmp_path, "translation"), stop_at=10)
    path = tmp_path / "run" / name
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(InputError) as fault:
        train(resume(tmp_path, "translation"))
    assert name.rpartition("/")[2] in str(fault.value) and "\n" not in str(fault.value)


def test_the_data_is_needed_to_go_on_but_not_to_use_a_run(tmp_path):
    train(new_run(tmp_path, "translation"))
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "run", copy)
    shutil.rmtree(copy / "data")
    run, other = (Translator.load(path).translate(["one"]) for path in (tmp_path / "run", copy))
    assert run == other
    with pytest.raises(InputError, match=r"train\.tsv"):
        Run.resume(TranslationTask, copy, steps=40)
