"""Tuning a prompt: the loss falls on its task, and nothing of the model changes."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from tests.language_runs import create
from tinygrad_tf.errors import InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models import GPT
from tinygrad_tf.models.soft_prompt import PromptedGPT, SoftPrompt, weights_sha256
from tinygrad_tf.tasks.prompt_tuning import PromptTuning, PromptTuningOptions
from tinygrad_tf.train.parallel import Compute

SHAPE = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 12, "threads": 1}
STYLES = ("abc", "def", "ghi", "jkl", "mno", "pqr", "stu", "vwx")


def styles(count: int, seed: int, letters: tuple[str, ...]) -> str:
    """Lines that are each of one style: five letters drawn from a few."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        alphabet = letters[int(rng.random() * len(letters))]
        lines.append("".join(alphabet[int(rng.random() * len(alphabet))] for _ in range(5)))
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A model of eight styles that are as likely as each other."""
    folder = tmp_path_factory.mktemp("styles")
    text = folder / "text.txt"
    text.write_text(styles(900, 1, STYLES), encoding="utf-8")
    options = dict(
        texts=(text,),
        out=folder / "run",
        lines=True,
        steps=250,
        batch_size=16,
        learning_rate=1e-2,
        eval_every=250,
        **SHAPE,
    )
    for _ in create(options).run():
        pass
    return folder / "run"


@pytest.fixture
def one_style(tmp_path: Path) -> Path:
    path = tmp_path / "style.txt"
    path.write_text(styles(250, 2, ("ghi",)), encoding="utf-8")
    return path


def options(run: Path, text: Path, **changes) -> PromptTuningOptions:
    given = {"out": text.with_name("p.safetensors"), "length": 2, "steps": 60, "threads": 1}
    return PromptTuningOptions(run, (text,), **{**given, "eval_every": 20, **changes})


def files_of(run: Path) -> dict[str, bytes]:
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }


def test_the_loss_falls_and_the_base_stays_bit_for_bit(run, one_style):
    """Not knowing which of eight styles costs ln 8 a line of 6 targets, and letters ln 3."""
    before = files_of(run)
    digest = weights_sha256(GPT.load(run, weights="best"))
    tuning = PromptTuning(options(run, one_style))
    *_, told = (event.as_json() for event in tuning.run())
    assert told["event"] == "prompt-tuned" and told["reason"] == "steps"
    assert told["loss_before"] == pytest.approx((math.log(8) + 5 * math.log(3)) / 6, rel=0.06)
    assert told["loss_after"] < told["loss_before"]
    ratio = told["loss_after"] / told["loss_before"]
    assert told["reduction"] == pytest.approx(1 - ratio)
    assert told["bits_before"] == pytest.approx(told["loss_before"] / math.log(2))
    assert (told["prompt_params"], told["frozen_params"]) == (
        2 * 16,
        GPT.load(run).parameter_count(),
    )
    assert files_of(run) == before
    assert told["frozen_sha256"] == digest == weights_sha256(tuning.task.model.base)
    assert told["frozen_unchanged"] is True
    json.dumps(told, allow_nan=False)

    texts = [
        TextGenerator.load(run, soft_prompt=prompt).write("", 60, seed=0)
        for prompt in (None, told["out"], told["out"])
    ]
    assert texts[0] != texts[1] == texts[2]


def test_the_file_holds_the_best_and_what_it_was_worth(run, one_style):
    tuning = PromptTuning(options(run, one_style))
    events = [event.as_json() for event in tuning.run()]
    prompt = SoftPrompt.load(tuning.path)
    best = min(event["val_loss"] for event in events if event["event"] == "eval")
    assert prompt.loss_after == best == events[-1]["loss_after"]
    assert prompt.loss_before == events[-1]["loss_before"]
    base = GPT.load(run, weights="best")
    prompted = PromptedGPT.load(base, tuning.path)
    again = Compute().mean_loss(prompted, tuning.task.validation())
    assert again == pytest.approx(best, rel=1e-6)
    assert not any(event["event"] == "checkpoint" for event in events)


def test_one_seed_one_prompt_bit_for_bit(run, one_style):
    def vectors(seed: int) -> bytes:
        tuning = PromptTuning(options(run, one_style, seed=seed, steps=10, force=True))
        for _ in tuning.run():
            pass
        return SoftPrompt.load(tuning.path).vectors.tobytes()

    assert vectors(1) == vectors(1) != vectors(2)


def test_interrupted_it_writes_the_best_so_far(run, one_style):
    tuning = PromptTuning(options(run, one_style))
    for event in tuning.run():
        told = event.as_json()
        if told.get("step") == 27:
            tuning.stop()
    assert (told["reason"], told["steps"]) == ("interrupted", 27)
    assert SoftPrompt.load(tuning.path).loss_after == told["loss_after"] < told["loss_before"]


def test_nothing_is_written_before_the_end_and_nothing_overwritten(run, one_style):
    tuning = PromptTuning(options(run, one_style))
    events = tuning.run()
    next(events)
    events.close()
    assert not tuning.path.exists()
    tuning.path.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"exists already.*`force=True`"):
        PromptTuning(options(run, one_style))
    assert tuning.path.read_bytes() == b"mine"


def test_held_out_lines_are_never_learned_from(run, one_style):
    text = PromptTuning(options(run, one_style)).task.text
    decode = TextGenerator.load(run).tokenizer.decode
    train, val = (set(decode(part.tokens).split()) for part in (text.train, text.val))
    assert train and val and not train & val


@pytest.mark.parametrize(
    ("content", "changes", "said"),
    [
        ("yz\nabc\n", {}, "'y'"),
        ("ab\n", {}, "there are 1 different examples"),
        ("", {}, "is empty"),
        ("ab\nba\n", {"length": 0}, "a prompt of 0 vectors"),
        ("ab\nba\n", {"steps": 0}, "`steps` is 0"),
        ("ab\nba\n", {"out": Path("no/such/place/p")}, "does not exist"),
        ("ab\nba\n", {"out": Path()}, "is a directory"),
        (None, {}, "there is no file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(run, tmp_path, content, changes, said):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        PromptTuning(options(run, path, **changes))


def test_the_embedded_letters_need_the_characters_of_the_stories(run, tmp_path):
    with pytest.raises(InputError, match="'O'"):
        PromptTuning(PromptTuningOptions(run, out=tmp_path / "p", threads=1))


@pytest.mark.slow
def test_letters_cost_a_model_of_the_stories_a_fifth_less_with_a_prompt(tmp_path):
    base = {"out": tmp_path / "stories", "steps": 1200, "eval_every": 600}
    for _ in create(base).run():
        pass
    tuning = PromptTuning(PromptTuningOptions(tmp_path / "stories", steps=300))
    *_, told = (event.as_json() for event in tuning.run())
    assert told["reduction"] >= 0.2 and told["frozen_unchanged"]
    assert told["bits_after"] > told["bits_floor"] > 0
    assert np.isfinite(told["loss_after"])
