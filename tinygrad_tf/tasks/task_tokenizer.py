"""What stands between text and the ids of a model: a tokenizer, and the ids that mean PAD etc."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.counting import count_pieces
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer
from tinygrad_tf.text.bpe.training import train_bpe
from tinygrad_tf.text.tokenizer_files import KINDS
from tinygrad_tf.text.tokenizers import Tokenizer, Unknown
from tinygrad_tf.text.word_tokenizer import WordTokenizer
from tinygrad_tf.types import Ids

TOKENIZERS = ("word", "bpe")
VOCAB_SIZE = 512
PAD = 0


@dataclass(frozen=True)
class TaskTokenizer:
    """A tokenizer whose tokens come after `specials`, which no text contains.

    The first of these is PAD. The tokenizer's own special tokens, if any, are left out. `name` is
    what the text is called in a fault.
    """

    tokenizer: Tokenizer
    specials: tuple[str, ...]
    name: str = "text"

    @cached_property
    def shift(self) -> int:
        """What is added to an id of the tokenizer."""
        return len(self.specials) - int(self.tokenizer.known_ids()[0])

    @property
    def vocab_size(self) -> int:
        """How many tokens the model knows."""
        return self.tokenizer.vocab_size + self.shift

    def encode(self, text: str, limit: int | None = None, unknown: Unknown = "error") -> Ids:
        """The ids (N,) of a text.

        InputError where it is empty, has unknown words that are not to be skipped, or is longer
        than `limit`.
        """
        ids = self.ids(text.strip(), unknown)
        if not len(ids):
            raise InputError(f"the {self.name} is empty", "give at least one known word")
        if limit is not None and len(ids) > limit:
            raise InputError(
                f"the {self.name} {shown(text)} has {len(ids)} tokens, and the most is {limit}",
                "shorten it, or train with a larger --max-length",
            )
        return ids

    def ids(self, text: str, unknown: Unknown = "error") -> Ids:
        """The ids (N,) of a text as it is, maybe none; InputError for unknown words."""
        found: Ids = self.tokenizer.encode(text, unknown=unknown) + self.shift
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ones are left out."""
        return self.tokenizer.decode([i - self.shift for i in ids if not self.is_special(i)])

    def is_special(self, token: int) -> bool:
        """Whether it is none of the tokenizer's."""
        return token < len(self.specials)

    def token_text(self, token: int) -> str:
        """One token as people may see it."""
        if self.is_special(token):
            return self.specials[token]
        return self.tokenizer.token_text(token - self.shift)

    def file(self) -> bytes:
        """The tokenizer's own file."""
        return (json.dumps(self.tokenizer.to_json(), ensure_ascii=False, indent=1) + "\n").encode()


def read_tokenizer(content: bytes) -> Tokenizer:
    """The tokenizer of a file that `TaskTokenizer.file` made."""
    fields: dict[str, Any] = json.loads(content)
    if "model" in fields:
        return BPETokenizer.from_json(fields)
    if fields["kind"] == WordTokenizer.kind:
        return WordTokenizer.from_json(fields)
    return KINDS[fields["kind"]](fields)


def learn_tokenizer(kind: str, texts: Sequence[str], vocab_size: int | None = None) -> Tokenizer:
    """A tokenizer of whole words, or of `vocab_size` byte pairs, by default 512.

    Raises InputError for another kind, and for a vocab_size of words: they are all taken.
    """
    if kind not in TOKENIZERS:
        raise InputError(f"tokenizer {kind!r} is not known", f"choose {' or '.join(TOKENIZERS)}")
    if kind == "word":
        if vocab_size is not None:
            raise InputError(
                f"--vocab-size {vocab_size} has no meaning with the tokenizer word",
                "it is for --tokenizer bpe",
            )
        return WordTokenizer.from_texts(texts)
    counted = count_pieces((text + "\n" for text in texts), Splitter())
    trained = train_bpe(counted, vocab_size=vocab_size or VOCAB_SIZE)
    return BPETokenizer(trained.table, "text")


def shown(text: str, most: int = 40) -> str:
    """A text in quotes, shortened where it is long."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")
