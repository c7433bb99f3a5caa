"""From counted text to a tokenizer: byte-level, and classical with an end-of-word mark."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR, to_chars
from tinygrad_tf.text.bpe.merging import Merge, Ties, learn_merges
from tinygrad_tf.text.bpe.specials import WORD
from tinygrad_tf.text.bpe.table import MARK, BPETable, EndOfWord

Order = Literal["bytes", "huggingface"]

_LONG = 10_000  # symbols in one word; words of prose have a few dozen at most


class Counted(Protocol):
    """The distinct pieces of a text, by first occurrence, and how often each occurs."""

    @property
    def pieces(self) -> Sequence[bytes]:
        """The distinct pieces."""
        ...

    @property
    def counts(self) -> Sequence[int]:
        """The number of times that each piece occurs."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One merge as it is made, and how the watched words split after it.

    `number` counts from 1; `left`, `right` and `splits` are spelled as in the table.
    """

    number: int
    merge: Merge
    left: str
    right: str
    splits: list[list[str]]


OnStep = Callable[[Step], None]


@dataclass(frozen=True)
class Trained:
    """A learned encoding: the table, its merges by their ids there, and notices for the user.

    `stopped` says why fewer than `asked` merges were learned; it is empty when all were.
    `notices` are one-line remarks on the text.
    """

    table: BPETable
    merges: list[Merge]
    asked: int | None
    stopped: str
    notices: list[str]


def train_bpe(
    counted: Counted,
    *,
    vocab_size: int,
    pattern: str = "gpt2",
    ties: Ties = "lowest-id",
    min_frequency: int = 1,
    specials: Sequence[str] = (),
    order: Order = "bytes",
    watch: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> Trained:
    """Learn a byte-level encoding of `vocab_size` tokens: 256 bytes, merges, and specials.

    `counted` are the pieces into which `pattern` cuts the text, without its special tokens.
    `order` of the ids: "bytes" has the bytes, the merges, then the specials; "huggingface" has
    the specials, the bytes by their characters, then the merges, and ties by lowest id fall
    accordingly. `on_step` is called with each merge, with the splits of the pieces in
    `watch`. An empty text gives the 256 bytes and a notice. InputError for a vocabulary that
    the bytes and specials overfill, a minimum frequency below 1, and special tokens that stand
    twice or spell a token.
    """
    if order not in get_args(Order):
        raise InputError(f"there is no order of ids {order!r}", "take bytes or huggingface")
    alphabet = list(BYTE_TO_CHAR) if order == "bytes" else sorted(BYTE_TO_CHAR)
    _check_specials(specials, alphabet)
    room = vocab_size - len(alphabet) - len(specials)
    if room < 0:
        raise InputError(
            f"a vocabulary of {vocab_size:,} does not hold the 256 bytes and "
            f"{len(specials)} special token{'s' * (len(specials) != 1)}",
            f"give {len(alphabet) + len(specials)} or more",
        )
    index = {char: symbol for symbol, char in enumerate(alphabet)}
    symbols = bytes(index[char] for char in BYTE_TO_CHAR)  # of byte b at place b
    watched = [list(to_chars(word.encode("utf-8", "surrogateescape"))) for word in watch]
    first = 0 if order == "bytes" else len(specials)
    teller = _Teller(alphabet, specials, on_step, watched, offset=first)
    words = counted.pieces
    if order == "huggingface":
        words = [piece.translate(symbols) for piece in words]
    learn_merges(
        words,
        counted.counts,
        first_id=len(alphabet),
        merges=room,
        ties=ties,
        min_frequency=min_frequency,
        names=[bytes([b]) for b in sorted(range(256), key=symbols.__getitem__)],
        on_merge=teller,
    )
    table = BPETable.from_merges(teller.pairs, pattern=pattern, specials=specials, order=order)
    return _trained(table, teller, room, min_frequency, words, "bytes")


def train_classical(
    counts: Mapping[str, int],
    *,
    vocab_size: int | None = None,
    merges: int | None = None,
    end_of_word: EndOfWord = "separate",
    ties: Ties = "lowest-id",
    min_frequency: int = 1,
    specials: Sequence[str] = (),
    unk: str | None = None,
    watch: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> Trained:
    """Learn an encoding of words, given how often each occurs (Sennrich et al. 2016).

    A word is its characters and the mark `</w>`, a symbol of its own or, attached, a part of
    the last character's. Ids: the characters by code point, then `</w>` or the characters that
    carry it somewhere, the merges, `unk`, the specials. Learning ends at `vocab_size` tokens,
    all these included, or after so many `merges`, whichever comes first, or when no pair is
    left. Words that are special tokens are not learned from. Where words hold the text `</w>`
    itself, no pair is merged that would end like a mark, with a notice. InputError as for
    `train_bpe`, for no words at all, and for words with whitespace.
    """
    if end_of_word not in get_args(EndOfWord):
        raise InputError(
            f"there is no way {end_of_word!r} to mark the end of a word",
            "take separate or attached",
        )
    special = frozenset(specials)
    counts = {word: n for word, n in counts.items() if word not in special}
    if not counts:
        raise InputError("there are no words to learn from", "give a text that has some")
    for word, n in counts.items():
        if not WORD.fullmatch(word) or n < 1:
            raise InputError(
                f"the word {word!r} with count {n} cannot be learned from",
                "give words without whitespace, each with a count of 1 or more",
            )
    words = [_marked(word, end_of_word) for word in counts]
    letters = {letter for word in counts for letter in word}
    marked = {symbol for word in words for symbol in word} - letters
    alphabet = sorted(letters) + sorted(marked)
    others = [*specials, *([] if unk is None else [unk])]
    _check_specials(others, alphabet)
    limit = None if vocab_size is None else vocab_size - len(alphabet) - len(others)
    if merges is not None and merges < 0:
        raise InputError(f"{merges} merges cannot be learned", "give 0 or more")
    if limit is not None and limit < 0:
        raise InputError(
            f"a vocabulary of {vocab_size:,} does not hold the {len(alphabet)} characters and "
            f"marks and {len(others)} other token{'s' * (len(others) != 1)}",
            f"give {len(alphabet) + len(others)} or more",
        )
    bounds = [n for n in (limit, merges) if n is not None]
    asked = min(bounds) if bounds else None
    index = {char: symbol for symbol, char in enumerate(alphabet)}
    teller = _Teller(alphabet, others, on_step, [_marked(w, end_of_word) for w in watch])
    learn_merges(
        [[index[char] for char in word] for word in words],
        list(counts.values()),
        first_id=len(alphabet),
        merges=sum(map(len, words)) if asked is None else asked,
        ties=ties,
        min_frequency=min_frequency,
        names=alphabet,
        skip=teller.spells_a_mark,
        on_merge=teller,
    )
    table = BPETable.classical(
        alphabet,
        teller.pairs,
        end_of_word=end_of_word,
        unk=unk,
        specials=specials,
    )
    return _trained(table, teller, asked, min_frequency, words, "characters")


@dataclass
class _Teller:
    """Spells the merges as they come, looks for collisions, and calls `on_step`."""

    tokens: list[str]
    specials: Collection[str]
    on_step: OnStep | None
    splits: list[list[str]]
    offset: int = 0  # from symbols to ids
    merges: list[Merge] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens, self.specials = list(self.tokens), frozenset(self.specials)

    def spells_a_mark(self, left: int, right: int) -> bool:
        """Return True if a pair of plain characters would end in what reads as the mark."""
        token = self.tokens[left] + self.tokens[right]
        spells = token.endswith(MARK) and not self.tokens[right].endswith(MARK)
        if spells:
            self.skipped.append(token)
        return spells

    def __call__(self, merge: Merge) -> None:
        left, right = self.tokens[merge.left], self.tokens[merge.right]
        if left + right in self.specials:
            raise InputError(
                f"the special token {left + right!r} is also what merge {len(self.pairs) + 1} "
                f"makes of {left!r} and {right!r}, so its id would mean both",
                f"name it differently, as <|{left + right}|>",
            )
        self.tokens.append(left + right)
        self.pairs.append((left, right))
        if n := self.offset:
            merge = Merge(merge.left + n, merge.right + n, merge.new + n, merge.count)
        self.merges.append(merge)
        if self.on_step is not None:
            self.splits = [_merged(split, left, right) for split in self.splits]
            self.on_step(Step(len(self.pairs), merge, left, right, self.splits))


def _merged(split: list[str], left: str, right: str) -> list[str]:
    merged: list[str] = []
    for token in split:
        if token == right and merged and merged[-1] == left:
            merged[-1] = left + right  # which is longer than left, so a run goes on from afresh
        else:
            merged.append(token)
    return merged


def _marked(word: str, end_of_word: EndOfWord) -> list[str]:
    if end_of_word == "separate":
        return [*word, MARK]
    return [*word[:-1], word[-1] + MARK]


def _check_specials(specials: Sequence[str], alphabet: Sequence[str]) -> None:
    for special, n in Counter(specials).items():
        if not special:
            raise InputError("a special token is empty", "give it a name, as <|endoftext|>")
        if n > 1:
            raise InputError(f"the special token {special!r} is given {n} times", "give it once")
        if special in alphabet:
            raise InputError(
                f"the special token {special!r} is also the token of a single character",
                f"name it differently, as <|{special}|>",
            )


def _trained(
    table: BPETable,
    teller: _Teller,
    asked: int | None,
    min_frequency: int,
    words: Sequence[Sequence[object]],
    unit: str,
) -> Trained:
    notices = []
    if not words:
        notices.append("the text is empty, so there is nothing to merge")
    longest = max(map(len, words), default=0)
    if longest > _LONG:
        notices.append(
            f"the longest word has {longest:,} {unit}: tokens may span what a reader takes for "
            "many words; a pattern or spaces would cut it"
        )
    if teller.skipped:
        spelled = " ".join(dict.fromkeys(teller.skipped))
        notices.append(f"the words themselves spell {spelled}: these characters stay apart")
    learned = len(teller.merges)
    stopped = ""
    if asked is None or learned < asked:
        often = {1: "is left", 2: "occurs twice"}
        why = f"no pair {often.get(min_frequency, f'occurs {min_frequency:,} times')}"
        of = "" if asked is None else f" of {asked:,}"
        stopped = f"learned {learned:,}{of} merges: {why}"
    return Trained(table, teller.merges, asked, stopped, notices)
