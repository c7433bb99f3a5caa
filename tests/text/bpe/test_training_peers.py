"""Training beside the trainers of others: the same merges, and the same ids where they have them.

Hugging Face's byte-level trainer, tiktoken's educational one and subword-nmt run themselves;
tests skip where they are not installed. Their rules by the book are in test_merging.
"""

import io
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.bpe import naive
from tests.text.bpe.naive import Counted
from tinygrad_tf.text.bpe.alphabet import to_chars
from tinygrad_tf.text.bpe.merging import learn_merges
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.training import train_bpe, train_classical

pytestmark = pytest.mark.reference

BOOKS = ["tinyshakespeare.txt", "sales_textbook.txt"]
words = st.lists(st.text("abc", max_size=14) | st.text(" étŤ😀\t", max_size=6), max_size=10)
sizes = st.integers(256, 290)


def hugging_face(words, vocab_size, min_frequency=0, specials=(), regex=False):
    """The vocabulary and merges of its byte-level trainer; a word a sequence, or by its regex."""
    hf = pytest.importorskip("tokenizers")
    level = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    tokenizer = hf.Tokenizer(hf.models.BPE())
    tokenizer.pre_tokenizer = level
    trainer = hf.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(specials),
        initial_alphabet=level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(words, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def tiktoken(text, pattern, vocab_size):
    """The tokens and their ranks of its educational trainer."""
    pytest.importorskip("regex")
    module = pytest.importorskip("tiktoken._educational")
    return module.bpe_train(text, vocab_size, pattern, visualise=None)


def subword_nmt(counts, merges, min_frequency):
    """The merges of its learner."""
    module = pytest.importorskip("subword_nmt.learn_bpe")
    given_, codes = io.StringIO("".join(f"{w} {n}\n" for w, n in counts.items())), io.StringIO()
    module.learn_bpe(given_, codes, merges, min_frequency=min_frequency, is_dict=True)
    return [tuple(line.split()) for line in codes.getvalue().splitlines()[1:]]


@settings(max_examples=300)
@given(words, sizes, st.integers(0, 3), st.lists(st.sampled_from(["<s>", "</s>"]), unique=True))
def test_the_tokens_and_ids_of_hugging_face(words, vocab_size, least, specials):
    vocab, merges = hugging_face(words, vocab_size + len(specials), least, specials)
    trained = train_bpe(
        Counted.of(*(word.encode() for word in words)),
        vocab_size=vocab_size + len(specials),
        min_frequency=max(least, 1),  # theirs of 0 also ends when no pair is left
        specials=specials,
        order="huggingface",
    ).table
    assert list(trained.merges) == merges
    assert {**trained.vocab, **trained.specials} == vocab


@pytest.mark.slow
@settings(max_examples=300)
@given(words, sizes)
def test_the_tokens_and_ids_of_tiktokens_trainer(words, vocab_size):
    trained = train_bpe(
        Counted.of(*(word.encode() for word in words)), vocab_size=vocab_size, ties="first-seen"
    ).table
    # Theirs fails when it runs out of pairs, so it is asked for no more than there are.
    ranks = tiktoken("\n".join(words), r"[^\n]+", trained.size)
    assert {to_chars(token): rank for token, rank in ranks.items()} == trained.vocab


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.dictionaries(st.text("abé", min_size=1, max_size=9), st.integers(1, 5), max_size=8),
    st.integers(0, 30),
    st.integers(1, 4),
)
def test_the_merges_of_subword_nmt(counts, merges, least):
    counts = {"ab": 1, **counts}  # theirs fails where no word has a pair
    found = train_classical(
        counts, merges=merges, min_frequency=least, end_of_word="attached", ties="largest"
    )
    assert list(found.table.merges) == subword_nmt(counts, merges, least)


@pytest.fixture(scope="module", params=BOOKS)
def book(request, shared_data):
    text = (shared_data / request.param).read_text(encoding="utf-8")
    return text, Counted.of(*(piece.encode() for piece in Splitter("gpt2").split(text)))


@pytest.mark.slow
def test_a_book_by_hugging_face(book):
    text, counted = book
    vocab, merges = hugging_face([text], 4096, specials=["<|endoftext|>"], regex=True)
    trained = train_bpe(
        counted, vocab_size=4096, specials=["<|endoftext|>"], order="huggingface"
    ).table
    assert list(trained.merges) == merges
    assert {**trained.vocab, **trained.specials} == vocab


@pytest.mark.slow
def test_a_book_by_subword_nmt(book):
    counts = Counter(book[0].split())
    found = train_classical(counts, merges=1000, end_of_word="attached", ties="largest")
    assert list(found.table.merges) == subword_nmt(counts, 1000, 1)


@pytest.mark.slow
def test_a_book_by_tiktokens_trainer(book):
    text, counted = book
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    ranks = tiktoken(text, pattern, 256 + 25)
    trained = train_bpe(counted, vocab_size=256 + 25, ties="first-seen").table
    assert {to_chars(token): rank for token, rank in ranks.items()} == trained.vocab


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["first-seen", "lowest-id", "largest"])
def test_a_book_by_the_book(book, rule):
    """Every distinct piece once: deep enough that ties are many and positions go stale."""
    pieces = book[1].pieces[:4000]
    choose = {"first-seen": naive.first_seen, "largest": naive.largest, "lowest-id": naive.lowest}
    split = [[piece[i : i + 1] for i in range(len(piece))] for piece in pieces]
    ids = rule == "lowest-id"
    join = naive.numbered(256) if ids else naive.joined
    expected = naive.learn(pieces if ids else split, 700, choose[rule], join)
    names = [bytes([byte]) for byte in range(256)]
    found = learn_merges(
        pieces, [1] * len(pieces), first_id=256, merges=700, ties=rule, names=names
    )
    tokens = list(range(256)) if ids else list(names)
    for merge in found:
        tokens.append(join(tokens[merge.left], tokens[merge.right], merge.new - 256))
    assert [(tokens[m.left], tokens[m.right], m.count) for m in found] == expected
