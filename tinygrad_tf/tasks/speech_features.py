"""The vectors of sounds that a model of speech is trained on, and their files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tinygrad_tf.audio import (
    RATE,
    SpeechFeatures,
    SpokenCommand,
    Wave,
    read_wav,
    speech_vectors,
    spoken_commands,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks.recordings import Recording
from tinygrad_tf.train.parallel import blas_threads, default_threads

# Half precision takes half the space, and is far finer than any noise.
Vectors = npt.NDArray[np.float16]
T = TypeVar("T")

QUIETEST = 1e-3  # of full scale, so -60 dB: what is nowhere louder is no speech
TOGETHER = 64  # sounds that are in memory at a time


class Utterance(NamedTuple):
    """A sound as vectors (T, n_dim), the text that is said in it, and its name."""

    name: str
    text: str
    vectors: Vectors


def extract_features(wave: Wave, name: str, features: SpeechFeatures, longest: int) -> Vectors:
    """Compute the vectors (T, n_dim) of a sound, `longest` of them at most.

    Raises InputError, with its `name`, where it is too long, too short, or silent.
    """
    # Before anything is computed: an hour of sound would take its time to be refused.
    if features.length(wave.seconds + 1 / wave.rate) > longest:
        raise InputError(
            f"{name} lasts {wave.seconds:.1f} s, and the most is "
            f"{longest * seconds_of_vector(features):.1f} s",
            "cut it into sentences, or train with a larger `max_length`",
        )
    if np.abs(wave.samples - wave.samples.mean()).max() < QUIETEST:
        raise InputError(
            f"{name} is silent: nothing in it exceeds {QUIETEST:g} of full scale",
            "record it again, louder",
        )
    try:
        return speech_vectors(wave.samples, wave.rate, features).astype(np.float16)
    except InputError as fault:
        raise InputError(f"{name}: {fault.what}", fault.next) from None


def seconds_of_vector(features: SpeechFeatures) -> float:
    """The seconds of sound that one vector is computed from."""
    return features.stack * features.mfcc.hop_length / features.mfcc.rate


def recorded_utterances(
    recordings: Iterable[Recording], features: SpeechFeatures, longest: int
) -> list[Utterance]:
    """Read every recording, in order; raises InputError as `extract_features`, `read_wav` do."""

    def one(recording: Recording) -> Utterance:
        name = str(recording.wav)
        vectors = extract_features(read_wav(recording.wav), name, features, longest)
        return Utterance(name, recording.text, vectors)

    return list(_in_threads(one, recordings))


def command_utterances(
    count: int, speakers: int, seed: int, features: SpeechFeatures, longest: int, *, held_out: bool
) -> list[Utterance]:
    """Make commands of the embedded voice, see `spoken_commands`."""

    def one(command: SpokenCommand) -> Utterance:
        wave = Wave(command.samples, RATE)
        vectors = extract_features(wave, repr(command.text), features, longest)
        return Utterance(f"a voice of {command.speaker.pitch:.0f} Hz", command.text, vectors)

    commands = spoken_commands(count, seed, held_out=held_out, n_speakers=speakers)
    return list(_in_threads(one, commands))


def _in_threads(make: Callable[[T], Utterance], items: Iterable[T]) -> Iterator[Utterance]:
    """Apply `make` to each item in threads, and yield the results in order."""
    waiting = iter(items)
    with ThreadPoolExecutor(default_threads()) as pool, blas_threads(1):
        while some := list(islice(waiting, TOGETHER)):
            yield from pool.map(make, some)


def pack(utterances: Iterable[Utterance]) -> tuple[bytes, bytes]:
    """Write utterances as two files: lines of JSON, and all vectors below one another as .npy."""
    some = list(utterances)
    lines = "".join(
        json.dumps({"name": u.name, "text": u.text, "length": len(u.vectors)}) + "\n" for u in some
    )
    array = io.BytesIO()
    np.save(array, np.concatenate([u.vectors for u in some]), allow_pickle=False)
    return lines.encode(), array.getvalue()


def unpack(lines: bytes, array: bytes) -> list[Utterance]:
    """Read the two files that `pack` wrote."""
    records = [json.loads(line) for line in lines.splitlines()]
    vectors = np.load(io.BytesIO(array), allow_pickle=False)
    ends = np.cumsum([one["length"] for one in records])
    parts = np.split(vectors, ends[:-1])
    return [Utterance(one["name"], one["text"], v) for one, v in zip(records, parts, strict=True)]
