"""Translation: pairs in, an encoder-decoder, translations and their attention out."""

import math

import numpy as np
import pytest

from tests.tasks.tiny_tasks import TINY, new_run, pairs_file, train, translation
from tinygrad_tf.corpus.phrases import ALWAYS
from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.tasks.task_tokenizer import TaskTokenizer, learn_tokenizer
from tinygrad_tf.tasks.translation import SPECIALS, TranslationTask
from tinygrad_tf.tasks.translator import Translator
from tinygrad_tf.text.tokenizer_files import read_tokenizer


@pytest.fixture(scope="module", params=["word", "bpe"])
def run(request, tmp_path_factory):
    """A run that has learned the order of words, by whole words and by byte pairs."""
    folder = tmp_path_factory.mktemp(request.param)
    training = {"steps": 250, "learning_rate": 5e-3, "eval_every": 50, "checkpoint_every": 250}
    own = {
        "count": 300,
        "tokenizer": request.param,
        "vocab_size": 270 if request.param == "bpe" else None,
    }
    train(new_run(folder, "translation", **training, d_model=32, dropout=0.0, **own))
    return folder / "run"


# --- from text to ids ---


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_side_gives_back_its_texts(kind):
    texts = ["The ball is blue", "¿Es azul la bola?", "the boy's ball"]
    side = TaskTokenizer(learn_tokenizer(kind, texts), SPECIALS)
    again = TaskTokenizer(read_tokenizer(side.file()), SPECIALS)
    for text in texts:
        ids = side.encode(text)
        assert side.decode(ids) == text == again.decode(again.encode(text))
        assert ids.min() >= len(SPECIALS) and ids.max() < side.vocab_size
        assert side.decode([1, *ids, 2, 0]) == text, "special tokens are no text"
        assert "".join(side.token_text(i) for i in ids).replace(" ", "") == text.replace(" ", "")
    assert [side.token_text(i) for i in range(3)] == ["PAD", "START", "END"]


def test_words_take_no_vocab_size():
    with pytest.raises(InputError, match="`vocab_size=10` has no meaning"):
        learn_tokenizer("word", ["a b"], 10)
    with pytest.raises(InputError, match="tokenizer 'char' is not known"):
        learn_tokenizer("char", ["a b"])


# --- a new run ---


def test_held_out_pairs_are_never_learned_from(tmp_path):
    task = translation(tmp_path, val_fraction=0.25)
    learned, tested = set(task.train.pairs), set(task.held_out.pairs)
    lines = (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert not learned & tested and len(learned | tested) == len(set(lines))
    assert len(task.train.pairs) + len(task.held_out.pairs) == len(lines)
    assert len(tested) == round(0.25 * len(set(lines)))
    other = translation(tmp_path, seed=4, val_fraction=0.25)
    assert set(other.held_out.pairs) != tested


def test_the_embedded_default_holds_the_documents_pairs():
    task = TranslationTask.create()
    pairs = set(task.train.pairs)
    assert {phrase[:2] for phrase in ALWAYS} <= pairs and not pairs & set(task.held_out.pairs)
    assert ("You are welcome", "De nada") in pairs
    references = task.references()
    assert references["uniform"] == pytest.approx(math.log(task.model.config.tgt_vocab_size))
    assert 0 < references["unigram"] < references["uniform"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ("one\tuno\ntwo dos\n", "line 2: 1 column instead of 2"),
        ("one\tuno\t1\n", "line 1: 3 columns"),
        ("one\tuno\n\tdos\n", "line 2: the source is empty"),
        ("one\tuno\ntwo\t \n", "line 2: the target is empty"),
        ("one\tuno\none\tuno\n", "1 different examples"),
        ("one\tuno\n" + "two " * 9 + "\tdos\n", "line 2: the source takes 9 positions.*is 8"),
        ("one\tuno\ntwo\t" + "dos " * 8 + "\n", "line 2: the target takes 9 positions.*is 8"),
        ("one\tuno\ntwo\tdos\xff\n", "not UTF-8"),
    ],
)
def test_bad_pairs_are_refused_by_line(tmp_path, content, fault):
    path = tmp_path / "bad.tsv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=fault) as raised:
        TranslationTask.create(path, **TINY, max_length=8)
    assert "bad.tsv" in str(raised.value) or "different" in fault
    assert "\n" not in str(raised.value)


def test_two_files_are_as_one(tmp_path):
    one = translation(tmp_path)
    columns = [
        line.split("\t") for line in (tmp_path / "pairs.tsv").read_text("utf-8").splitlines()
    ]
    for name, column in (("a", 0), ("b", 1)):
        text = "".join(pair[column] + "\n" for pair in columns)
        (tmp_path / name).write_text(text, encoding="utf-8")
    two = TranslationTask.create(tmp_path / "a", tmp_path / "b", **TINY)
    assert two.files == one.files


def test_marks_of_other_systems_are_reported(tmp_path):
    path = tmp_path / "windows.tsv"
    path.write_bytes("\ufeffone\tuno\r\ntwo\tdos\r\n".encode())
    task = TranslationTask.create(path)
    assert sorted(task.train.pairs + task.held_out.pairs) == [("one", "uno"), ("two", "dos")]
    assert any("byte order mark" in note for note in task.notes)
    assert any("CRLF" in note for note in task.notes)


# --- the report ---


def test_the_report_counts_what_is_right(tmp_path):
    """Of the best weights, which here are not the last."""
    training = {"steps": 12, "learning_rate": 0.1, "min_lr": 0.1, "eval_every": 1}
    run = new_run(tmp_path, "translation", **training)
    figures = train(run)[-1].figures
    assert RunDirectory.open(tmp_path / "run").checkpoint_steps()["best"] < 12
    task = run.task
    translator = Translator.load(tmp_path / "run")
    sources = [source for source, _ in task.held_out.pairs]
    answers = [one.text for one in translator.translate(sources)]
    right = [a == b for a, (_, b) in zip(answers, task.held_out.pairs, strict=True)]
    assert figures["exact_match"] == pytest.approx(np.mean(right))
    assert figures["examples"] == len(sources)
    assert 0 <= figures["token_accuracy"] <= 1 and 0 <= figures["bleu"] <= 100
    told = dict(zip(sources, answers, strict=True))
    for one in figures["mistakes"]:
        assert one["answer"] == told[one["source"]] != one["reference"]


# --- use ---


def test_it_translates_what_it_learned(run):
    found = Translator.load(run).translate(["one and two", "six and five"])
    assert [one.text for one in found] == ["dos y uno", "cinco y seis"]
    assert all(one.finished and one.log_prob < 0 for one in found)


def test_a_beam_of_one_is_greedy_and_more_is_no_worse(run):
    translator = Translator.load(run)
    texts = ["one and two and three", "five"]
    first = translator.translate(texts)
    assert [some[0] for some in translator.beam(texts, beam=1)] == first
    for some, one in zip(translator.beam(texts, beam=4, n_best=3), first, strict=True):
        scores = [h.score for h in some]
        assert scores == sorted(scores, reverse=True) and scores[0] >= one.score - 1e-12
        assert len({h.text for h in some}) == 3
    with pytest.raises(InputError, match="the 3 best of a beam of 2"):
        translator.beam(texts, beam=2, n_best=3)


def test_sampling_repeats_with_its_seed(run):
    translator = Translator.load(run)
    one, same, other = (
        translator.sample(["one and two"] * 8, temperature=3.0, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same != other
    (likeliest,), (first,) = translator.sample(["six"], top_k=1), translator.translate(["six"])
    assert likeliest.tokens == first.tokens
    assert likeliest.log_prob == pytest.approx(first.log_prob)


def test_attention_has_a_row_for_each_token_and_end(run):
    translator = Translator.load(run)
    (translation,) = translator.translate(["one and two"])
    mean = translator.attention("one and two", translation)
    assert len(mean.target) == len(translation.tokens) + 1 and mean.target[-1] == "END"
    assert mean.weights.shape == (len(mean.target), len(mean.source))
    np.testing.assert_allclose(mean.weights.sum(axis=1), 1.0, rtol=1e-5)
    heads = [translator.attention("one and two", translation, head=h).weights for h in (0, 1)]
    np.testing.assert_allclose(mean.weights, np.mean(heads, axis=0), atol=1e-6)
    first = translator.attention("one and two", translation, layer=0)
    assert not np.allclose(first.weights, mean.weights)
    for fault, place in (("layer 2", {"layer": 2}), ("head 9", {"head": 9})):
        with pytest.raises(InputError, match=f"there is no {fault}; give one from 0 to 1"):
            translator.attention("one and two", translation, **place)


def test_what_cannot_be_read_is_refused(tmp_path):
    train(new_run(tmp_path, "translation"))
    translator = Translator.load(tmp_path / "run")
    with pytest.raises(InputError, match=r"lacks 'seven' \(position 8"):
        translator.translate(["one and seven"])
    with pytest.raises(InputError, match="the source is empty"):
        translator.translate(["  "])
    with pytest.raises(InputError, match="has 25 tokens, and the most is 24"):
        translator.translate(["one " * 25])
    skipping = Translator.load(tmp_path / "run", unknown="skip")
    assert skipping.translate(["one seven"]) == skipping.translate(["one"])
    with pytest.raises(InputError, match="is empty"):
        skipping.translate(["seven"])


def test_pairs_longer_than_the_default_limit_raise_it(tmp_path):
    path = pairs_file(tmp_path / "pairs.tsv")
    path.write_text(path.read_text(encoding="utf-8") + "one " * 40 + "\tuno\n", encoding="utf-8")
    task = TranslationTask.create(path, **TINY)
    assert task.model.config.max_length == 40
    assert task.plan("run").config["max_length"] == 40
