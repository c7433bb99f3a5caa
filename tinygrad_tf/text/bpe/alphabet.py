"""GPT-2's alphabet: 256 printable characters, one for each byte, in which files write tokens.

A byte that Latin-1 prints stands for itself; the other 68, in ascending order, become U+0100,
U+0101 and so on, so that the space is Ġ and the newline Ċ (source: GPT-2's encoder).
"""

from tinygrad_tf.errors import InputError

_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_TO_CHAR: tuple[str, ...] = tuple(
    chr(byte if byte in _PRINTABLE else 0x100 + _OTHERS.index(byte)) for byte in range(256)
)
CHAR_TO_BYTE: dict[str, int] = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}

# Latin-1 turns bytes into characters of the same number, and back. Of the characters that it
# knows, those not in the alphabet are left out, which shows in the length.
_TO_CHARS = dict(enumerate(BYTE_TO_CHAR))
_TO_LATIN1 = {ord(char): byte for char, byte in CHAR_TO_BYTE.items()} | dict.fromkeys(_OTHERS)


def to_chars(data: bytes) -> str:
    """Return bytes written in the alphabet, one character a byte."""
    return data.decode("latin-1").translate(_TO_CHARS)


def to_bytes(text: str) -> bytes:
    """Return the bytes that a text in the alphabet stands for; InputError if it is not in it."""
    try:
        data = text.translate(_TO_LATIN1).encode("latin-1")
    except UnicodeEncodeError:
        data = b""
    if len(data) != len(text):
        char = next(char for char in text if char not in CHAR_TO_BYTE)
        raise InputError(
            f"{text!r} is not written in the byte alphabet: it has {char!r} (U+{ord(char):04X})",
            "give a byte-level table, in which a space is written Ġ",
        )
    return data
