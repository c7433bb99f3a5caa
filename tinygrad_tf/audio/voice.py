"""A small voice: glottal pulses and noise through formants that move, as in Klatt 1980.

What a phoneme sounds like is in `phonemes`, the filters are in `formants`; here is who speaks, how
fast, how high, and how one sound goes over into the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.audio.formants import HOP, overlap_add, spectra, teeth, throat
from tinygrad_tf.audio.phonemes import PHONEMES, SILENCE, Segment, pronounce
from tinygrad_tf.audio.resampling import RATE
from tinygrad_tf.audio.samples import Floats
from tinygrad_tf.errors import InputError

GLIDE, ONSET = 7, 3  # frames of 8 ms in which formants and loudness go to a new target
RUMBLE = 16  # samples over which hiss is averaged to noise below 1000 Hz
TOP_HISS = 7000.0  # hertz; a short mouth hisses no higher


@dataclass(frozen=True)
class Speaker:
    """A speaker: `pitch` in hertz, its `melody` in octaves, `tract` and the rest as factors.

    A shorter vocal tract has higher formants: `tract` is 1 for a man and about 1.17 for a woman.
    `breath` and `tilt` are what the voice has of noise and what it lacks in brightness, from 0 to
    1; `f1` and `f2` are habits of the first two formants. Raises InputError for what no voice has.
    """

    pitch: float = 120.0
    melody: float = 0.1
    tract: float = 1.0
    speed: float = 1.0
    breath: float = 0.03
    tilt: float = 0.3
    jitter: float = 0.01
    f1: float = 1.0
    f2: float = 1.0

    def __post_init__(self) -> None:
        if min(self.pitch, self.tract, self.speed) <= 0 or not 0 <= self.tilt < 1:
            raise InputError(
                f"nobody speaks with pitch={self.pitch}, tract={self.tract}, speed={self.speed} "
                f"and tilt={self.tilt}",
                "take the first three above 0, and a tilt from 0 to below 1",
            )


def draw_speaker(generator: np.random.Generator) -> Speaker:
    """A man or a woman, each as likely."""
    woman = generator.random() < 0.5
    pitch, tract = (200.0, 1.15) if woman else (115.0, 1.0)
    return Speaker(
        pitch=pitch * 2 ** generator.normal(0, 0.2),
        melody=generator.uniform(0.03, 0.15),
        tract=tract * generator.uniform(0.94, 1.06),
        speed=generator.uniform(0.9, 1.25),
        breath=generator.uniform(0.01, 0.1),
        tilt=generator.uniform(0.1, 0.6),
        jitter=generator.uniform(0.005, 0.02),
        f1=generator.uniform(0.95, 1.05),
        f2=generator.uniform(0.95, 1.05),
    )


def speak(
    text: str,
    speaker: Speaker,
    generator: np.random.Generator,
    snr_db: float = 30.0,
) -> Floats:
    """The words of a text, spoken: samples [N] at 16,000 Hz, between -1 and 1.

    The generator draws how long, how high and how clear each sound comes out, and the noise of
    the room, `snr_db` decibels below the speech. Raises InputError where the text has no word, or
    one that the voice does not know.
    """
    words = text.split()
    if not words:
        raise InputError("there is nothing to say", "give at least one word")
    segments, word_of = _segments(words, generator)
    frames = _frame_counts(segments, word_of, speaker, generator)
    targets = np.array(segments)[:, 1:]
    targets[:, 3:6] *= generator.normal(1, 0.02, size=(len(targets), 3))
    tracks = np.repeat(targets, frames, axis=0)
    pitch = _pitch(np.repeat(word_of, frames), len(words), speaker, generator)
    sound = _voiced(glide(tracks), pitch, speaker, generator)
    return _in_a_room(sound, snr_db, generator)


def _segments(
    words: Sequence[str], generator: np.random.Generator
) -> tuple[list[Segment], NDArray[np.intp]]:
    """The segments of a sentence, a silence before and after, and the word of each."""
    segments, word_of = [SILENCE], [0]
    for index, word in enumerate(words):
        if index and generator.random() < 0.15:  # a short rest
            segments.append(SILENCE)
            word_of.append(index)
        sounds = [segment for phoneme in pronounce(word) for segment in PHONEMES[phoneme]]
        segments += sounds
        word_of += [index] * len(sounds)
    return [*segments, SILENCE], np.array([*word_of, len(words) - 1])


def _frame_counts(
    segments: Sequence[Segment],
    word_of: NDArray[np.intp],
    speaker: Speaker,
    generator: np.random.Generator,
) -> NDArray[np.intp]:
    """Return the number of frames of each segment; the last word is slower, as in speech."""
    ms = np.array([segment.ms for segment in segments])
    pace = np.exp(generator.normal(0, 0.08, size=len(ms))) / speaker.speed
    pace *= np.exp(generator.normal(0, 0.08, size=word_of[-1] + 1))[word_of]
    pace[word_of == word_of[-1]] *= 1.2
    ms[[0, -1]] = generator.uniform(40, 160, size=2)
    return np.maximum(1, np.rint(ms * pace * RATE / 1000 / HOP)).astype(np.intp)


def _pitch(
    word_of: NDArray[np.intp], n_words: int, speaker: Speaker, generator: np.random.Generator
) -> Floats:
    """Hertz in each frame: a line that falls, bent at each word, and flutters."""
    octaves = generator.normal(0, speaker.melody, n_words) + np.linspace(0.1, -0.15, n_words)
    middles = [np.flatnonzero(word_of == word).mean() for word in range(n_words)]
    curve = np.interp(np.arange(len(word_of)), middles, octaves)
    return speaker.pitch * 2**curve * generator.normal(1, speaker.jitter, len(word_of))


def glide(tracks: Floats) -> Floats:
    """Targets [T, 9] as what is reached: sources quickly, formants slowly."""
    out = np.empty_like(tracks)
    for columns, length in ((slice(0, 3), ONSET), (slice(3, None), GLIDE)):
        weights = np.hanning(length + 2)[1:-1]
        padded = np.pad(tracks[:, columns], [(length // 2, length // 2), (0, 0)], mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, length, axis=0)
        out[:, columns] = windows @ (weights / weights.sum())
    return out


def _voiced(
    tracks: Floats, pitch: Floats, speaker: Speaker, generator: np.random.Generator
) -> Floats:
    """The sound of the tracks [T, 9]: sources through filters, piece by piece."""
    voice, breath, hiss, f1, f2, f3, center, width, zero = tracks.T
    n = (len(tracks) + 1) * HOP
    shimmer = generator.normal(1, 0.03, len(voice))
    noise = spectra(generator.standard_normal(n))
    sound = _gain(voice * shimmer) * spectra(glottal_flow(pitch, n))
    sound += _gain(breath + speaker.breath * voice) * noise
    sound *= throat(f1 * speaker.f1, f2 * speaker.f2, f3, zero, speaker.tract, speaker.tilt)
    sound += _gain(hiss) * noise * teeth(np.minimum(center * speaker.tract, TOP_HISS), width)
    return overlap_add(sound)


def _gain(loudness: Floats) -> NDArray[np.float32]:
    """A factor [T, 1] for spectra, which are of single precision."""
    return loudness[:, None].astype(np.float32)


def glottal_flow(pitch: Floats, n: int) -> Floats:
    """The derivative of the air flow [n], power 1: open for 0.6 of each cycle, then shut at once.

    The flow is p^2 (0.6 - p) at the place p in the cycle (Klatt and Klatt 1990).
    """
    hertz = np.interp(np.arange(n) / HOP, np.arange(1, len(pitch) + 1), pitch)
    place = np.cumsum(hertz / RATE) % 1
    slope = np.where(place < 0.6, (1.2 - 3 * place) * place, 0)
    return cast(Floats, slope / np.sqrt(np.mean(slope**2)))


def _in_a_room(sound: Floats, snr_db: float, generator: np.random.Generator) -> Floats:
    """The sound with the noise of a room, at a drawn loudness that no sample exceeds 1 with."""
    hiss = generator.standard_normal(len(sound) + RUMBLE)
    sums = np.cumsum(hiss)
    rumble = (sums[RUMBLE:] - sums[:-RUMBLE]) / np.sqrt(RUMBLE)
    noise = hiss[RUMBLE:] + generator.uniform(0, 4) * rumble
    noise *= np.sqrt(np.mean(sound**2) / np.mean(noise**2)) * 10 ** (-snr_db / 20)
    heard: Floats = sound + noise
    heard *= generator.uniform(0.1, 0.9) / np.abs(heard).max()
    return heard
