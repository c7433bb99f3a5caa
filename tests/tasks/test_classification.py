"""Labels and numbers for texts: files, figures, the bag of words, and use."""

import json

import numpy as np
import pytest

from tests.tasks.tiny_tasks import TINY, classification, new_run, train
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks import bag_of_words
from tinygrad_tf.tasks.classification import ClassificationTask
from tinygrad_tf.tasks.text_classifier import TextClassifier

WELL = {"steps": 250, "learning_rate": 5e-3, "eval_every": 50, "checkpoint_every": 250}
PLAIN = {"d_model": 16, "dropout": 0.0}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_it_learns_an_order_of_words(tmp_path, pooling):
    changes = PLAIN | WELL | {"pooling": pooling}
    run = new_run(tmp_path, "classification", **changes, count=300)
    figures = train(run)[-1].figures
    assert figures["labels"] == ["L", "R"]
    table = np.array(figures["confusion"])
    assert table.sum() == figures["examples"]
    assert np.trace(table) / table.sum() == figures["accuracy"]
    labeller = TextClassifier.load(tmp_path / "run")
    found = labeller.label(["left so right", "right it is left"])
    assert [one.labels[0][0] for one in found] == ["L", "R"]
    for one in found:
        probs = [prob for _, prob in one.labels]
        assert sum(probs) == pytest.approx(1.0) and probs == sorted(probs, reverse=True)
    (alone,) = labeller.label(["left so right"])
    assert alone.labels[0][1] == pytest.approx(found[0].labels[0][1], abs=1e-5)


def test_the_rows_of_the_confusion_table_are_the_true_labels(tmp_path):
    """Of a model that knows nothing, so that rows and columns differ."""
    run = new_run(tmp_path, "classification", steps=1, val_fraction=0.5)
    figures = train(run)[-1].figures
    lines = run.task.files["data/held_out.tsv"].decode().splitlines()
    true = [line.split("\t")[0] for line in lines]
    table = np.array(figures["confusion"])
    assert table.sum(axis=1).tolist() == [true.count(label) for label in figures["labels"]]
    assert figures["accuracy"] < 0.9 and len(figures["mistakes"]) > 0
    for one in figures["mistakes"]:
        assert one["answer"] != one["label"] and f"{one['label']}\t{one['text']}" in lines


def test_it_learns_numbers(tmp_path):
    changes = PLAIN | WELL | {"steps": 300}
    figures = train(new_run(tmp_path, "regression", **changes))[-1].figures
    assert figures["r2"] > 0.9 and figures["rmse"] < 8 and figures["mae"] <= figures["rmse"]
    assert figures["bag_of_words_rmse"] < 3, "here the bag says all"
    (one, other) = TextClassifier.load(tmp_path / "run").label(["yes yes yes no", "no no no"])
    assert abs(one.number - 35) < 10 and abs(other.number - 5) < 10 and one.labels == ()


def test_held_out_texts_have_every_label(tmp_path):
    task = classification(tmp_path, val_fraction=0.05)
    labels = {line.split(b"\t")[0] for line in task.files["data/held_out.tsv"].splitlines()}
    assert labels == {b"L", b"R"}
    learned = set(task.files["data/train.tsv"].splitlines())
    assert not learned & set(task.files["data/held_out.tsv"].splitlines())


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ("a\tx\nb y\n", "line 2: 1 column"),
        ("a\tx\nb\t\n", "line 2: the text is empty"),
        ("a\tx\na\ty\nb\tz\n", "line 3: the label 'b' is seen only once"),
        ("a\tx\na\ty\n", "all 2 labels are 'a'"),
        ("a\tx\na\tx\nb\ty\nb\ty\n", "no label has two different examples"),
        ("a\tx\na\ty\nb\tz\nb\t\x81\n", "not UTF-8"),
        ("a\tx\na\ty\nb\tz\nb\tw w w w w\n", "`max_length`"),
    ],
)
def test_bad_labels_are_refused(tmp_path, content, fault):
    path = tmp_path / "bad.tsv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=fault) as raised:
        ClassificationTask.create(path, **TINY, max_length=4)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("number", ["high", "nan", "inf", "1,5"])
def test_what_is_no_number_is_refused(tmp_path, number):
    path = tmp_path / "bad.tsv"
    path.write_text(f"1.5\tx\n{number}\ty\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"line 2: the label '{number}' is not a number"):
        ClassificationTask.create(path, regression=True)
    with pytest.raises(InputError, match="the embedded opinions have no numbers"):
        ClassificationTask.create(regression=True)


def test_what_cannot_be_read_is_refused(tmp_path):
    train(new_run(tmp_path, "classification"))
    labeller = TextClassifier.load(tmp_path / "run")
    with pytest.raises(InputError, match="lacks 'up'"):
        labeller.label(["left up"])
    with pytest.raises(InputError, match="the text is empty"):
        labeller.label(["left", ""])
    with pytest.raises(InputError, match="has 33 tokens, and the most is 32"):
        labeller.label(["so " * 33])
    assert labeller.label(["left up"], "skip")[0].labels == labeller.label(["left"])[0].labels


def test_labels_keep_any_letters(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("größe x\tone\ngröße x\ttwo\n→\tthree\n→\tfour\n", encoding="utf-8")
    task = ClassificationTask.create(path)
    assert json.loads(task.files["labels.json"])["labels"] == ["größe x", "→"]


def test_the_bag_of_words_is_right_where_words_decide_and_only_there():
    rng = np.random.default_rng(0)
    sources = [rng.integers(1, 6, 6) for _ in range(300)]
    has = np.array([int(3 in ids) for ids in sources])
    first = np.array([int(ids[0] > ids[1]) for ids in sources])
    table = bag_of_words.counts(sources, 6)
    assert table is not None and table.sum(axis=1).tolist() == [6.0] * 300
    for labels, low, high in ((has, 0.97, 1.0), (first, 0.3, 0.7)):
        found = bag_of_words.predict_classes(table[:200], labels[:200], table[200:], 2)
        assert low <= (found == labels[200:]).mean() <= high
    numbers = table @ np.array([0.0, 1.0, 2.0, -1.0, 0.5, 3.0])
    found = bag_of_words.predict_numbers(table[:200], numbers[:200], table[200:])
    np.testing.assert_allclose(found, numbers[200:], atol=0.2)
    assert bag_of_words.counts(sources, 10**6) is None


def test_the_embedded_opinions_hide_from_the_bag():
    """The data is such that the figure below 75 % is not by chance."""
    task = ClassificationTask.create()
    bag = task._bag_of_words()
    assert bag is not None and (bag == task._held_out[1]).mean() < 0.75
    references = task.references()
    assert references["uniform"] == pytest.approx(np.log(2))
    assert references["frequencies"] == pytest.approx(np.log(2), abs=0.01)
