"""Recordings and what is said in them: found on the disk, and dealt into two parts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tinygrad_tf.errors import InputError
from tinygrad_tf.text.held_out import random_generator
from tinygrad_tf.text.pairs import read_pairs
from tinygrad_tf.text.reading import read_text
from tinygrad_tf.text.word_tokenizer import split_words


class Recording(NamedTuple):
    """A WAV, and what is said in it."""

    wav: Path
    text: str


def spoken_form(text: str) -> str:
    """Return the words of a text as they are pronounced: in lower case, and without marks."""
    words = (word.lower() for word in split_words(text))
    return " ".join(word for word in words if any(map(str.isalnum, word)))


def find_recordings(where: Path) -> list[Recording]:
    """Find the recordings of a directory, or of an index of lines `file<TAB>text`.

    In a directory, and in those within it, a.txt beside a.wav has the words of it; or the
    directory has an index of its own, its only .tsv, whose files it names from where it lies.
    Raises InputError for one that lacks the other, and for a text without a word.
    """
    if not where.exists():
        raise InputError(f"{where} does not exist", "name a directory of WAVs and their texts")
    if not where.is_dir():
        return _from_index(where)
    indices = sorted(where.glob("*.tsv"))
    if len(indices) > 1:
        names = ", ".join(path.name for path in indices)
        raise InputError(f"{where} has {len(indices)} indices: {names}", f"name one: {indices[0]}")
    return _from_index(indices[0]) if indices else _from_pairs(where)


def _from_index(index: Path) -> list[Recording]:
    recordings = []
    for line, (name, text) in enumerate(read_pairs(index), 1):
        wav = index.parent / name
        if not wav.is_file():
            raise InputError(
                f"{index}, line {line}: {wav} is no file",
                "write each line as file<TAB>text, the file as seen from the index",
            )
        recordings.append(Recording(wav, _words(text, f"{index}, line {line}")))
    return recordings


def _from_pairs(directory: Path) -> list[Recording]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    wavs, texts = ([p for p in files if p.suffix.lower() == end] for end in (".wav", ".txt"))
    if not wavs:
        raise InputError(f"{directory} holds no WAVs", "put a.wav with a.txt there, and more")
    described, recorded = set(texts), {wav.with_suffix(".txt") for wav in wavs}
    for some, what in (
        ([wav for wav in wavs if wav.with_suffix(".txt") not in described], ".txt beside it"),
        ([text for text in texts if text not in recorded], ".wav beside it"),
    ):
        if some:
            more = f", nor have {len(some) - 1} others" if len(some) > 1 else ""
            raise InputError(
                f"{directory} has {len(wavs)} WAVs and {len(texts)} texts: "
                f"{some[0].relative_to(directory)} has no {some[0].stem}{what}{more}",
                "give each WAV a text of its name, and each text its WAV",
            )
    return [Recording(wav, _text_of(wav.with_suffix(".txt"))) for wav in wavs]


def _text_of(path: Path) -> str:
    return _words(read_text(path)[0], str(path))


def _words(text: str, where: str) -> str:
    words = spoken_form(text)
    if not words:
        raise InputError(f"{where}: there is not a single word", "write what is said in the WAV")
    return words


def deal(texts: Sequence[str], share: float, seed: int) -> set[int]:
    """Choose the recordings to hold out, by their numbers: about a `share`, at least one.

    First whole sentences, each word of which is also said in another that is trained on; where
    these are too few, recordings of sentences that others are trained on. Raises InputError for
    a single sentence, and where nothing can be held out so.
    """
    files = defaultdict(list)
    for index, text in enumerate(texts):
        files[text].append(index)
    if len(files) < 2:
        raise InputError(
            f"all {len(texts)} recordings say {texts[0]!r}", "record at least 2 sentences"
        )
    random = random_generator(seed)
    count, sentences = max(1, round(share * len(texts))), list(files)
    said_in = Counter(word for sentence in sentences for word in set(sentence.split()))
    held: set[int] = set()
    for which in random.permutation(len(sentences)):
        words, own = set(sentences[which].split()), files[sentences[which]]
        if len(held) + len(own) <= count and min(said_in[word] for word in words) > 1:
            held.update(own)
            said_in.subtract(words)
    left = Counter(text for index, text in enumerate(texts) if index not in held)
    for index in map(int, random.permutation(len(texts))):
        if len(held) < count and index not in held and left[texts[index]] > 1:
            held.add(index)
            left[texts[index]] -= 1
    if not held:
        raise InputError(
            f"none of {len(texts)} recordings can be held out to test with: each has a word that "
            "no other has",
            "record sentences more than once, or more sentences of the same words",
        )
    return held
