"""The tokenizer of a task: text to the ids of a model, with special ones such as PAD; and how
tokenizers are learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.counting import count_pieces
from tinygrad_tf.text.bpe.formats import load_bpe
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer
from tinygrad_tf.text.bpe.training import train_bpe
from tinygrad_tf.text.reading import TextSource
from tinygrad_tf.text.tokenizer_files import load_tokenizer, tokenizer_file
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer, Unknown
from tinygrad_tf.text.word_tokenizer import WordTokenizer
from tinygrad_tf.types import Ids

TOKENIZERS = ("word", "bpe")
VOCAB_SIZE = 512
PAD = 0


@dataclass(frozen=True)
class TaskTokenizer:
    """A tokenizer whose tokens come after `specials`, which no text contains.

    The first of these is PAD. The tokenizer's own special tokens, if any, are left out. `name` is
    the name of the text in an error.
    """

    tokenizer: Tokenizer
    specials: tuple[str, ...]
    name: str = "text"

    @cached_property
    def shift(self) -> int:
        """The number added to an id of the tokenizer."""
        return len(self.specials) - int(self.tokenizer.known_ids()[0])

    @property
    def vocab_size(self) -> int:
        """The number of tokens that the model knows."""
        return self.tokenizer.vocab_size + self.shift

    def encode(self, text: str, limit: int | None = None, unknown: Unknown = "error") -> Ids:
        """Encode a text as ids (N,).

        InputError where it is empty, has unknown words that are not to be skipped, or is longer
        than `limit`.
        """
        ids = self.ids(text.strip(), unknown)
        if not len(ids):
            raise InputError(f"the {self.name} is empty", "give at least one known word")
        if limit is not None and len(ids) > limit:
            raise InputError(
                f"the {self.name} {shown(text)} has {len(ids)} tokens, and the most is {limit}",
                "shorten it, or train with a larger `max_length`",
            )
        return ids

    def ids(self, text: str, unknown: Unknown = "error") -> Ids:
        """Encode a text as it is as ids (N,), maybe none; InputError for unknown words."""
        ids: Ids = self.tokenizer.encode(text, unknown=unknown) + self.shift
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Decode ids to a text; special ones are left out."""
        return self.tokenizer.decode([i - self.shift for i in ids if not self.is_special(i)])

    def is_special(self, token: int) -> bool:
        """Return whether a token is none of the tokenizer's."""
        return token < len(self.specials)

    def token_text(self, token: int) -> str:
        """Return one token as readable text."""
        if self.is_special(token):
            return self.specials[token]
        return self.tokenizer.token_text(token - self.shift)

    def file(self) -> bytes:
        """Return the content of the tokenizer's own file."""
        return tokenizer_file(self.tokenizer)


def learn_tokenizer(kind: str, texts: Sequence[str], vocab_size: int | None = None) -> Tokenizer:
    """Learn a tokenizer of whole words, or of `vocab_size` byte pairs, by default 512.

    Raises InputError for another kind, and for a vocab_size of words: they are all taken.
    """
    if kind not in TOKENIZERS:
        raise InputError(f"tokenizer {kind!r} is not known", f"choose {' or '.join(TOKENIZERS)}")
    if kind == "word":
        if vocab_size is not None:
            raise InputError(
                f"`vocab_size={vocab_size}` has no meaning with the tokenizer word",
                "it is for `tokenizer=bpe`",
            )
        return WordTokenizer.from_texts(texts)
    counted = count_pieces((text + "\n" for text in texts), Splitter())
    trained = train_bpe(counted, vocab_size=vocab_size or VOCAB_SIZE)
    return BPETokenizer(trained.table, "text")


def make_tokenizer(
    kind: str, source: TextSource, vocab_size: int | None = None, workers: int = 1
) -> tuple[Tokenizer, list[str]]:
    """Make the tokenizer of a language model for a text, and notes on how it was learned.

    kind: "char", "byte", "bpe", which learns `vocab_size` tokens of the text, or a tokenizer's
    file. Raises InputError where there is no such file, or it loses the spaces of a text.
    """
    if kind == "byte":
        return ByteTokenizer(), []
    if kind == "char":
        return CharTokenizer.from_text(source), []
    if kind != "bpe":
        return require_lossless(_read_file(Path(kind))), []
    counted = count_pieces(iter(source), Splitter(), workers=workers)
    trained = train_bpe(counted, vocab_size=vocab_size or VOCAB_SIZE)
    return BPETokenizer(trained.table), [*filter(None, [trained.stopped]), *trained.notices]


def _read_file(path: Path) -> Tokenizer:
    """Read a tokenizer's file of any format."""
    if not path.exists():
        raise InputError(
            f"there is no tokenizer {str(path)!r}", "choose char, byte, bpe, or a tokenizer's file"
        )
    if path.is_file() and path.suffix == ".json":
        return load_tokenizer(path)
    try:
        table = load_bpe(path)
    except InputError as fault:
        if "pattern" in fault.next:  # a setting of the conversion alone
            raise InputError(
                fault.what, f"convert it first, with the pattern that {path} was made with"
            ) from fault
        raise
    return BPETokenizer(table, "allow")


def require_lossless(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer; InputError if it would lose the spaces of a text."""
    if isinstance(tokenizer, BPETokenizer) and tokenizer.table.kind == "classical":
        raise InputError(
            "this tokenizer splits words at </w> and does not keep the spaces between them",
            "train a byte-level tokenizer",
        )
    return tokenizer


def shown(text: str, most: int = 40) -> str:
    """Quote a text, shortened where it is long."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")
