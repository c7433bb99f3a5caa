"""Hidden tokens: what is learned of them, counted, and filled in."""

import pytest

from tests.tasks.tiny_tasks import new_run, train
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks.masked_lm import MaskedLMTask, MaskFiller

WELL = {"steps": 250, "learning_rate": 5e-3, "eval_every": 50, "checkpoint_every": 250}


@pytest.fixture(scope="module", params=["word", "bpe"])
def filler(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    own = {
        "count": 300,
        "tokenizer": request.param,
        "vocab_size": 280 if request.param == "bpe" else None,
    }
    run = new_run(folder, "masked_lm", **WELL, d_model=32, dropout=0.0, **own)
    figures = train(run)[-1].figures
    assert 0 < figures["accuracy"] <= figures["among_five"] <= 1 <= figures["perplexity"]
    return MaskFiller.load(folder / "run")


@pytest.mark.parametrize("hidden", ["_", "[MASK]", "___"])
def test_what_must_be_there_is_found(filler, hidden):
    """Every text has both words once."""
    filled = filler.fill(f"left so {hidden}")
    assert filled.text == "left so right"
    ((best, prob), *_) = filled.answers[0]
    assert best.strip() == "right" and 0.5 < prob <= 1


def test_several_places_each_have_answers(filler):
    filled = filler.fill("_ so _ is", 3)
    assert len(filled.answers) == 2 and all(len(ranked) == 3 for ranked in filled.answers)
    for ranked in filled.answers:
        probs = [prob for _, prob in ranked]
        assert probs == sorted(probs, reverse=True) and sum(probs) <= 1 + 1e-9
    assert "_" not in filled.text and filled.text.split()[1] == "so"


def test_no_special_token_is_an_answer(filler):
    bias = filler.model.output_bias.data
    before = bias.copy()
    bias[:2] += 100.0
    filled = filler.fill("left so _", 1000)
    bias[:] = before
    names = [token for token, _ in filled.answers[0]]
    assert filled.text == "left so right" and "MASK" not in names[:-2] and "PAD" not in names[:-2]


def test_what_cannot_be_filled_is_refused(filler):
    with pytest.raises(InputError, match=r"nothing is hidden .*; write _ or \[MASK\]"):
        filler.fill("left so right")
    with pytest.raises(InputError, match="tokens, and the most is 32"):
        filler.fill("so " * 40 + "_")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ("\n\n", "0 different examples"),
        ("one text\n", "1 different examples"),
        ("one\ntwo\n\n" + "so " * 300, "line 4: 300 tokens, more than the 256"),
    ],
)
def test_bad_texts_are_refused(tmp_path, content, fault):
    path = tmp_path / "bad.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        MaskedLMTask.create(path)


def test_empty_lines_are_passed_over(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("one\n\n  \ntwo\nthree\n", encoding="utf-8")
    task = MaskedLMTask.create(path)
    texts = task.files["data/train.txt"] + task.files["data/held_out.txt"]
    assert sorted(texts.split()) == [b"one", b"three", b"two"]
