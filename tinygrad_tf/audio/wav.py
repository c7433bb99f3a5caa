"""WAV files of 16-bit PCM, read and written: any rate, any number of channels mixed to one.

Only 16 bits are read: it is what speech is recorded in, and one conversion makes it of the rest.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tinygrad_tf.audio.samples import Floats, checked, checked_rate
from tinygrad_tf.errors import FailedError, InputError

PathLike = str | os.PathLike[str]
FULL_SCALE = 32768  # the sample 1.0; int16 reaches from -32768 to 32767
PCM, EXTENSIBLE = 0x0001, 0xFFFE
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # what lies beyond them is a damaged header
KINDS = {0x0002: "ADPCM", 0x0003: "floating-point", 0x0006: "A-law", 0x0007: "mu-law",
         0x0011: "ADPCM", 0x0055: "MP3"}  # fmt: skip
EXPORT_AGAIN = "record, export or copy it again"


class Wave(NamedTuple):
    """A sound: `samples` [N] from -1 to 1, `rate` of them in a second."""

    samples: Floats
    rate: int

    @property
    def seconds(self) -> float:
        """The duration of the sound."""
        return len(self.samples) / self.rate


# Sizes from here on stand for "not known yet": espeak-ng writes 0x7FFFF000, others 0xFFFFFFFF.
_STREAMED = 0x7FFFF000


class _Format(NamedTuple):
    tag: int
    channels: int
    rate: int
    bits: int


def read_wav(path: PathLike) -> Wave:
    """Read a WAV of 16-bit PCM; several channels are averaged.

    Raises InputError where it cannot be read, is no WAV, is truncated, is empty, or holds
    anything but 16-bit PCM.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"cannot read {os.fspath(path)}: {why}", "check the path") from error
    return parse_wav(content, os.fspath(path))


def parse_wav(content: bytes, name: str = "the WAV") -> Wave:
    """`read_wav` of the bytes of a file; `name` is what the errors call it."""
    if not content:
        raise InputError(f"{name} is empty: it has 0 bytes", EXPORT_AGAIN)
    if len(content) < 12 or content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise InputError(
            f"{name} is not a WAV: it begins with {content[:12]!r}, not with RIFF....WAVE",
            _convert(name),
        )
    layout: _Format | None = None
    for tag, size, body in _chunks(content, name):
        if tag == b"fmt ":
            layout = _checked(_format(body, name), name)
        elif tag == b"data":
            if layout is None:
                raise InputError(f"{name} has samples before their format", _convert(name))
            return Wave(_mono(body, size, layout, name), layout.rate)
    missing = "its samples" if layout else "its format"
    raise InputError(f"{name} is truncated: it ends before {missing}", EXPORT_AGAIN)


def wav_bytes(samples: ArrayLike, rate: int) -> bytes:
    """A WAV file of one channel of 16-bit PCM from samples [N]; beyond -1 and 1 they are clipped.

    Raises InputError where the samples are none, not finite, or have more than one axis.
    """
    sound, rate = checked(samples), checked_rate(rate)
    steps = np.clip(np.rint(sound * FULL_SCALE), -FULL_SCALE, FULL_SCALE - 1).astype("<i2")
    data = steps.tobytes()
    layout = struct.pack("<HHIIHH", PCM, 1, rate, 2 * rate, 2, 16)
    chunks = b"fmt " + struct.pack("<I", len(layout)) + layout
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def write_wav(path: PathLike, samples: ArrayLike, rate: int) -> None:
    """Write `wav_bytes` to a file, replacing what it held.

    Raises InputError as `wav_bytes` does, FailedError where the file cannot be written.
    """
    content = wav_bytes(samples, rate)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        why = error.strerror or str(error)
        raise FailedError(
            f"cannot write {os.fspath(path)}: {why}", "choose another path"
        ) from error


def _chunks(content: bytes, name: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Each chunk's name, the size that it claims, and its bytes, fewer where the file ends."""
    at = 12
    while at + 8 <= len(content):
        tag, size = struct.unpack_from("<4sI", content, at)
        if tag == b"data" and (size >= _STREAMED or (size == 0 and at + 8 < len(content))):
            # Whoever writes to a pipe does not know the size yet: the samples go on to the end.
            size = len(content) - at - 8
            size -= size % 2
        yield tag, size, content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2  # chunks begin at even offsets


def _format(body: bytes, name: str) -> _Format:
    if len(body) < 16:
        raise InputError(f"{name} is truncated: it ends within its format", EXPORT_AGAIN)
    tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if tag == EXTENSIBLE and len(body) >= 26:
        (tag,) = struct.unpack_from("<H", body, 24)
    return _Format(tag, channels, rate, bits)


def _checked(layout: _Format, name: str) -> _Format:
    """The format, where it is one of those that are read."""
    if layout.tag != PCM:
        kind = KINDS.get(layout.tag, f"format {layout.tag:#06x}")
        raise InputError(f"{name} holds {kind} samples, not 16-bit PCM", _convert(name))
    if layout.bits != 16:
        raise InputError(f"{name} holds {layout.bits}-bit samples, not 16-bit", _convert(name))
    if not layout.channels:
        raise InputError(f"{name} says that it has 0 channels", EXPORT_AGAIN)
    if not LOWEST_RATE <= layout.rate <= HIGHEST_RATE:
        raise InputError(f"{name} says that its rate is {layout.rate} Hz", EXPORT_AGAIN)
    return layout


def _mono(body: bytes, size: int, layout: _Format, name: str) -> Floats:
    """The samples of all channels, averaged."""
    if len(body) < size:
        raise InputError(
            f"{name} is truncated: {size} bytes of samples announced, {len(body)} there",
            _again(name),
        )
    if size % (2 * layout.channels):
        raise InputError(
            f"{name} is truncated: its {size} bytes of samples end within a sample", _again(name)
        )
    if not size:
        raise InputError(f"{name} is empty: it has 0 samples", EXPORT_AGAIN)
    steps = np.frombuffer(body, dtype="<i2").reshape(-1, layout.channels)
    mixed: Floats = steps.mean(axis=1, dtype=np.float64) / FULL_SCALE
    return mixed


def _convert(name: str) -> str:
    return f'convert it, as with: ffmpeg -i "{name}" -c:a pcm_s16le "{_renamed(name)}"'


def _again(name: str) -> str:
    return f'copy it again, or keep what there is: ffmpeg -i "{name}" "{_renamed(name)}"'


def _renamed(name: str) -> str:
    return f"{Path(name).stem}-16bit.wav"
