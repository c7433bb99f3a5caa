"""A probabilistic grammar with memory: what draws a story also says how probable it is.

A rule has weighted templates. In a template, `{name}` is either another rule, expanded in place, or
a slot. A slot is drawn from its words at its first mention and keeps that word to the end of the
story; `{name.form}` is another form of the same word, `{name.Form}` that form with a capital.
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tinygrad_tf.errors import InputError


@dataclass(frozen=True)
class Word:
    """A word with its whole-number weight and its other forms, as `{"she": "she"}` of Anna."""

    text: str
    weight: int = 1
    forms: Mapping[str, str] = field(default_factory=dict)

    def form(self, name: str) -> str:
        """The form of that name; the word itself for the empty name."""
        if not name:
            return self.text
        form = self.forms[name[0].lower() + name[1:]]
        return form[0].upper() + form[1:] if name[0].isupper() else form


@dataclass(frozen=True)
class Slot:
    """Words to draw from."""

    words: tuple[Word, ...]

    def is_named_by(self, form: str) -> bool:
        """Return True if the form shows the word of the slot: `kite` and `a kite` do, `it` not."""
        forms = [word.form(form) for word in self.words]
        return len(set(forms)) == len(forms)


@dataclass(frozen=True)
class Reference:
    """`{name}` or `{name.form}` in a template."""

    name: str
    form: str = ""


Piece = str | Reference


@dataclass(frozen=True)
class Expansion:
    """One weighted way to write a rule."""

    weight: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Mention:
    """The position of a slot in a story: characters `start` to `end`, exclusive."""

    slot: str
    form: str
    start: int
    end: int


@dataclass(frozen=True)
class Derivation:
    """A story on its way: the text so far, its -ln probability, and what is still to be written.

    `pending` is empty when the story is whole; else it begins with a choice.
    """

    text: str
    nats: float
    pending: tuple[Piece, ...]
    bound: Mapping[str, Word]
    mentions: tuple[Mention, ...]

    @property
    def choice(self) -> Reference:
        """The slot or rule to be chosen next. Raises ValueError where the story is whole."""
        if not self.pending or isinstance(self.pending[0], str):
            raise ValueError("this story has no choice left")
        return self.pending[0]


class Grammar:
    """Rules and slots. `start`, `options` and `take` are the one definition of what it can write.

    Drawing takes one option at each choice, scoring takes every option that agrees with the text.
    Raises ValueError where a template names what does not exist, or a form that a word lacks.
    """

    def __init__(
        self,
        rules: Mapping[str, Sequence[tuple[int, str]]],
        slots: Mapping[str, Slot],
        root: str = "story",
    ) -> None:
        self.rules = {
            name: tuple(Expansion(weight, _pieces(template)) for weight, template in ways)
            for name, ways in rules.items()
        }
        self.slots = dict(slots)
        self.root = root
        self._check()

    def start(self) -> Derivation:
        """The empty story."""
        return Derivation("", 0.0, (Reference(self.root),), {}, ())

    def options(self, derivation: Derivation) -> Sequence[Word | Expansion]:
        """Return the options of the next choice of an unfinished derivation."""
        name = derivation.choice.name
        return self.rules[name] if name in self.rules else self.slots[name].words

    def take(self, derivation: Derivation, option: Word | Expansion, total: int) -> Derivation:
        """The derivation after an option, whose probability is its weight over `total`, written
        out up to the next choice."""
        bound, pending = derivation.bound, derivation.pending
        if isinstance(option, Expansion):
            pending = option.pieces + pending[1:]
        else:
            bound = {**bound, derivation.choice.name: option}
        text, mentions = derivation.text, list(derivation.mentions)
        for done, piece in enumerate(pending):
            if isinstance(piece, str):
                text += piece
            elif piece.name in bound:
                form = bound[piece.name].form(piece.form)
                mentions.append(Mention(piece.name, piece.form, len(text), len(text) + len(form)))
                text += form
            else:
                pending = pending[done:]
                break
        else:
            pending = ()
        nats = derivation.nats + math.log(total / option.weight)
        return Derivation(text, nats, pending, bound, tuple(mentions))

    def draw(self, generator: random.Random) -> Derivation:
        """A random story; uses only `generator.random()`, so a seed means the same everywhere."""
        derivation = self.start()
        while derivation.pending:
            options = self.options(derivation)
            ends = list(accumulate(option.weight for option in options))
            ticket = int(generator.random() * ends[-1])
            chosen = next(i for i, end in enumerate(ends) if ticket < end)
            derivation = self.take(derivation, options[chosen], ends[-1])
        return derivation

    def successors(self, derivation: Derivation) -> Iterator[Derivation]:
        """Yield the derivations after the next choice; their probabilities sum to that before."""
        options = self.options(derivation)
        total = sum(option.weight for option in options)
        return (self.take(derivation, option, total) for option in options)

    def everything(self) -> Iterator[Derivation]:
        """All derivations of the grammar, one by one: for small grammars, and for proofs."""
        waiting = [self.start()]
        while waiting:
            for derivation in self.successors(waiting.pop()):
                if derivation.pending:
                    waiting.append(derivation)
                else:
                    yield derivation

    def parse(self, story: str) -> list[Derivation]:
        """Every derivation of a story: one, if the grammar is unambiguous.

        Raises InputError where the grammar cannot have produced the story.
        """
        whole: list[Derivation] = []
        open_ways, fits = [self.start()], 0
        while open_ways:
            for way in self.successors(open_ways.pop()):
                if not story.startswith(way.text):
                    fits = max(fits, _agreement(story, way.text))
                elif way.pending:
                    open_ways.append(way)
                elif way.text == story:
                    whole.append(way)
                else:
                    fits = max(fits, len(way.text))
        if not whole:
            raise InputError(
                f"the corpus grammar cannot have produced {_short(story)!r}: "
                f"it fits up to character {fits} of {len(story)}",
                "give whole stories of the embedded corpus, one at a time, without the newline",
            )
        return whole

    def _check(self) -> None:
        for expansion in (way for ways in self.rules.values() for way in ways):
            for piece in expansion.pieces:
                if isinstance(piece, str) or (piece.name in self.rules and not piece.form):
                    continue
                if piece.name not in self.slots:
                    raise ValueError(f"a template names {piece}, which is no rule and no slot")
                for word in self.slots[piece.name].words:
                    if piece.form and piece.form[0].lower() + piece.form[1:] not in word.forms:
                        raise ValueError(f"{word.text!r} has no form {piece.form!r}")


def _pieces(template: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for part in re.split(r"(\{[\w.]+\})", template):
        if part.startswith("{"):
            name, _, form = part[1:-1].partition(".")
            pieces.append(Reference(name, form))
        elif part:
            pieces.append(part)
    return tuple(pieces)


def _agreement(one: str, other: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _short(story: str, limit: int = 60) -> str:
    return story if len(story) <= limit else story[:limit] + "..."
