"""Words and marks as tokens, with PAD, START, END and UNK before them."""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.tokenizers import SCHEMA_VERSION, Decoder, Ids, Unknown, _checked, _hash

WordUnknown = Unknown | Literal["unk"]

PAD, START, END, UNK = range(4)
SPECIALS = ("<pad>", "<start>", "<end>", "<unk>")

# The project's one definition of a word: a number, an English 's, a word with its inner hyphens
# and apostrophes, or a mark.
WORD = re.compile(r"\d+(?:[.,]\d+)+|['’]s\b|\w+(?:(?:-|['’](?!s\b))\w+)*|[^\w\s]")
_OPENING = frozenset("¿¡([{«“‘")
_CLOSING = frozenset("?!)]}»”’.,;:…")
_POSSESSIVE = ("'s", "’s")


class WordTokenizer:
    """One id a word or mark, from 4 on, in the order of `words`.

    Text is taken in Unicode's composed form (NFC). Decoding spaces words as is usual: one space
    between two tokens, but none behind an opening bracket, quote, ¿ or ¡, and none before a closing
    one, a stop or an 's; quotes that look alike on both sides stand apart. So what is spaced like
    that comes back as it was, and anything else with that spacing. PAD, START and END decode to
    nothing, and no text gives them. InputError when there are no words, or one stands there twice,
    is not one token, or is a lone surrogate.
    """

    kind = "word"

    def __init__(self, words: Sequence[str]) -> None:
        if not words:
            raise InputError("the vocabulary has no words", "give a text with words in it")
        self.words = tuple(words)
        self._ids = {word: index for index, word in enumerate(self.words, len(SPECIALS))}
        if len(self._ids) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise InputError(
                f"the vocabulary has {twice!r} twice", "build it with WordTokenizer.from_texts"
            )
        for word in self.words:
            if split_words(word) != [word] or unicodedata.category(word[0]) == "Cs":
                raise InputError(
                    f"{word!r} in the vocabulary is not one word",
                    "build it with WordTokenizer.from_texts",
                )

    @classmethod
    def from_texts(
        cls, texts: Iterable[str], *, min_count: int = 1, max_words: int | None = None
    ) -> "WordTokenizer":
        """Build the vocabulary of texts: the words found at least `min_count` times, the most
        frequent first and those as frequent by their code points, at most `max_words` of them."""
        if min_count < 1 or (max_words is not None and max_words < 1):
            raise InputError(
                f"min_count is {min_count} and max_words {max_words}", "give numbers from 1 up"
            )
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_words(text))
        known = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(known, key=lambda word: (-counts[word], word))[:max_words])

    def __repr__(self) -> str:
        return f"WordTokenizer(vocab_size={self.vocab_size})"

    @property
    def vocab_size(self) -> int:
        """The number of words in the vocabulary, with the four special tokens."""
        return len(SPECIALS) + len(self.words)

    def encode(self, text: str, *, unknown: WordUnknown = "error", start: int = 0) -> Ids:
        """Return the ids (N,) of the words and marks.

        A word outside the vocabulary is left out with `unknown="skip"` and becomes UNK with
        "unk"; otherwise an InputError names it, its position in the composed text and the nearest
        known words.
        """
        text = unicodedata.normalize("NFC", text)
        ids = [self._ids.get(word, UNK) for word in WORD.findall(text)]
        if unknown == "error" and UNK in ids:
            raise self._unknown(text, start)
        if unknown == "skip":
            ids = [index for index in ids if index != UNK]
        return np.array(ids, dtype=np.int64)

    def encode_chunks(self, chunks: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of a text that comes in chunks; memory holds a chunk and a word."""
        waiting, position = "", 0
        for chunk in chunks:
            waiting += chunk
            # The last word may go on in the next chunk; no token has whitespace in it.
            whole = len(waiting) - len(re.split(r"\s", waiting)[-1])
            if whole:
                yield self.encode(waiting[:whole], start=position)
                waiting, position = waiting[whole:], position + whole
        if waiting:
            yield self.encode(waiting, start=position)

    def decode(self, ids: ArrayLike) -> str:
        """Return the text of the ids (N,), spaced as is usual; UNK is `<unk>`."""
        decoder = self.decoder()
        return "".join(decoder.push(int(token)) for token in _checked(ids, self.vocab_size))

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return _WordDecoder(self)

    def known_ids(self) -> Ids:
        """Return the ids of the words, ascending: all but the special tokens."""
        return np.arange(len(SPECIALS), self.vocab_size)

    def count_chars(self, ids: ArrayLike) -> int:
        """Return the characters of all words; the spaces between, being a custom, do not count."""
        return sum(len(word) for word in self._texts(ids))

    def count_bytes(self, ids: ArrayLike) -> int:
        """Return the bytes of all words in UTF-8, without spaces."""
        return sum(len(word.encode("utf-8")) for word in self._texts(ids))

    def token_text(self, token: int) -> str:
        """Return the word, or the name of a special token such as `<pad>`."""
        index = int(_checked([token], self.vocab_size)[0])
        return SPECIALS[index] if index < len(SPECIALS) else self.words[index - len(SPECIALS)]

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the words."""
        return {"schema_version": SCHEMA_VERSION, "kind": self.kind, "words": list(self.words)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "WordTokenizer":
        """Build from what `to_json` gave."""
        words = fields.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InputError('"words" is not a list of strings')
        return cls(words)

    def sha256(self) -> str:
        """Return the hash of the words in their order."""
        return _hash(self.to_json())

    def nearest(self, word: str) -> list[str]:
        """Return up to three known words that may replace an unknown one: another case first,
        then the most alike."""
        other_case = [known for known in self.words if known.lower() == word.lower()]
        alike = difflib.get_close_matches(word, self.words, n=3)
        return list(dict.fromkeys([*other_case, *alike]))[:3]

    def _texts(self, ids: ArrayLike) -> Iterator[str]:
        for token in _checked(ids, self.vocab_size):
            if token >= len(SPECIALS):
                yield self.words[token - len(SPECIALS)]

    def _unknown(self, text: str, start: int) -> InputError:
        first: dict[str, int] = {}
        for match in WORD.finditer(text):
            if match[0] not in self._ids:
                first.setdefault(match[0], start + match.start())
        named = []
        for word, position in list(first.items())[:5]:
            near = " or ".join(map(repr, self.nearest(word)))
            known = f", nearest known {near}" if near else ""
            named.append(f"{word!r} (position {position}{known})")
        more = f" and {len(first) - 5} more" if len(first) > 5 else ""
        return InputError(
            f"the vocabulary of {len(self.words)} words lacks {', '.join(named)}{more}",
            'write it with known words, or use `unknown="skip"` to leave them out',
        )


class _WordDecoder:
    def __init__(self, tokenizer: WordTokenizer) -> None:
        self._tokenizer = tokenizer
        self._joins_next = True

    def push(self, token: int) -> str:
        word = self._tokenizer.token_text(token)
        if token in (PAD, START, END):
            return ""
        joins_last = word in _CLOSING or word in _POSSESSIVE
        space = "" if self._joins_next or joins_last else " "
        self._joins_next = word in _OPENING
        return space + word

    def flush(self) -> str:
        self._joins_next = True
        return ""


def split_words(text: str) -> list[str]:
    """The words and marks of a text in NFC: numbers such as 1,500.5, `it's` as `it` and `'s`,
    other words with their inner hyphens and apostrophes, and marks one by one."""
    return WORD.findall(unicodedata.normalize("NFC", text))
