"""Splits of a text in tokens: one part for training, one held out to compare models on."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from tinygrad_tf.corpus import generate
from tinygrad_tf.corpus.story_grammar import GRAMMAR, SLOTS
from tinygrad_tf.errors import InputError
from tinygrad_tf.text import CharTokenizer, Tokenizer
from tinygrad_tf.text.held_out import held_out_mask, train_size
from tinygrad_tf.text.word_tokenizer import WORD
from tinygrad_tf.types import Ids
from toymodels.onehot import Vocabulary
from toymodels.stories import far_places, far_words, story_language, story_words
from toymodels.text import Text

FAR = 5  # words: no n-gram of these comparisons sees further
CONTEXT = 256  # tokens before the held-out part that every model may look back to
UNKNOWN = "<unknown>"

_NO_SPACE_BEFORE = re.compile(r" (?=[.,;:!?)\]}])")


@dataclass(frozen=True)
class FarWords:
    """Far words of `held_out`: the tokens `start` to `stop` (exclusive) are one word that is
    certain, determined by one more than `beyond` words back."""

    start: Ids
    stop: Ids
    beyond: int
    chance: float  # of a right guess among the words that fit the place


@dataclass(frozen=True)
class Split:
    """A text of tokens named `unit`, split into a training part and one to be predicted.

    The first `first` of `held_out` are context only; the others are `chars` characters. `show`
    decodes tokens into text, `read` encodes a text; `floor_nats` is the entropy of the predicted
    part under the source of the text, where it is vocabulary.
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
    far: FarWords | None = None
    floor_nats: float | None = None

    def __post_init__(self) -> None:
        if len(self.held_out) <= self.first:
            raise InputError(
                f"the held-out part of {self.title} is empty ({len(self.train):,} {self.unit}s are "
                "there to learn from)",
                "use a larger `val_fraction`, or give a longer text",
            )

    @property
    def targets(self) -> int:
        """The number of predicted tokens."""
        return len(self.held_out) - self.first


def split_tokens(
    title: str,
    ids: Ids,
    tokenizer: Tokenizer,
    val_fraction: float,
    *,
    notes: Iterable[str] = (),
) -> Split:
    """Split a text of any tokenizer's ids; the last `val_fraction` of them are held out.

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
            "use a smaller `val_fraction`",
        )


def split_words(title: str, text: str, val_fraction: float) -> Split:
    """Split a text by words and punctuation marks; the last `val_fraction` of them are held out.

    The vocabulary is that of the part to learn from; other words of the held-out part are one
    unknown token. Raises InputError where either part is empty.
    """
    matches = list(WORD.finditer(text))
    cut = train_size(len(matches), val_fraction)
    _require_both(title, cut, len(matches), val_fraction)
    words = Vocabulary.of(match.group() for match in matches[:cut]).words
    vocabulary = Vocabulary((*words, UNKNOWN))
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    unknown = len(vocabulary) - 1

    ids = np.array([numbers.get(match.group(), unknown) for match in matches], np.int64)
    strange = int((ids[cut:] == unknown).sum())
    notes = (
        f"{strange:,} of the {len(ids) - cut:,} held-out words were never seen in training "
        f"({strange / max(1, len(ids) - cut):.1%}); they all count as one unknown token",
        "spaces and line ends are left out: bits per character do not compare with models that "
        "predict them, nor do those of unknown words, which could not be written back",
    )
    chars = len(text) - matches[cut].start() if cut < len(matches) else 0
    return _cut(
        title,
        "word",
        Text(ids[:cut], len(vocabulary)),
        ids[cut:],
        chars,
        lambda ids: _spaced(vocabulary.words[token] for token in ids),
        lambda prompt: vocabulary.ids(WORD.findall(prompt)),
        notes,
    )


def hold_out_stories(chars: int, val_fraction: float, seed: int) -> tuple[list[str], list[str]]:
    """Split the stories of the embedded corpus into those to train on and those held out.

    A GPT that is trained on the corpus with the same seed holds out the same ones.
    """
    stories = list(generate(chars).stories)
    if len(stories) < 4:
        raise InputError(f"{chars} characters are too few stories", "use `chars=9000`")
    held_out = held_out_mask(len(stories), val_fraction, seed)
    train = [story for story, held in zip(stories, held_out, strict=True) if not held]
    return train, list(compress(stories, held_out))


def split_stories(train: Sequence[str], held_out: Sequence[str], floor_nats: float) -> Split:
    """Split stories of the embedded corpus by words and punctuation marks, each on its own."""
    vocabulary = story_language([*train, *held_out]).vocabulary
    places = far_places(held_out, FAR)
    return Split(
        "the embedded corpus",
        "word",
        story_language(train, vocabulary).text,
        story_language(held_out, vocabulary).text.tokens,
        0,
        sum(len(story) + 1 for story in held_out),
        lambda ids: _spaced(vocabulary.words[token] for token in ids),
        lambda prompt: vocabulary.ids(story_words(prompt)),
        ("the spaces between words follow from the words, and cost nothing",),
        FarWords(places, places + 1, FAR, _chance(held_out)),
        floor_nats,
    )


def spell_stories(
    train: Sequence[str], held_out: Sequence[str], tokenizer: Tokenizer, floor_nats: float
) -> Split:
    """Split the same stories by characters (or another tokenizer's tokens); a newline ends each.

    A far word counts as right where each of its characters is the best guess. Raises InputError
    where the tokenizer has no token for the end of a line.
    """
    end = line_end(tokenizer)
    far = None
    if isinstance(tokenizer, CharTokenizer):
        starts, stops = np.array(list(_far_spans(held_out)), np.int64).reshape(-1, 2).T
        far = FarWords(starts, stops, FAR, _chance(held_out))
    tokens = (_lines(stories, tokenizer, end) for stories in (train, held_out))
    split = split_lines("the embedded corpus", tokenizer, *tokens)
    return replace(split, far=far, floor_nats=floor_nats)


def split_lines(
    title: str, tokenizer: Tokenizer, train: Ids, held_out: Ids, notes: Iterable[str] = ()
) -> Split:
    """Make a split of two texts of lines, each line a document that a newline closes."""
    return Split(
        title,
        "character" if tokenizer.kind == "char" else "token",
        Text(train, tokenizer.vocab_size, line_end(tokenizer)),
        held_out,
        0,
        tokenizer.count_chars(held_out),
        tokenizer.decode,
        lambda prompt: _encoded(tokenizer, prompt),
        tuple(notes),
    )


def line_end(tokenizer: Tokenizer) -> int:
    """Return the token of a newline. Raises InputError unless it is one token."""
    ids = tokenizer.encode("\n", unknown="skip").tolist()
    if len(ids) != 1:
        raise InputError(
            f"the end of a line is {len(ids)} tokens of this tokenizer, and has to be one",
            "use `tokenizer=char`",
        )
    return int(ids[0])


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
    """Make a split of one text: the end of the training part is context before the held-out one."""
    before = train.tokens[-CONTEXT:]
    ids = np.concatenate([before, held_out]) if len(held_out) else held_out
    return Split(
        title, unit, train, ids, len(before) if len(ids) else 0, chars, show, read, tuple(notes)
    )


def _lines(stories: Sequence[str], tokenizer: Tokenizer, end: int) -> Ids:
    return np.concatenate([part for s in stories for part in (tokenizer.encode(s), [end])])


def _far_spans(stories: Iterable[str]) -> Iterable[tuple[int, int]]:
    """Yield the first character of each far word, and the one after its last, over all stories."""
    start = 0
    for story in stories:
        words = [match.span() for match in WORD.finditer(story)]
        for far in far_words(story):
            if far.distance > FAR:
                begin, stop = words[far.place]
                yield start + begin, start + stop
        start += len(story) + 1


def _chance(stories: Iterable[str]) -> float:
    """Return the mean, over the far words, of 1 / the number of words that their slots can hold."""
    chances = []
    for story in stories:
        far = {word.place for word in far_words(story) if word.distance > FAR}
        for mention in GRAMMAR.parse(story)[0].mentions:
            if len(story_words(story[: mention.start])) in far:
                forms = {word.form(mention.form) for word in SLOTS[mention.slot].words}
                chances.append(1 / len(forms))
    return float(np.mean(chances)) if chances else 0.0


def _encoded(tokenizer: Tokenizer, prompt: str) -> Ids:
    try:
        return tokenizer.encode(prompt)
    except InputError as fault:
        raise InputError(f"the prompt: {fault.what}", "write it with what the text has") from None


def _spaced(words: Iterable[str]) -> str:
    """Join words with spaces, and none before a mark that closes."""
    return _NO_SPACE_BEFORE.sub("", " ".join(words))
