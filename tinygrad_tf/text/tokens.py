"""Token files: a text as ids on disk, split into training and validation, memory-mapped."""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.text.held_out import held_out_mask, train_size
from tinygrad_tf.text.reading import TextSource
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.types import Ids, Mask

SCHEMA_VERSION = 1
BOUNDARY = "\n"

_INDEX = "tokens.json"
_COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class TokenFile:
    """One split: tokens (N,) and, in line mode, where its documents start.

    Document i is `tokens[starts[i] : starts[i + 1] + 1]`, from its opening boundary to its
    closing one, which is also the opening one of the next. So `starts` (D + 1,) begins with 0
    and ends with N - 1, and every token after the first is a target exactly once.
    `chars` counts the characters of the split, boundaries included, for bits per character.
    """

    name: str
    tokens: NDArray[Any]
    starts: NDArray[np.int64] | None = None
    chars: int = 0

    @property
    def targets(self) -> int:
        """The number of tokens that can be predicted: all but the first."""
        return max(0, len(self.tokens) - 1)


@dataclass(frozen=True)
class TokenSet:
    """Both splits of a text and what they were made from and with."""

    train: TokenFile
    val: TokenFile
    vocab_size: int
    tokenizer_sha256: str
    text_sha256: str
    val_fraction: float
    lines: bool
    seed: int

    def require(self, block_size: int) -> None:
        """Raise InputError, saying which setting helps, if a split is too short for a window.

        Documents have a length of their own, and are never too short.
        """
        sizes = len(self.train.tokens), len(self.val.tokens)
        need = block_size + 1
        if self.lines or min(sizes) >= need:
            return
        if max(sizes) < need:
            what = f"the training and validation splits have {sizes[0]:,} and {sizes[1]:,} tokens"
            verb = "need"
        else:
            short = min(self.train, self.val, key=lambda split: len(split.tokens))
            what, verb = f"the {short.name} split has {len(short.tokens):,} tokens", "needs"
        raise InputError(f"{what} and {verb} block_size + 1 = {need:,}", _remedy(*sizes, need=need))


def _remedy(train: int, val: int, *, need: int) -> str:
    """Say which settings make windows of `need` tokens fit into both splits."""
    total, longest = train + val, min(train, val) - 1
    options = []
    if longest >= 4:
        options.append(f"`block_size={1 << (longest.bit_length() - 1)}`")
    fraction = math.ceil(100 * need / total) / 100
    if train_size(total, fraction) >= need and total - train_size(total, fraction) >= need:
        options.append(f"`val_fraction={fraction:g}`")
    if options:
        return "use " + " or ".join(options)
    return f"give a text of at least {2 * need:,} tokens"


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the smallest little-endian unsigned type that holds every id."""
    for name in ("<u1", "<u2"):
        if vocab_size <= np.iinfo(name).max + 1:
            return np.dtype(name)
    return np.dtype("<u4")


def build_tokens(
    source: TextSource,
    tokenizer: Tokenizer,
    directory: str | os.PathLike[str],
    *,
    val_fraction: float = 0.1,
    lines: bool = False,
    seed: int = 0,
) -> TokenSet:
    """Encode a text into token files under `directory`, in constant memory, and open them.

    Text mode: the last `val_fraction` of the tokens, in order, are the validation split.
    Line mode: every line that is not blank is a document; a shuffle seeded by `seed` deals
    max(1, round(n * val_fraction)) of them to validation, and both splits keep their order.
    InputError for a bad option, an unknown character or fewer than two documents;
    FailedError when the files cannot be written.
    """
    if not 0 < val_fraction < 1:  # also refuses NaN
        raise InputError(
            f"the validation fraction is {val_fraction}, and must lie between 0 and 1",
            "use `val_fraction=0.1`",
        )
    folder = Path(directory)
    dtype = token_dtype(tokenizer.vocab_size)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Without its index, a directory that is only half written is no token set.
        (folder / _INDEX).unlink(missing_ok=True)
        if lines:
            in_val = _deal_documents(source, val_fraction, seed)
            splits = _write_documents(source, tokenizer, folder, dtype, in_val)
        else:
            splits = _write_text(source, tokenizer, folder, dtype, val_fraction)
        index = {
            "schema_version": SCHEMA_VERSION,
            "dtype": dtype.name,
            "vocab_size": tokenizer.vocab_size,
            "tokenizer_sha256": tokenizer.sha256(),
            "text_sha256": source.report.sha256,
            "val_fraction": val_fraction,
            "lines": lines,
            "seed": seed,
            **splits,
        }
        (folder / _INDEX).write_text(
            json.dumps(index, indent=1) + "\n", encoding="utf-8", newline="\n"
        )
    return open_tokens(folder, tokenizer)


def _write_text(
    source: TextSource,
    tokenizer: Tokenizer,
    folder: Path,
    dtype: np.dtype[Any],
    val_fraction: float,
) -> dict[str, Any]:
    """Write the whole text as training tokens, then move their tail to validation."""
    with (folder / "train.bin").open("w+b") as train, (folder / "val.bin").open("wb") as val:
        total = chars = 0
        for ids in tokenizer.encode_chunks(source):
            train.write(ids.astype(dtype).tobytes())
            total += len(ids)
            chars += tokenizer.count_chars(ids)
        first = train_size(total, val_fraction)
        train.seek(first * dtype.itemsize)
        val_chars = 0
        while data := train.read(_COPY_BYTES):
            val_chars += tokenizer.count_chars(np.frombuffer(data, dtype))
            val.write(data)
        train.truncate(first * dtype.itemsize)
    return {
        "train": {"tokens": first, "documents": None, "chars": chars - val_chars},
        "val": {"tokens": total - first, "documents": None, "chars": val_chars},
    }


def _blocks_of_lines(source: TextSource) -> Iterator[tuple[int, str]]:
    """Yield whole lines, as many as a chunk ends, joined by newlines, and their position."""
    position = 0
    pending: list[str] = []
    for chunk in itertools.chain(source, [BOUNDARY]):
        cut = chunk.rfind(BOUNDARY)
        if cut < 0:
            pending.append(chunk)
            continue
        block = "".join(pending) + chunk[:cut]
        yield position, block
        position += len(block) + 1
        pending = [chunk[cut + 1 :]]


def _documents(block: str, position: int = 0) -> list[tuple[int, str]]:
    """The lines of a block that are not blank, each with its position in the text."""
    found = []
    for line in block.split(BOUNDARY):
        if line.strip():
            found.append((position, line))
        position += len(line) + 1
    return found


def _deal_documents(source: TextSource, val_fraction: float, seed: int) -> Mask:
    """Count the documents, and mark those that are for validation."""
    count = sum(len(_documents(block)) for _, block in _blocks_of_lines(source))
    if count < 2:
        raise InputError(
            f"the text has {count} document{'s' * (count != 1)} (lines that are not blank), "
            "and needs 2: one to train on and one to validate",
            "give a text with more lines, or use `lines=False`",
        )
    return held_out_mask(count, val_fraction, seed)


def _write_documents(
    source: TextSource,
    tokenizer: Tokenizer,
    folder: Path,
    dtype: np.dtype[Any],
    in_val: Mask,
) -> dict[str, Any]:
    """Write every document to the split that it was dealt to, in order."""
    boundary = tokenizer.encode(BOUNDARY)
    done = 0
    with ExitStack() as files:
        splits = [
            _DocumentWriter(folder, name, dtype, boundary, tokenizer, files)
            for name in ("train", "val")
        ]
        for position, block in _blocks_of_lines(source):
            documents = _documents(block, position)
            marks = in_val[done : done + len(documents)]
            if len(marks) < len(documents):
                raise InputError("the text changed while being read", "start again")
            done += len(documents)
            # One by one: what a token may span must not reach into the next document.
            ids = [tokenizer.encode(line, start=start) for start, line in documents]
            for split, here in zip(splits, (~marks, marks), strict=True):
                split.add([part for part, mine in zip(ids, here, strict=True) if mine])
    return {split.name: split.counts for split in splits}


class _DocumentWriter:
    """The two files of a split in line mode, growing by whole documents."""

    def __init__(
        self,
        folder: Path,
        name: str,
        dtype: np.dtype[Any],
        boundary: Ids,
        tokenizer: Tokenizer,
        files: ExitStack,
    ) -> None:
        self.name = name
        self.counts = {"tokens": 0, "documents": -1, "chars": 0}
        self._dtype = dtype
        self._tokenizer = tokenizer
        self._tokens = files.enter_context((folder / f"{name}.bin").open("wb"))
        self._starts = files.enter_context((folder / f"{name}.starts").open("wb"))
        self._boundary = boundary
        # The boundary that opens the first document closes none.
        self.add([boundary[:0]])

    def add(self, documents: list[Ids]) -> None:
        """Append documents, each ending with its boundary."""
        if not documents:
            return
        ids = np.concatenate([part for ids in documents for part in (ids, self._boundary)])
        lengths = [len(part) + len(self._boundary) for part in documents]
        ends = self.counts["tokens"] - 1 + np.cumsum(lengths)
        self._tokens.write(ids.astype(self._dtype).tobytes())
        self._starts.write(ends.astype("<i8").tobytes())
        self.counts["tokens"] += len(ids)
        self.counts["documents"] += len(documents)
        self.counts["chars"] += self._tokenizer.count_chars(ids)


def open_tokens(directory: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> TokenSet:
    """Map the token files of a directory into memory, read-only.

    InputError when a file is missing, malformed or not as long as the index says, or when
    `tokenizer` is not the one that the text was encoded with.
    """
    folder = Path(directory)
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        _check_index(index)
        train, val = (_open_split(folder, index, name) for name in ("train", "val"))
    except OSError as fault:
        raise InputError(
            f"cannot read the token files in {folder}: {fault.strerror or fault}", _REBUILD
        ) from fault
    except (ValueError, RecursionError) as fault:
        reason = fault.what if isinstance(fault, InputError) else f"{_INDEX} is not JSON"
        raise InputError(f"the token files in {folder} are damaged: {reason}", _REBUILD) from fault
    if tokenizer is not None and index["tokenizer_sha256"] != tokenizer.sha256():
        raise InputError(
            f"the tokens in {folder} ({index['vocab_size']} in the vocabulary) were made with "
            f"another tokenizer than this one ({tokenizer.vocab_size} in the vocabulary)",
            _REBUILD,
        )
    kept = ("vocab_size", "tokenizer_sha256", "text_sha256", "val_fraction", "lines", "seed")
    return TokenSet(train, val, **{name: index[name] for name in kept})


_REBUILD = "make the token files again from the text"

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "dtype": str,
    "vocab_size": int,
    "tokenizer_sha256": str,
    "text_sha256": str,
    "val_fraction": float,
    "lines": bool,
    "seed": int,
    "train": dict,
    "val": dict,
}


def _check_index(index: Any) -> None:
    """Raise InputError unless the index has every field, of its type."""
    if not isinstance(index, dict) or index.get("schema_version") != SCHEMA_VERSION:
        raise InputError(f"the schema_version of {_INDEX} is not {SCHEMA_VERSION}")
    for name, kind in _FIELDS.items():
        if type(index.get(name)) is not kind:
            raise InputError(f'"{name}" of {_INDEX} is missing or of the wrong type')
    if index["dtype"] != token_dtype(index["vocab_size"]).name:
        raise InputError(f"dtype {index['dtype']} does not fit the vocabulary")
    for name in ("train", "val"):
        counts = index[name]
        fields = ["tokens", "chars"] + ["documents"] * index["lines"]
        if any(type(counts.get(field)) is not int or counts[field] < 0 for field in fields):
            raise InputError(f'the counts of "{name}" in {_INDEX} are missing or of the wrong type')


def _open_split(folder: Path, index: Mapping[str, Any], name: str) -> TokenFile:
    counts = index[name]
    tokens = _map(folder / f"{name}.bin", token_dtype(index["vocab_size"]), counts["tokens"])
    starts = None
    if index["lines"]:
        path = folder / f"{name}.starts"
        starts = _map(path, np.dtype("<i8"), counts["documents"] + 1)
        in_order = starts[0] == 0 and starts[-1] == len(tokens) - 1
        if not in_order or np.any(starts[1:] <= starts[:-1]):
            raise InputError(f"{path.name} does not cut {name}.bin into documents")
    title = {"train": "training", "val": "validation"}[name]
    return TokenFile(title, tokens, starts, counts["chars"])


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    size, expected = path.stat().st_size, length * dtype.itemsize
    if size != expected:
        raise InputError(f"{path.name} has {size} bytes instead of {expected}")
    if not length:  # an empty file cannot be mapped
        return np.empty(0, dtype)
    # A plain view: indexing np.memmap itself costs several times as much.
    return np.asarray(np.memmap(path, dtype, mode="r"))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise FailedError(
            f"cannot write the token files in {folder}: {fault.strerror or fault}",
            "free some space, or choose another place",
        ) from fault
