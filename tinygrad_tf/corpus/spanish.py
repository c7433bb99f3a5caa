"""The words of the phrase corpus: English, and Spanish with its genders, numbers and persons.

Each English word has one translation, chosen by what stands around it where there are two. A ball
is `bola`, but with an adjective before it `pelota`: the ball is blue, la bola es azul; the blue
ball, la pelota azul. Who or what is so for long takes `ser`, what may change tomorrow `estar`.
"""

from dataclasses import dataclass
from typing import NamedTuple

# Whose verb it is; `one` is he, she and any one thing.
PERSONS = ("I", "you", "one", "we", "several")


class Forms(NamedTuple):
    """A word by gender and number."""

    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str

    def agreeing(self, feminine: bool, plural: bool) -> str:
        """The form for a noun of that gender and number."""
        return self[2 * plural + feminine]


@dataclass(frozen=True)
class Noun:
    """A noun. `alive` ones may do something; `described` is its (singular, plural) with an
    adjective, where that is another word of the same gender."""

    english: str
    english_plural: str
    spanish: str
    spanish_plural: str
    feminine: bool
    alive: bool
    described: tuple[str, str] | None = None

    def in_english(self, plural: bool) -> str:
        """The English word."""
        return self.english_plural if plural else self.english

    def in_spanish(self, plural: bool, described: bool = False) -> str:
        """The Spanish word, with an adjective or without."""
        forms = (self.spanish, self.spanish_plural)
        if described and self.described:
            forms = self.described
        return forms[plural]


@dataclass(frozen=True)
class Adjective:
    """An adjective. `passing` ones take estar; `of_the_living` describe no things."""

    english: str
    spanish: Forms
    passing: bool = False
    of_the_living: bool = False

    def fits(self, noun: Noun) -> bool:
        """Return True if the adjective can describe the noun."""
        return noun.alive or not self.of_the_living


@dataclass(frozen=True)
class Determiner:
    """The first word of a noun phrase, and if it can come before one thing or several.

    `definite` ones make a subject; the others can follow `there is`.
    """

    english: str
    spanish: Forms
    singular: bool = True
    plural: bool = True
    definite: bool = True

    def numbers(self) -> tuple[bool, ...]:
        """False where it may stand before one, True where before several."""
        return (False,) * self.singular + (True,) * self.plural


class Verb(NamedTuple):
    """English: I see, she sees. Spanish: a form for each of PERSONS."""

    english: str
    english_third: str
    spanish: tuple[str, ...]

    def in_english(self, person: str) -> str:
        """The English form."""
        return self.english_third if person == "one" else self.english

    def in_spanish(self, person: str) -> str:
        """The Spanish form."""
        return self.spanish[PERSONS.index(person)]


class Pronoun(NamedTuple):
    """A subject without a noun; Spanish leaves out (`""`) what the verb's ending says."""

    english: str
    spanish: str
    person: str
    feminine: bool = False


def _nouns(table: str, alive: bool) -> tuple[Noun, ...]:
    nouns = []
    for line in table.split("; "):
        english, english_plural, spanish, spanish_plural, gender, *described = line.split()
        nouns.append(
            Noun(
                english,
                english_plural,
                spanish,
                spanish_plural,
                gender == "f",
                alive,
                (described[0], described[1]) if described else None,
            )
        )
    return tuple(nouns)


def _forms(word: str) -> Forms:
    """Adjectives in -o have four forms; others two, in -s after a vowel, in -es after a
    consonant."""
    if word.endswith("o"):
        return Forms(word, word[:-1] + "a", word + "s", word[:-1] + "as")
    if word.endswith("z"):
        plural = word[:-1] + "ces"
    else:
        plural = word + ("s" if word.endswith("e") else "es")
    return Forms(word, word, plural, plural)


def _adjectives(
    table: str, passing: bool = False, of_the_living: bool = False
) -> tuple[Adjective, ...]:
    words = (entry.split() for entry in table.split(", "))
    return tuple(
        Adjective(english, _forms(spanish), passing, of_the_living) for english, spanish in words
    )


NOUNS = (
    *_nouns(
        "boy boys niño niños m; girl girls niña niñas f; man men hombre hombres m; "
        "woman women mujer mujeres f; dog dogs perro perros m; cat cats gato gatos m; "
        "cow cows vaca vacas f; horse horses caballo caballos m; bird birds pájaro pájaros m; "
        "hen hens gallina gallinas f",
        alive=True,
    ),
    *_nouns(
        "ball balls bola bolas f pelota pelotas; book books libro libros m; "
        "house houses casa casas f; table tables mesa mesas f; chair chairs silla sillas f; "
        "hat hats sombrero sombreros m; car cars coche coches m; train trains tren trenes m; "
        "shirt shirts camisa camisas f; flower flowers flor flores f; "
        "apple apples manzana manzanas f; door doors puerta puertas f; key keys llave llaves f; "
        "lamp lamps lámpara lámparas f; map maps mapa mapas m; photo photos foto fotos f; "
        "pencil pencils lápiz lápices m; bed beds cama camas f; boat boats barco barcos m; "
        "box boxes caja cajas f",
        alive=False,
    ),
)

ADJECTIVES = (
    *_adjectives(
        "red rojo, white blanco, black negro, yellow amarillo, small pequeño, old viejo, "
        "new nuevo, blue azul, green verde, gray gris, big grande"
    ),
    *_adjectives("dirty sucio, clean limpio, wet mojado", passing=True),
    *_adjectives("tall alto, kind amable, strong fuerte", of_the_living=True),
    *_adjectives("tired cansado, sick enfermo, happy feliz", passing=True, of_the_living=True),
)

DETERMINERS = (
    Determiner("the", Forms("el", "la", "los", "las")),
    Determiner("my", Forms("mi", "mi", "mis", "mis")),
    Determiner("your", Forms("tu", "tu", "tus", "tus")),
    Determiner("this", Forms("este", "esta", "", ""), plural=False),
    Determiner("these", Forms("", "", "estos", "estas"), singular=False),
    Determiner("a", Forms("un", "una", "", ""), plural=False, definite=False),
    Determiner("two", Forms("", "", "dos", "dos"), singular=False, definite=False),
    Determiner("three", Forms("", "", "tres", "tres"), singular=False, definite=False),
    Determiner("many", Forms("", "", "muchos", "muchas"), singular=False, definite=False),
)

VERBS = (
    Verb("have", "has", ("tengo", "tienes", "tiene", "tenemos", "tienen")),
    Verb("see", "sees", ("veo", "ves", "ve", "vemos", "ven")),
    Verb("want", "wants", ("quiero", "quieres", "quiere", "queremos", "quieren")),
    Verb("buy", "buys", ("compro", "compras", "compra", "compramos", "compran")),
    Verb("sell", "sells", ("vendo", "vendes", "vende", "vendemos", "venden")),
)
SER, ESTAR = ("es", "son"), ("está", "están")

PRONOUNS = (
    Pronoun("I", "", "I"),
    Pronoun("you", "", "you"),
    Pronoun("we", "", "we"),
    Pronoun("he", "él", "one"),
    Pronoun("she", "ella", "one", feminine=True),
)

# Whose name it is, and who: `his` and `her` are the same word in Spanish.
OWNERS = {"my": "mi", "your": "tu", "his": "su", "her": "su"}
NAMES = ("Ketan", "Ana", "Tom", "Lucía", "Omar", "Mei")

IDIOMS = (
    ("You are welcome", "De nada"),
    ("Thank you", "Gracias"),
    ("Good morning", "Buenos días"),
    ("Good night", "Buenas noches"),
    ("See you tomorrow", "Hasta mañana"),
)
