"""The sounds of the words in spoken commands: rows of phonemes, each made of segments.

Names of phonemes are those of ARPAbet; formants are a grown man's, near those that Peterson and
Barney measured in 1952. A segment is a target: what is heard moves from one to the next.
"""

from typing import NamedTuple

from tinygrad_tf.audio.formants import NASAL_POLE
from tinygrad_tf.errors import InputError


class Segment(NamedTuple):
    """A target of the mouth for `ms` milliseconds: sources from 0 to 1, frequencies in hertz.

    `voice` is the glottis, `breath` noise made there, `hiss` noise made in the mouth around
    `center`, `width` wide. `zero` is where the nose takes sound away.
    """

    ms: float
    voice: float
    breath: float
    hiss: float
    f1: float
    f2: float
    f3: float
    center: float = 3000.0
    width: float = 2000.0
    zero: float = NASAL_POLE


SILENCE = Segment(40, 0, 0, 0, 450, 1500, 2500)


def _vowel(ms: float, *targets: tuple[float, float, float], voice: float = 1.0) -> list[Segment]:
    """One target, or two for a diphthong that glides between them."""
    return [Segment(ms / len(targets), voice, 0, 0, *target) for target in targets]


def _nasal(f2: float, f3: float, zero: float) -> list[Segment]:
    return [Segment(65, 0.35, 0, 0, 480, f2, f3, zero=zero)]


def _fricative(
    ms: float, hiss: float, center: float, width: float, f2: float, f3: float, voice: float = 0
) -> list[Segment]:
    return [Segment(ms, voice, 0, hiss, 300, f2, f3, center, width)]


def _stop(
    hiss: float, center: float, width: float, f2: float, f3: float, voiced: bool = False
) -> list[Segment]:
    """The mouth shuts, bursts open and, where the stop is unvoiced, breathes out."""
    burst = Segment(10, 0.3 * voiced, 0, hiss, 300, f2, f3, center, width)
    if voiced:
        return [Segment(45, 0.2, 0, 0, 200, f2, f3, center, width), burst]
    shut = Segment(50, 0, 0, 0, 250, f2, f3, center, width)
    return [shut, burst, Segment(30, 0, 0.3, 0.1 * hiss, 400, f2, f3, center, width)]


def _affricate(voice: float) -> list[Segment]:
    shut = Segment(40, 0.6 * voice, 0, 0, 250, 1750, 2500, 3000, 1200)
    return [shut, *_fricative(70, 0.6, 3000, 1200, 1800, 2500, voice)]


PHONEMES: dict[str, list[Segment]] = {
    "IY": _vowel(110, (280, 2250, 2950)),
    "IH": _vowel(80, (400, 1950, 2550)),
    "EH": _vowel(100, (540, 1800, 2480)),
    "AE": _vowel(130, (670, 1700, 2420)),
    "AA": _vowel(130, (740, 1100, 2450)),
    "AO": _vowel(130, (580, 860, 2420)),
    "AX": _vowel(55, (500, 1350, 2450), voice=0.8),
    "ER": _vowel(100, (480, 1330, 1700)),
    "OW": _vowel(140, (520, 950, 2400), (360, 800, 2300)),
    "AY": _vowel(170, (730, 1200, 2500), (360, 2050, 2650)),
    "AW": _vowel(170, (730, 1300, 2450), (400, 870, 2300)),
    "W": _vowel(60, (300, 630, 2200), voice=0.7),
    "L": _vowel(65, (360, 1050, 2850), voice=0.7),
    "R": _vowel(65, (340, 1080, 1420), voice=0.7),
    "M": _nasal(1000, 2200, 450),
    "N": _nasal(1550, 2600, 550),
    "NG": _nasal(2100, 2700, 650),
    "F": _fricative(90, 0.35, 6500, 5000, 1000, 2300),
    "S": _fricative(95, 0.7, 5600, 1500, 1750, 2650),
    "SH": _fricative(95, 0.7, 3000, 1200, 1800, 2500),
    "DH": _fricative(50, 0.12, 6000, 4000, 1400, 2600, voice=0.5),
    "Z": _fricative(80, 0.4, 5600, 1500, 1750, 2650, voice=0.4),
    "P": _stop(0.4, 900, 1500, 900, 2200),
    "T": _stop(0.8, 4500, 2000, 1750, 2650),
    "K": _stop(0.7, 2000, 700, 2000, 2450),
    "B": _stop(0.3, 900, 1500, 900, 2200, voiced=True),
    "D": _stop(0.5, 4500, 2000, 1750, 2650, voiced=True),
    "G": _stop(0.5, 2000, 700, 2000, 2450, voiced=True),
    "CH": _affricate(0),
    "JH": _affricate(0.4),
}

WORDS: dict[str, tuple[str, ...]] = {
    word: tuple(sounds.split())
    for word, sounds in {
        "all": "AO L",
        "and": "AE N D",
        "battery": "B AE T ER IY",
        "check": "CH EH K",
        "close": "K L OW Z",
        "delete": "D IH L IY T",
        "directories": "D ER EH K T ER IY Z",
        "down": "D AW N",
        "engine": "EH N JH AX N",
        "files": "F AY L Z",
        "find": "F AY N D",
        "it": "IH T",
        "letters": "L EH T ER Z",
        "log": "L AO G",
        "me": "M IY",
        "my": "M AY",
        "now": "N AW",
        "open": "OW P AX N",
        "out": "AW T",
        "photos": "F OW T OW Z",
        "please": "P L IY Z",
        "printer": "P R IH N T ER",
        "program": "P R OW G R AE M",
        "ran": "R AE N",
        "show": "SH OW",
        "songs": "S AO NG Z",
        "start": "S T AA R T",
        "stop": "S T AA P",
        "the": "DH AX",
        "whether": "W EH DH ER",
    }.items()
}


def pronounce(word: str) -> tuple[str, ...]:
    """The phonemes of a word; InputError where its pronunciation is not known."""
    if word not in WORDS:
        raise InputError(f"the voice cannot say {word!r}", f"choose from: {' '.join(WORDS)}")
    return WORDS[word]
