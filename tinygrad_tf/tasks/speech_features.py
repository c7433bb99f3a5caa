"""From sounds to the vectors that a model of speech learns from, and these to files and back."""

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
    """A sound as vectors [T, n_dim], what is said in it, and what it is called."""

    name: str
    text: str
    vectors: Vectors


def hear(wave: Wave, name: str, features: SpeechFeatures, longest: int) -> Vectors:
    """The vectors [T, n_dim] of a sound, `longest` of them at most.

    Raises InputError where it is too long, too short, or silent; `name` is what it is called then.
    """
    # Before anything is computed: an hour of sound would take its time to be refused.
    if features.length(wave.seconds + 1 / wave.rate) > longest:
        raise InputError(
            f"{name} lasts {wave.seconds:.1f} s, and the most is "
            f"{longest * seconds_of_vector(features):.1f} s",
            "cut it into sentences, or train with a larger --max-length",
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
    """How much time one vector stands for."""
    return features.stack * features.mfcc.hop_length / features.mfcc.rate


def hear_files(
    recordings: Iterable[Recording], features: SpeechFeatures, longest: int
) -> list[Utterance]:
    """Every recording, in order; raises InputError as `hear` and `read_wav` do."""

    def one(recording: Recording) -> Utterance:
        name = str(recording.wav)
        return Utterance(
            name, recording.text, hear(read_wav(recording.wav), name, features, longest)
        )

    return list(_in_threads(one, recordings))


def hear_commands(
    count: int, speakers: int, seed: int, features: SpeechFeatures, longest: int, *, held_out: bool
) -> list[Utterance]:
    """Commands of the embedded voice, see `spoken_commands`."""

    def one(command: SpokenCommand) -> Utterance:
        vectors = hear(Wave(command.samples, RATE), repr(command.text), features, longest)
        return Utterance(f"a voice of {command.speaker.pitch:.0f} Hz", command.text, vectors)

    commands = spoken_commands(count, seed, held_out=held_out, n_speakers=speakers)
    return list(_in_threads(one, commands))


def _in_threads(one: Callable[[T], Utterance], given: Iterable[T]) -> Iterator[Utterance]:
    """`one` of each, in order."""
    waiting = iter(given)
    with ThreadPoolExecutor(default_threads()) as pool, blas_threads(1):
        while some := list(islice(waiting, TOGETHER)):
            yield from pool.map(one, some)


def pack(utterances: Iterable[Utterance]) -> tuple[bytes, bytes]:
    """Utterances as two files: lines of JSON, and all vectors below one another as .npy."""
    some = list(utterances)
    told = "".join(
        json.dumps({"name": u.name, "text": u.text, "length": len(u.vectors)}) + "\n" for u in some
    )
    array = io.BytesIO()
    np.save(array, np.concatenate([u.vectors for u in some]), allow_pickle=False)
    return told.encode(), array.getvalue()


def unpack(lines: bytes, array: bytes) -> list[Utterance]:
    """The reverse of `pack`."""
    told = [json.loads(line) for line in lines.splitlines()]
    vectors = np.load(io.BytesIO(array), allow_pickle=False)
    ends = np.cumsum([one["length"] for one in told])
    parts = np.split(vectors, ends[:-1])
    return [Utterance(one["name"], one["text"], v) for one, v in zip(told, parts, strict=True)]
