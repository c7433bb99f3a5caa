"""What models are compared on: a text in tokens, part of it to learn from and part held out."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tinygrad_tf.corpus.story_grammar import GRAMMAR, SLOTS
from tinygrad_tf.errors import InputError
from tinygrad_tf.text import CharTokenizer, Tokenizer
from tinygrad_tf.text.tokens import train_size
from tinygrad_tf.types import Ids
from toymodels.onehot import Vocabulary
from toymodels.stories import far_places, far_words, story_language, story_words
from toymodels.text import Text

FAR = 5  # words: no n-gram of these comparisons sees further
CONTEXT = 256  # tokens before the held-out part that every model may look back to
UNKNOWN = "<unknown>"

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_NO_SPACE_BEFORE = re.compile(r" (?=[.,;:!?)\]}])")


@dataclass(frozen=True)
class Far:
    """Places of `held_out` to ask for: the tokens `start` to `stop` (exclusive) are one word that
    stands for certain, told by one more than `beyond` words back."""

    start: Ids
    stop: Ids
    beyond: int
    chance: float  # of guessing right among the words that could stand there


@dataclass(frozen=True)
class Split:
    """A text of tokens named `unit`, cut into a part to learn from and one to be predicted.

    The first `first` of `held_out` are context only; the others stand for `chars` characters.
    `show` writes tokens as text, `read` makes tokens of a text; `floor_nats` is what the source of
    the text pays for the predicted part, where it is known.
    """

    title: str
    unit: str
    train: Text
    held_out: Ids
    first: int
    chars: int
    show: Callable[[Ids], str]
    read: Callable[[str], Ids]
    notes: tuple[str, ...] = ()
    far: Far | None = None
    floor_nats: float | None = None

    def __post_init__(self) -> None:
        if len(self.held_out) <= self.first:
            raise InputError(
                f"the held-out part of {self.title} is empty ({len(self.train):,} {self.unit}s are "
                "there to learn from)",
                "hold out more with --val-fraction, or give a longer text",
            )

    @property
    def targets(self) -> int:
        """How many tokens are predicted."""
        return len(self.held_out) - self.first


def split_tokens(
    title: str,
    ids: Ids,
    tokenizer: Tokenizer,
    val_fraction: float,
    *,
    notes: Iterable[str] = (),
) -> Split:
    """A text of any tokenizer's ids, the last `val_fraction` of them held out.

    Raises InputError where either part is empty.
    """
    cut = train_size(len(ids), val_fraction)
    _require_both(title, cut, len(ids), val_fraction)
    unit = {"char": "character", "byte": "byte"}.get(tokenizer.kind, "token")
    return _cut(
        title,
        unit,
        Text(ids[:cut], tokenizer.vocab_size),
        ids[cut:],
        tokenizer.count_chars(ids[cut:]),
        tokenizer.decode,
        lambda prompt: _encoded(tokenizer, prompt),
        notes,
    )


def _require_both(title: str, cut: int, total: int, val_fraction: float) -> None:
    """Raise InputError where there is nothing left to learn from."""
    if cut < 2 <= total:
        raise InputError(
            f"{title} leaves {cut} of its {total:,} tokens to learn from, with a fraction of "
            f"{val_fraction:g} held out",
            "use a smaller --val-fraction",
        )


def split_words(title: str, text: str, val_fraction: float) -> Split:
    """A text by words and punctuation marks, the last `val_fraction` of them held out.

    The vocabulary is that of the part to learn from; other words of the held-out part are one
    unknown token. Raises InputError where either part is empty.
    """
    found = list(_WORD.finditer(text))
    cut = train_size(len(found), val_fraction)
    _require_both(title, cut, len(found), val_fraction)
    known = Vocabulary((*Vocabulary.of(match.group() for match in found[:cut]).words, UNKNOWN))
    numbers = {word: number for number, word in enumerate(known.words)}
    unknown = len(known) - 1

    ids = np.array([numbers.get(match.group(), unknown) for match in found], np.int64)
    strange = int((ids[cut:] == unknown).sum())
    notes = (
        f"{strange:,} of the {len(ids) - cut:,} held-out words were never seen in training "
        f"({strange / max(1, len(ids) - cut):.1%}); they all count as one unknown token",
        "spaces and line ends are left out: bits per character do not compare with models that "
        "predict them, nor do those of unknown words, which could not be written back",
    )
    chars = len(text) - found[cut].start() if cut < len(found) else 0
    return _cut(
        title,
        "word",
        Text(ids[:cut], len(known)),
        ids[cut:],
        chars,
        lambda ids: _spaced(known.words[token] for token in ids),
        lambda prompt: known.ids(_WORD.findall(prompt)),
        notes,
    )


def split_stories(train: Sequence[str], held_out: Sequence[str], floor_nats: float) -> Split:
    """Stories of the embedded corpus by words and punctuation marks, each story on its own."""
    vocabulary = story_language([*train, *held_out]).vocabulary
    learned = story_language(train, vocabulary)
    asked = story_language(held_out, vocabulary)
    places = far_places(held_out, FAR)
    return Split(
        "the embedded corpus",
        "word",
        learned.text,
        asked.text.tokens,
        0,
        sum(len(story) + 1 for story in held_out),
        lambda ids: _spaced(vocabulary.words[token] for token in ids),
        lambda prompt: vocabulary.ids(story_words(prompt)),
        ("the spaces between words follow from the words, and cost nothing",),
        Far(places, places + 1, FAR, _chance(held_out)),
        floor_nats,
    )


def spell_stories(
    train: Sequence[str], held_out: Sequence[str], tokenizer: Tokenizer, floor_nats: float
) -> Split:
    """The same stories by characters (or another tokenizer's tokens); a newline ends each.

    A far word counts as found where each of its characters is the best guess. Raises InputError
    where the tokenizer has no token for the end of a line.
    """
    (end,) = line_end(tokenizer)
    texts = [_lines(stories, tokenizer, end) for stories in (train, held_out)]
    far = None
    if isinstance(tokenizer, CharTokenizer):
        starts, stops = np.array(list(_far_spans(held_out)), np.int64).reshape(-1, 2).T
        far = Far(starts, stops, FAR, _chance(held_out))
    return Split(
        "the embedded corpus",
        "character" if tokenizer.kind == "char" else "token",
        Text(texts[0], tokenizer.vocab_size, end),
        texts[1],
        0,
        sum(len(story) + 1 for story in held_out),
        tokenizer.decode,
        lambda prompt: _encoded(tokenizer, prompt),
        (),
        far,
        floor_nats,
    )


def split_lines(
    title: str, train: Ids, held_out: Ids, tokenizer: Tokenizer, notes: Iterable[str] = ()
) -> Split:
    """Two texts of lines, each line a document of its own that a newline closes."""
    (end,) = line_end(tokenizer)
    return Split(
        title,
        "character" if tokenizer.kind == "char" else "token",
        Text(train, tokenizer.vocab_size, end),
        held_out,
        0,
        tokenizer.count_chars(held_out),
        tokenizer.decode,
        lambda prompt: _encoded(tokenizer, prompt),
        tuple(notes),
    )


def line_end(tokenizer: Tokenizer) -> tuple[int]:
    """The token of a newline. Raises InputError where there is not one."""
    found = tokenizer.encode("\n", unknown="skip").tolist()
    if len(found) != 1:
        raise InputError(
            f"the end of a line is {len(found)} tokens of this tokenizer, and has to be one",
            "use --tokenizer char",
        )
    return (found[0],)


def _cut(
    title: str,
    unit: str,
    train: Text,
    held_out: Ids,
    chars: int,
    show: Callable[[Ids], str],
    read: Callable[[str], Ids],
    notes: Iterable[str],
) -> Split:
    """A split of one text that goes on: before the held-out part stands the end of the other."""
    before = train.tokens[-CONTEXT:]
    ids = np.concatenate([before, held_out]) if len(held_out) else held_out
    return Split(
        title, unit, train, ids, len(before) if len(ids) else 0, chars, show, read, tuple(notes)
    )


def _lines(stories: Sequence[str], tokenizer: Tokenizer, end: int) -> Ids:
    return np.concatenate([part for s in stories for part in (tokenizer.encode(s), [end])])


def _far_spans(stories: Iterable[str]) -> Iterable[tuple[int, int]]:
    """First character and the one after the last of each far word, counted over all stories."""
    start = 0
    for story in stories:
        words, at = [], 0
        for word in story_words(story):
            at = story.index(word, at)
            words.append((at, at + len(word)))
            at += len(word)
        for far in far_words(story):
            if far.distance > FAR:
                begin, stop = words[far.place]
                yield start + begin, start + stop
        start += len(story) + 1


def _chance(stories: Iterable[str]) -> float:
    """The mean, over the far words, of 1 / the number of words that their slots can hold."""
    found = []
    for story in stories:
        far = {word.place for word in far_words(story) if word.distance > FAR}
        for mention in GRAMMAR.parse(story)[0].mentions:
            if len(story_words(story[: mention.start])) in far:
                forms = {word.form(mention.form) for word in SLOTS[mention.slot].words}
                found.append(1 / len(forms))
    return float(np.mean(found)) if found else 0.0


def _encoded(tokenizer: Tokenizer, prompt: str) -> Ids:
    try:
        return tokenizer.encode(prompt)
    except InputError as fault:
        raise InputError(f"the prompt: {fault.what}", "write it with what the text has") from None


def _spaced(words: Iterable[str]) -> str:
    """Words with spaces between, and none before a mark that closes."""
    return _NO_SPACE_BEFORE.sub("", " ".join(words))
