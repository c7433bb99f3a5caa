"""Byte pair tokenizers in a GPT's run, and models that come from elsewhere."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.main import run as tt
from tests.language_runs import create, resume
from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.generate import TextGenerator
from tinygrad_tf.models import GPT
from tinygrad_tf.tasks.language_model import LanguageModelTask
from tinygrad_tf.text import find_tokenizer
from tinygrad_tf.train.run import Run

SMALL: dict[str, Any] = {
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 8,
    "block_size": 16,
    "batch_size": 4,
    "steps": 3,
    "eval_every": 3,
    "checkpoint_every": 2,
    "threads": 1,
}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    stories = corpus.generate(chars=20_000, seed=5).stories
    path.write_text("\n".join(stories).replace("a kite", "a kité") + "\n", encoding="utf-8")
    return path


def trained(**options: Any) -> tuple[Run, dict[str, Any]]:
    experiment = create(dict(**{**SMALL, **options}))
    *_, done = experiment.run()
    return experiment, done.as_json()


@pytest.mark.parametrize("lines", [False, True])
def test_a_run_with_byte_pairs_counts_bytes_and_resumes(
    book: Path, tmp_path: Path, lines: bool
) -> None:
    out = tmp_path / "run"
    experiment, done = trained(texts=(book,), out=out, tokenizer="bpe", vocab_size=300, lines=lines)
    assert experiment.task.config.vocab_size == 300
    tokenizer = find_tokenizer(out)
    assert tokenizer.kind == "bpe" and tokenizer.sha256() == experiment.task.tokenizer.sha256()
    val = experiment.task.tokens.val
    text = tokenizer.decode(val.tokens[1:])
    bits = done["val_loss"] * val.targets / math.log(2)
    assert done["val_bits_per_byte"] == pytest.approx(bits / len(text.encode()))
    assert done["val_bits_per_char"] == pytest.approx(bits / len(text), rel=1e-6)
    whole = tokenizer.decode(
        np.concatenate([experiment.task.tokens.train.tokens[: -lines or None], val.tokens])
    )
    if not lines:
        assert whole == book.read_text(encoding="utf-8")
    *_, more = resume(out, steps=5).run()
    assert more.as_json()["steps"] == 5
    assert len(TextGenerator.load(out).write("Anna ", 5, seed=0)) > 0


def test_documents_of_byte_pairs_are_apart(book: Path, tmp_path: Path) -> None:
    experiment, _ = trained(
        texts=(book,), out=tmp_path / "run", tokenizer="bpe", vocab_size=400, lines=True
    )
    newline = experiment.task.tokenizer.encode("\n").tolist()
    assert len(newline) == 1
    documents = []
    for split in (experiment.task.tokens.train, experiment.task.tokens.val):
        assert split.starts is not None
        for start, end in zip(split.starts[:-1], split.starts[1:], strict=True):
            assert split.tokens[start] == split.tokens[end] == newline[0]
            documents.append(experiment.task.tokenizer.decode(split.tokens[start + 1 : end]))
    lines = [line for line in book.read_text(encoding="utf-8").split("\n") if line.strip()]
    assert sorted(documents) == sorted(lines)


def test_a_tokenizer_from_a_file_and_what_cannot_be_one(
    book: Path, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "tok.json"
    assert tt(["bpe-train", str(book), "--vocab-size", "320", "--out", str(path), "-q"]) == 0
    experiment, _ = trained(texts=(book,), out=tmp_path / "run", tokenizer=str(path))
    assert experiment.task.config.vocab_size == 320
    for options, said in (
        ({"tokenizer": str(tmp_path / "none.json")}, "choose char, byte, bpe"),
        ({"tokenizer": "bpe", "vocab_size": 200}, "give 256 or more"),
        ({"vocab_size": 300}, "it is for `tokenizer=bpe`"),
    ):
        with pytest.raises(InputError, match=said):
            trained(texts=(book,), out=tmp_path / "other", **options)
    words = tmp_path / "words.json"
    arguments = ["bpe-train", str(book), "--end-of-word", "attached", "--out", str(words), "-q"]
    assert tt(arguments) == 0
    with pytest.raises(InputError, match="does not keep the spaces"):
        trained(texts=(book,), out=tmp_path / "other", tokenizer=str(words))


def test_training_further_starts_from_the_weights_and_tokenizer_of_a_run(
    book: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    trained(texts=(book,), out=first, tokenizer="bpe", vocab_size=300)
    options = {k: v for k, v in SMALL.items() if not k.startswith(("n_", "block"))}
    second = tmp_path / "second"
    experiment = create(dict(texts=(book,), out=second, init_from=first, **options | {"steps": 1}))
    assert experiment.task.config == GPT.load(first).config
    events = [event.as_json() for event in experiment.run()]
    before = GPT.load(first, "last")
    val = experiment.task.tokens.val
    from tinygrad_tf.train.batches import evaluation_batches
    from tinygrad_tf.train.parallel import Compute

    expected = Compute().mean_loss(before, evaluation_batches(val, 16, 64))
    start = next(event for event in events if event["event"] == "eval")
    assert start["step"] == 0 and start["val_loss"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(InputError, match="`n_layer` cannot be chosen with `init_from`"):
        LanguageModelTask.create((book,), init_from=first, n_layer=3)


def huggingface_gpt2(directory: Path, book: Path, *, as_pair: bool, padded: int = 0) -> Any:
    """A small random GPT-2 with its tokenizer, written by their own libraries."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch = pytest.importorskip("torch")
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train([str(book)], vocab_size=350, special_tokens=["<|endoftext|>"])
    directory.mkdir()
    if as_pair:
        tokenizer.save_model(str(directory))
    else:
        tokenizer.save(str(directory / "tokenizer.json"))
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=350 + padded, n_positions=32, n_embd=16, n_layer=2, n_head=2,
            initializer_range=0.3,
        )
    )  # fmt: skip
    model.eval()
    model.save_pretrained(directory)
    return model, tokenizer


@pytest.mark.reference
@pytest.mark.parametrize("as_pair", [True, False])
def test_a_hugging_face_gpt2_is_a_run_like_any_other(
    book: Path, tmp_path: Path, as_pair: bool, capsys: Any
) -> None:
    directory = tmp_path / "hf"
    model, tokenizer = huggingface_gpt2(directory, book, as_pair=as_pair)
    torch = pytest.importorskip("torch")
    prompt = "Anna lost her kité"
    ids = tokenizer.encode(prompt).ids
    ours = TextGenerator.load(directory)
    assert ours.prompt_ids(prompt) == ids
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits.numpy()
        greedy = model.generate(
            torch.tensor([ids]), max_new_tokens=12, do_sample=False, pad_token_id=0
        )[0].tolist()
    np.testing.assert_allclose(ours.model(np.array([ids])).data, logits, atol=1e-4)
    text = tokenizer.decode(greedy, skip_special_tokens=False)
    assert prompt + ours.write(prompt, 12, temperature=0) == text
    assert tt(["generate", str(directory), "--prompt", prompt, "-n", "12", "-t", "0"]) == 0
    assert text.removeprefix(prompt) in capsys.readouterr().out
    assert tt(["inspect", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    out = tmp_path / "further"
    arguments = ["train-gpt", str(book), "--init-from", str(directory), "--out", str(out)]
    assert tt([*arguments, "--steps", "2", "--batch-size", "2", "--threads", "1", "-q"]) == 0
    assert GPT.load(out).config.n_embd == 16
    assert find_tokenizer(out).sha256() == find_tokenizer(directory).sha256()


@pytest.mark.reference
def test_ids_that_no_token_has_are_never_written(book: Path, tmp_path: Path) -> None:
    directory = tmp_path / "hf"
    huggingface_gpt2(directory, book, as_pair=False, padded=600)
    text = TextGenerator.load(directory).write("Anna", 60, temperature=2.0, seed=1)
    assert text
