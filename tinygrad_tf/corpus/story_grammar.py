"""The small world of the embedded corpus: its people, its things, and what happens to them.

What decides a word often stands far before it, further than an n-gram sees: who lost what, which
animal somebody has, whether a log is a battery's. Tables are small, so that a model learns them
from a few thousand stories; choices are many, so that hardly two stories are equal.
"""

from tinygrad_tf.corpus.grammar import Grammar, Slot, Word


def _words(words: str) -> tuple[Word, ...]:
    """Words as likely as each other; `_` stands for a space within one."""
    return tuple(Word(word.replace("_", " ")) for word in words.split())


def _people(women: str, men: str) -> tuple[Word, ...]:
    she, he = {"she": "she", "her": "her"}, {"she": "he", "her": "his"}
    return (
        *(Word(name, forms=she) for name in women.split()),
        *(Word(name, forms=he) for name in men.split()),
    )


def _things(single: str, several: str) -> tuple[Word, ...]:
    one = {"some": "a", "they": "it", "them": "it", "was": "was", "belong": "belongs"}
    many = {"some": "some", "they": "they", "them": "them", "was": "were", "belong": "belong"}
    return (
        *(Word(noun, forms=one | {"one": _a(noun)}) for noun in single.split()),
        *(Word(noun, forms=many | {"one": f"some {noun}"}) for noun in several.split()),
    )


def _places(places: str) -> tuple[Word, ...]:
    """Places of action; the form `the` is the goal of a way."""
    return tuple(
        Word(place, forms={"the": place[place.index("the ") :]}) for place in places.split(", ")
    )


def _animals(**voices: str) -> tuple[Word, ...]:
    return tuple(
        Word(animal, forms={"one": _a(animal), "spoke": v}) for animal, v in voices.items()
    )


def _fruits(fruits: str) -> tuple[Word, ...]:
    """As in `plum pie`, made of `plums`."""
    return tuple(Word(fruit, forms={"many": f"{fruit}s"}) for fruit in fruits.split())


def _trades(**goods: str) -> tuple[Word, ...]:
    return tuple(Word(trade, forms={"one": _a(trade), "goods": g}) for trade, g in goods.items())


def _machine(name: str, weight: int, manner: str = "") -> Word:
    """The way it runs: a battery runs down, a program just runs."""
    forms = {"please": f"{manner} please", "ran": f"ran {manner}", "run": f"run {manner}"}
    return Word(name, weight, {form: text.strip() for form, text in forms.items()})


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


_PLACES = _places(
    "near the river, in the garden, under the bridge, behind the school, at the mill, on the hill"
)
_COLORS = _words("red black white brown")

SLOTS = {
    "hero": Slot(_people("Anna Mia Ida", "Tom Hugo Sam")),
    "friend": Slot(_people("Fay Wilma Nora", "Max Otto Ben")),
    "third": Slot(_people("Hana Tess", "Adam Simon")),
    "thing": Slot(_things("kite drum umbrella lamp", "boots skates")),
    "thing2": Slot(_things("puppet ring oboe violin", "tools nails")),
    "color": Slot(_COLORS),
    "color2": Slot(_COLORS),
    "place": Slot(_PLACES),
    "place2": Slot(_places("by the well, past the church, at the shop, in the barn")),
    "day": Slot(_words("Monday Tuesday Friday Sunday")),
    "weather": Slot(_words("warm cold windy rainy")),
    "animal": Slot(_animals(dog="barked", cat="mewed", owl="hooted", hen="clucked")),
    "coat": Slot(_words("black white brown small")),
    "feed": Slot(_words("corn bread milk some_oats")),
    "fruit": Slot(_fruits("apple plum onion carrot")),
    "dish": Slot(_words("pie cake soup")),
    "ride": Slot(_words("bus train ferry")),
    "trade": Slot(_trades(baker="a loaf", tailor="a coat", smith="a hook", artist="a portrait")),
    "machine": Slot(
        (
            _machine("battery", 3, "down"),
            _machine("program", 3),
            _machine("engine", 1, "hot"),
            _machine("printer", 1, "dry"),
        )
    ),
    "glad": Slot(_words("glad happy")),
    "had": Slot(_words("had ate")),
    "learned": Slot(_words("learned saw")),
    "lost": Slot(_words("lost dropped")),
    "made": Slot(_words("made bought")),
    "made2": Slot(_words("made bought")),
    "met": Slot(_words("met saw")),
    "sad": Slot(_words("sad upset")),
    "seen": Slot(_words("seen met")),
    "took": Slot(_words("took carried")),
    "went": Slot(_words("went walked")),
}

RULES: dict[str, list[tuple[int, str]]] = {
    "story": [
        (4, "{one_day}{hero} {lost} {hero.her} {color} {thing} {place}. {search} "
            "{at_last} {hero} found {hero.her} {thing} and was {glad}."),
        (3, "{one_day}{hero} found {thing.some} {color} {thing} {place}. {thing.They} "
            "{thing.belong} to {friend}. So {hero} {took} the {thing} to {friend}."),
        (2, "{one_day}{hero} had {thing.some} {color} {thing} and {friend} had {thing2.some} "
            "{color2} {thing2}. They met {place} to swap, and {hero} took the {thing2} home."),
        (2, "On {day} {hero} {made} {thing.some} {color} {thing} for {friend}. {friend.She} was so "
            "{glad} that {friend.she} {made2} {thing2.one} for {hero}."),
        (2, "{one_day}{hero} lent {hero.her} {color} {thing} to {friend}. {friend.She} {took} "
            "{thing.them} to {place.the}, and on {day} {friend.she} gave the {thing} back to "
            "{hero}."),
        (3, "{one_day}{hero} {met} a {coat} {animal} {place} and gave it {feed}. On {day} the "
            "{animal} came back, and {hero} was {glad}."),
        (4, "On {day} {hero} wrote to {friend}: {check} {answer}"),
        (2, "{one_day}{hero} raced {friend} to {place.the}. {race}"),
        (3, "{hero} has {animal.one}. When {friend} and {third} came on {day}, it {animal.spoke} "
            "all night, and {hero} was {sad}."),
        (2, "{one_day}{hero} had no {fruit.many}. {friend} had some, so they sat {place} and "
            "{had} {fruit} {dish} with {third}."),
        (2, "{hero} is {trade.one}. On {day} {friend} and {third} {went} to {place.the} and asked "
            "{hero} for {trade.goods}."),
        (2, "On {day} {hero} was late for the {ride}, but {hero.she} has {seen} {third} {place} "
            "and is {glad}."),
        (2, "On {day} {hero} and {friend} were late for the {ride}, but they have {seen} {third} "
            "{place} and are {glad}."),
    ],
    "one_day": [(1, ""), (1, "One {weather} day ")],
    "at_last": [(1, "At last"), (1, "On {day}")],
    "search": [
        (1, "{hero.She} looked {place2}, but {thing.they} {thing.was} not there."),
        (1, "{hero.She} asked {friend} to look for {thing.them}."),
    ],
    "check": [
        (2, "check the {machine} log and find out whether it ran {machine.please}."),
        (1, "check whether the {machine} {place} ran {machine.please}."),
    ],
    "answer": [
        (1, "{friend} {learned} that it {machine.ran}."),
        (1, "{friend} {learned} that it did not {machine.run}."),
    ],
    "race": [
        (1, "{hero} fell, but {hero.she} won {thing.some} {color} {thing}."),
        (1, "{friend} fell, but {friend.she} won {thing.some} {color} {thing}."),
    ],
}  # fmt: skip

GRAMMAR = Grammar(RULES, SLOTS)
