"""The text that a soft prompt is tuned on, in two parts: documents of one kind, or a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinygrad_tf.corpus.letters import AUTHOR, draw_letters, topic_nats
from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import hold_out, train_size
from tinygrad_tf.text.reading import FileSource
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.text.tokens import BOUNDARY, TokenFile


@dataclass(frozen=True)
class PromptText:
    """Tokens to train on and tokens held out; for the embedded letters also the lowest loss.

    floor: the entropy of the true source in nats per held-out token; topic: the additional nats
    of a source that does not know that the text is letters.
    """

    task: str
    train: TokenFile
    val: TokenFile
    floor: float | None = None
    topic: float | None = None


def embedded_letters(tokenizer: Tokenizer, val_fraction: float, seed: int) -> PromptText:
    """Encode Anna's letters; InputError for a tokenizer that lacks one of their characters."""
    train, held = draw_letters(seed=seed, held_out=val_fraction)
    val = _documents("validation", held.stories, tokenizer)
    return PromptText(
        f"{AUTHOR}'s letters",
        _documents("training", train.stories, tokenizer),
        val,
        floor=held.floor.nats / val.targets,
        topic=topic_nats() * len(held.stories) / val.targets,
    )


def own_text(
    paths: Sequence[Path],
    tokenizer: Tokenizer,
    val_fraction: float,
    seed: int,
    *,
    lines: bool,
) -> PromptText:
    """Read text of files: with `lines` a document each, of which equal ones go to the same part.

    Else its end is held out. InputError for a text that is too short, or has characters that the
    tokenizer lacks.
    """
    source, task = FileSource(paths), ", ".join(map(str, paths))
    if lines:
        documents = [line for line in "".join(source).split("\n") if line.strip()]
        train, val = hold_out(documents, val_fraction, seed)
        return PromptText(
            task,
            _documents("training", train, tokenizer),
            _documents("validation", val, tokenizer),
        )
    ids = np.concatenate(list(tokenizer.encode_chunks(source)))
    cut = train_size(len(ids), val_fraction)
    first, rest = ids[:cut], ids[cut:]
    return PromptText(
        task,
        TokenFile("training", first, None, tokenizer.count_chars(first)),
        TokenFile("validation", rest, None, tokenizer.count_chars(rest)),
    )


def _documents(name: str, documents: Iterable[str], tokenizer: Tokenizer) -> TokenFile:
    """Make a split in memory of documents, a boundary before, between and after them."""
    boundary = tokenizer.encode(BOUNDARY)
    if len(boundary) != 1:
        raise InputError(
            "a newline is not one token of this model",
            "give a run that was made with `lines=False`",
        )
    parts, starts, chars, length = [boundary], [0], 1, 1
    for document in documents:
        try:
            ids = tokenizer.encode(document)
        except InputError as fault:
            raise InputError(fault.what, "write it with what the model knows") from fault
        parts += [ids, boundary]
        length += len(ids) + 1
        starts.append(length - 1)
        chars += len(document) + 1
    return TokenFile(name, np.concatenate(parts), np.array(starts, np.int64), chars)
