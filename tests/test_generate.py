"""Writing text: greedy and drawn, stop strings, streaming, prompts of every length."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.errors import InputError
from tinygrad_tf.generate import StopStrings, TextGenerator
from tinygrad_tf.models import GPT, GPTConfig
from tinygrad_tf.models.generation import generate_tokens
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer

VOCAB = "\n abcdefgh"
BLOCK = 8


def generator(tokenizer=None, *, lines: bool = False, seed: int = 0) -> TextGenerator:
    """A model that never learned anything, with weights large enough to have preferences."""
    tokenizer = tokenizer or CharTokenizer(VOCAB)
    shape = {"block_size": BLOCK, "n_layer": 1, "n_head": 2, "n_embd": 16, "init_std": 0.5}
    model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, dropout=0.5, **shape), seed)
    return TextGenerator(model.eval(), tokenizer, lines=lines)


# --- choosing ---


def test_greedy_takes_the_likeliest_of_the_last_tokens():
    """By hand: the argmax of the logits after at most block_size tokens; prompts of any length."""
    it = generator()
    for prompt in ("a", "abcdefgh", "abcabcabcabcabc"):
        text = prompt
        for _ in range(2 * BLOCK):
            logits = it.model(it.tokenizer.encode(text)[None, -BLOCK:]).data[0, -1]
            text += it.tokenizer.decode([int(np.argmax(logits))])
        assert prompt + it.write(prompt, 2 * BLOCK, temperature=0.0) == text


def test_one_seed_one_text_and_samples_differ():
    it = generator()
    texts = [it.write("abc", 40, seed=seed) for seed in range(5)]
    assert texts == [it.write("abc", 40, seed=seed) for seed in range(5)]
    assert len(set(texts)) == 5
    assert it.write("abc", 40) != it.write("abc", 40), "without a seed each is new"


def test_draws_follow_the_model():
    it = generator()
    logits = it.model(it.tokenizer.encode("abc")[None]).data[0, -1].astype(np.float64)
    probs = np.exp(logits) / np.exp(logits).sum()
    drawn = [it.write("abc", 1, seed=seed) for seed in range(400)]
    shares = np.array([drawn.count(c) / len(drawn) for c in VOCAB])
    assert np.abs(shares - probs).max() < 4 * math.sqrt(0.25 / len(drawn))
    likeliest = {VOCAB[i] for i in np.argsort(-probs)[:2]}
    assert {it.write("abc", 1, seed=seed, top_k=2) for seed in range(60)} == likeliest


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"stop": [""]},
        {"max_new_tokens": -1},
    ],
)
def test_bad_options_are_refused_before_anything_is_written(bad):
    with pytest.raises(InputError):
        generator().stream("abc", **bad)  # not even asked for its first piece


def test_dropout_is_off_and_stays_as_it_was():
    it = generator()
    it.model.train()
    greedy = it.write("abc", 10, temperature=0.0)
    assert it.model.training
    it.model.eval()
    assert it.write("abc", 10, temperature=0.0) == greedy


# --- prompts ---


def test_unknown_characters_are_named_or_skipped():
    it = generator()
    with pytest.raises(InputError, match=r"'B' \(U\+0042, position 1, nearest known 'b'\)"):
        it.stream("aBc")
    skipped = it.write("aBc", 20, seed=1, unknown="skip")
    assert skipped == it.write("ac", 20, seed=1)


def test_an_empty_prompt_is_a_newline_where_there_is_one():
    it = generator()
    assert it.write("", 20, seed=1) == it.write("\n", 20, seed=1)
    assert it.write("?!", 20, seed=1, unknown="skip") == it.write("", 20, seed=1)
    without = generator(CharTokenizer("abc"))
    assert without.write("", 20, seed=1) == without.write("a", 20, seed=1)


def test_a_model_of_lines_begins_one():
    lines, text = generator(lines=True), generator()
    assert lines.prompt_ids("ab") == text.prompt_ids("\nab")
    assert lines.prompt_ids("") == text.prompt_ids("\n")
    first, whole = lines.write("ab", 20, seed=1), text.write("\nab", 20, seed=1)
    assert first.split("\n")[0] == whole.split("\n")[0]


def test_after_a_line_a_model_of_lines_begins_anew():
    """Each line is drawn as the first one was: from the start of a line, and nothing before it."""
    it = generator(lines=True)
    text = it.write("ab", 300, seed=2)
    first, *lines = text.split("\n")
    assert len(text) == 300 and len(lines) > 1
    rng = np.random.default_rng(2)

    def line(prompt: str, length: int) -> str:
        tokens = generate_tokens(it.model, it.tokenizer.encode(prompt)[None], length, rng=rng)
        return it.tokenizer.decode(np.concatenate(list(tokens)))

    assert line("\nab", len(first) + 1) == first + "\n"
    assert line("\n", len(lines[0]) + 1) == lines[0] + "\n"


def test_nothing_asked_nothing_written():
    assert list(generator().stream("abc", 0)) == []


def test_the_tokenizer_must_be_the_models():
    with pytest.raises(InputError, match="10 tokens, the tokenizer 256"):
        TextGenerator(generator().model, ByteTokenizer())


# --- streaming ---


def test_streaming_is_writing_in_pieces():
    it = generator()
    pieces = list(it.stream("abc", 50, seed=3))
    assert len(pieces) == 50 and "".join(pieces) == it.write("abc", 50, seed=3)


class Spoken(TextGenerator):
    """A generator whose model is replaced by tokens that are known."""

    def __init__(self, tokenizer, text: str) -> None:
        self.tokenizer = tokenizer
        self.ids = tokenizer.encode(text)

    def pieces(self, stop=()) -> list[str]:
        return list(self._stream((np.array([i]) for i in self.ids), StopStrings(stop)))


@given(st.text(max_size=20))
def test_no_piece_holds_half_a_character(text):
    pieces = Spoken(ByteTokenizer(), text).pieces()
    assert "".join(pieces) == text
    assert all(len(piece) == 1 for piece in pieces)


def test_bytes_that_are_no_text_show_as_such():
    it = Spoken(ByteTokenizer(), "é")
    it.ids = it.ids[:1]
    assert it.pieces() == ["\ufffd"]


def test_any_bytes_a_model_writes_are_a_text():
    text = generator(ByteTokenizer()).write("é", 60, seed=1)
    assert text.encode("utf-8").decode("utf-8") == text


# --- stop strings ---


def cut(text: str, strings: list[str]) -> str:
    """What comes before the first of the strings in a whole text."""
    return text[: min((p for p in map(text.find, strings) if p >= 0), default=len(text))]


ALPHABET = st.sampled_from("ab")
STRINGS = st.lists(st.text(ALPHABET, min_size=1, max_size=4), max_size=3)


@given(st.lists(st.text(ALPHABET, max_size=4), max_size=8), STRINGS)
def test_stop_strings_equal_cutting_the_whole_text(pieces, strings):
    stopper = StopStrings(strings)
    out = ""
    for piece in pieces:
        out += stopper.push(piece)
        assert cut("".join(pieces), strings).startswith(out)
        if stopper.found:
            break
    out += stopper.flush()
    assert out == cut("".join(pieces), strings)
    assert stopper.found == any(s in "".join(pieces) for s in strings)


def test_of_two_stop_strings_the_one_that_begins_first_counts():
    """Also where the other one is complete before it; where the pieces end plays no part."""
    for pieces in (["xabcde"], list("xabcde")):
        stopper = StopStrings(["bc", "abcd"])
        assert "".join(map(stopper.push, pieces)) + stopper.flush() == "x"
    stopper = StopStrings(["bc", "abcd"])
    assert "".join(map(stopper.push, "xabce")) + stopper.flush() == "xa"


def test_generation_ends_before_the_stop_string():
    it = generator()
    whole = it.write("abc", 60, seed=4)
    stop = whole[20:23]
    assert it.write("abc", 60, seed=4, stop=[stop]) == whole[: whole.index(stop)]
    assert it.write("abc", 60, seed=4, stop=["never said"]) == whole
