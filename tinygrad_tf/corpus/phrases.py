"""English phrases and their one right translation into Spanish, to learn to translate from.

Spanish has the adjective behind the noun and lets determiner and adjective agree with it in gender
and number; it has two verbs for `to be`, leaves out I, you and we, and asks with the verb in front.
Sentences begin with a capital and have no full stop; noun phrases are in lower case.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinygrad_tf.corpus.spanish import (
    ADJECTIVES,
    DETERMINERS,
    ESTAR,
    IDIOMS,
    NAMES,
    NOUNS,
    OWNERS,
    PRONOUNS,
    SER,
    VERBS,
    Adjective,
    Determiner,
    Noun,
    Pronoun,
    Verb,
)
from tinygrad_tf.corpus.splits import Combination, choose, draw_split, hold_out_combinations, seeded

HELD_OUT_SHARE = 0.1
MOODS = ("statement", "denial", "question")


class Phrase(NamedTuple):
    """English `source`, Spanish `target`, how they are built and what is combined in them."""

    source: str
    target: str
    construction: str
    combinations: frozenset[Combination] = frozenset()

    @property
    def text(self) -> str:
        """Both sides, as one line of a file of pairs."""
        return f"{self.source}\t{self.target}"


@dataclass(frozen=True)
class NounPhrase:
    """Determiner, noun, and an adjective or none: `the blue balls`."""

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None

    @property
    def person(self) -> str:
        """The member of PERSONS that it is as a subject."""
        return "several" if self.plural else "one"

    @property
    def english(self) -> str:
        """The adjective before the noun."""
        words = [self.noun.in_english(self.plural)]
        if self.adjective:
            words.insert(0, self.adjective.english)
        before_vowel = self.determiner.english == "a" and words[0][0] in "aeiou"
        return " ".join(["an" if before_vowel else self.determiner.english, *words])

    @property
    def spanish(self) -> str:
        """The adjective behind the noun, and both words around it agreeing with it."""
        agreement = (self.noun.feminine, self.plural)
        words = [
            self.determiner.spanish.agreeing(*agreement),
            self.noun.in_spanish(self.plural, described=self.adjective is not None),
        ]
        if self.adjective:
            words.append(self.adjective.spanish.agreeing(*agreement))
        return " ".join(words)

    @property
    def combinations(self) -> frozenset[Combination]:
        """The word pairs of this phrase: determiner and noun, and noun and adjective if any."""
        found = {("before", self.determiner.english, self.noun.english)}
        if self.adjective:
            found.add(("is", self.noun.english, self.adjective.english))
        return frozenset(found)


Subject = NounPhrase | Pronoun


def _sentence(
    source: str, target: str, construction: str, mood: str, combinations: frozenset[Combination]
) -> Phrase:
    """Tidy the space of what was left out, and write a capital first."""
    source, target = (" ".join(side.split()) for side in (source, target))
    source, target = source[0].upper() + source[1:], target[0].upper() + target[1:]
    if mood == "question":
        target = "¿" + target
    return Phrase(source, target, f"{construction}, {mood}", combinations)


def _of(subject: Subject) -> frozenset[Combination]:
    return frozenset() if isinstance(subject, Pronoun) else subject.combinations


def _kind(subject: Subject) -> str:
    return "pronoun" if isinstance(subject, Pronoun) else "noun"


def bare(phrase: NounPhrase) -> Phrase:
    """the blue ball: la pelota azul."""
    construction = "described noun" if phrase.adjective else "noun"
    return Phrase(phrase.english, phrase.spanish, construction, phrase.combinations)


def owned(owner: NounPhrase, phrase: NounPhrase) -> Phrase:
    """the boy's blue ball: la pelota azul del niño. The owner is one, the thing has `the`."""
    source = f"{owner.english}'s {phrase.english.removeprefix('the ')}"
    target = f"{phrase.spanish} de {owner.spanish}".replace(" de el ", " del ")
    combinations = {("owns", owner.noun.english, phrase.noun.english)}
    # Nothing stands before the thing in English.
    thing = {one for one in phrase.combinations if one[0] == "is"}
    construction = "owned described noun" if phrase.adjective else "owned noun"
    return Phrase(source, target, construction, owner.combinations | thing | combinations)


def described(subject: Subject, adjective: Adjective, mood: str) -> Phrase:
    """Is the ball blue?: ¿Es azul la bola?"""
    feminine = subject.feminine if isinstance(subject, Pronoun) else subject.noun.feminine
    plural = subject.person == "several"
    be = (ESTAR if adjective.passing else SER)[plural]
    how = adjective.spanish.agreeing(feminine, plural)
    verb = "are" if plural else "is"
    if mood == "question":
        source = f"{verb} {subject.english} {adjective.english}?"
        target = f"{be} {how} {subject.spanish}?"
    else:
        denied = mood == "denial"
        source = f"{subject.english} {verb} {'not ' * denied}{adjective.english}"
        target = f"{subject.spanish} {'no ' * denied}{be} {how}"
    who = subject.english if isinstance(subject, Pronoun) else subject.noun.english
    combinations = _of(subject) | {("is", who, adjective.english)}
    return _sentence(source, target, f"{_kind(subject)} described", mood, combinations)


def acting(subject: Subject, verb: Verb, phrase: NounPhrase, mood: str) -> Phrase:
    """Does the girl have a ball?: ¿Tiene la niña una bola?"""
    person = subject.person
    does = "does" if person == "one" else "do"
    spanish = verb.in_spanish(person)
    if mood == "question":
        source = f"{does} {subject.english} {verb.english} {phrase.english}?"
        target = f"{spanish} {subject.spanish} {phrase.spanish}?"
    elif mood == "denial":
        source = f"{subject.english} {does} not {verb.english} {phrase.english}"
        target = f"{subject.spanish} no {spanish} {phrase.spanish}"
    else:
        source = f"{subject.english} {verb.in_english(person)} {phrase.english}"
        target = f"{subject.spanish} {spanish} {phrase.spanish}"
    combinations = _of(subject) | phrase.combinations
    combinations |= {("done to", verb.english, phrase.noun.english)}
    if not isinstance(subject, Pronoun):
        combinations |= {("does", subject.noun.english, verb.english)}
    object_kind = "described noun" if phrase.adjective else "noun"
    return _sentence(source, target, f"{_kind(subject)} and {object_kind}", mood, combinations)


def there(phrase: NounPhrase, mood: str) -> Phrase:
    """There are two red chairs: Hay dos sillas rojas; a statement or a question."""
    verb = "are" if phrase.plural else "is"
    if mood == "question":
        source, target = f"{verb} there {phrase.english}?", f"hay {phrase.spanish}?"
    else:
        source, target = f"there {verb} {phrase.english}", f"hay {phrase.spanish}"
    kind = "described noun" if phrase.adjective else "noun"
    return _sentence(source, target, f"there is a {kind}", mood, phrase.combinations)


def named(owner: str, name: str) -> Phrase:
    """My name is Ketan: Mi nombre es Ketan."""
    source, target = f"{owner} name is {name}", f"{OWNERS[owner]} nombre es {name}"
    return _sentence(source, target, "name", "statement", frozenset({("named", owner, name)}))


THINGS = tuple(noun for noun in NOUNS if not noun.alive)
LIVING = tuple(noun for noun in NOUNS if noun.alive)
_DEFINITE = tuple(one for one in DETERMINERS if one.definite)
_INDEFINITE = tuple(one for one in DETERMINERS if not one.definite)
_OWNING = tuple(one for one in _DEFINITE if one.singular and one.plural)
_THE = DETERMINERS[0]
_HE_AND_SHE = tuple(one for one in PRONOUNS if one.spanish)
_OF_THE_LIVING = tuple(one for one in ADJECTIVES if one.of_the_living)
_BALL = next(noun for noun in NOUNS if noun.english == "ball")
_BLUE = next(one for one in ADJECTIVES if one.english == "blue")

# Always trained on: fixed expressions, and what the source documents translate.
ALWAYS = (
    *(Phrase(source, target, "idiom") for source, target in IDIOMS),
    described(NounPhrase(_THE, _BALL), _BLUE, "statement"),
    bare(NounPhrase(_THE, _BALL, adjective=_BLUE)),
    named("my", "Ketan"),
)


def draw_phrases(
    n_train: int = 6000, n_held_out: int = 500, seed: int = 0
) -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
    """Draw different phrases to train on, and phrases to test with.

    A tenth of all combinations of two words that belong together, as noun and adjective, is never
    trained on; each phrase to test with has one of these. Its single words, in both languages, and
    its construction are among those to train on. The source documents' pairs always are.
    InputError where the counts cannot be had.
    """
    held = _held_out(seed)
    return draw_split(_draw, held, n_train, n_held_out, seed, ALWAYS)


def noun_phrases(
    nouns: Sequence[Noun] = NOUNS, determiners: Sequence[Determiner] = DETERMINERS
) -> Iterator[NounPhrase]:
    """All noun phrases of the language, each without an adjective and with each that fits."""
    for determiner in determiners:
        for plural in determiner.numbers():
            for noun in nouns:
                yield NounPhrase(determiner, noun, plural)
                for adjective in ADJECTIVES:
                    if adjective.fits(noun):
                        yield NounPhrase(determiner, noun, plural, adjective)


def combinations() -> frozenset[Combination]:
    """All combinations of two words that belong together."""
    found = {one for phrase in noun_phrases() for one in phrase.combinations}
    found |= {("is", who.english, how.english) for who in _HE_AND_SHE for how in _OF_THE_LIVING}
    found |= {("does", noun.english, verb.english) for noun in LIVING for verb in VERBS}
    found |= {("done to", verb.english, noun.english) for noun in THINGS for verb in VERBS}
    found |= {("owns", owner.english, noun.english) for owner in LIVING for noun in THINGS}
    found |= {("named", owner, name) for owner in OWNERS for name in NAMES}
    return frozenset(found)


def _held_out(seed: int) -> frozenset[Combination]:
    """A tenth of each kind of combination."""
    generator = seeded(seed, "combinations")
    keep = frozenset[Combination]().union(*(phrase.combinations for phrase in ALWAYS))
    every = combinations()
    held: set[Combination] = set()
    for relation in sorted({one[0] for one in every}):
        alike = [one for one in every if one[0] == relation]
        held |= hold_out_combinations(alike, HELD_OUT_SHARE, generator, keep)
    return frozenset(held)


def _draw(generator: random.Random) -> Phrase:
    ticket = generator.random()
    mood = choose(MOODS, generator)
    if ticket < 0.2:
        return bare(_noun_phrase(generator, NOUNS, DETERMINERS))
    if ticket < 0.35:
        owner = NounPhrase(choose(_OWNING, generator), choose(LIVING, generator))
        return owned(owner, _noun_phrase(generator, THINGS, (_THE,)))
    if ticket < 0.55:
        subject = _noun_phrase(generator, NOUNS, _DEFINITE, with_adjective=0.0)
        return described(subject, _fitting(generator, subject.noun), mood)
    if ticket < 0.6:
        how = choose(_OF_THE_LIVING, generator)
        return described(choose(_HE_AND_SHE, generator), how, mood)
    if ticket < 0.87:
        who: Subject = choose(PRONOUNS, generator)
        if generator.random() < 0.6:
            who = _noun_phrase(generator, LIVING, _DEFINITE, with_adjective=0.0)
        phrase = _noun_phrase(generator, THINGS, DETERMINERS)
        return acting(who, choose(VERBS, generator), phrase, mood)
    if ticket < 0.98:
        mood = choose(("statement", "question"), generator)
        return there(_noun_phrase(generator, NOUNS, _INDEFINITE), mood)
    return named(choose(tuple(OWNERS), generator), choose(NAMES, generator))


def _noun_phrase(
    generator: random.Random,
    nouns: Sequence[Noun],
    determiners: Sequence[Determiner],
    with_adjective: float = 0.6,
) -> NounPhrase:
    noun, determiner = choose(nouns, generator), choose(determiners, generator)
    plural = choose(determiner.numbers(), generator)
    has_adjective = generator.random() < with_adjective
    adjective = _fitting(generator, noun) if has_adjective else None
    return NounPhrase(determiner, noun, plural, adjective)


def _fitting(generator: random.Random, noun: Noun) -> Adjective:
    return choose([one for one in ADJECTIVES if one.fits(noun)], generator)
