"""WAV files: written and read again, and what is refused, with one clear line each."""

import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.audio.wav import parse_wav, read_wav, wav_bytes, write_wav
from tinygrad_tf.errors import FailedError, InputError

STEPS = st.lists(st.integers(-32768, 32767), min_size=1, max_size=50)


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """A RIFF file of these chunks, each padded to an even length."""
    body = b"".join(
        tag + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for tag, data in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def fmt(tag: int = 1, channels: int = 1, rate: int = 16_000, bits: int = 16) -> tuple[bytes, bytes]:
    align = channels * bits // 8
    return b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits)


def pcm(*steps: int) -> tuple[bytes, bytes]:
    return b"data", struct.pack(f"<{len(steps)}h", *steps)


@given(STEPS, st.integers(1_000, 768_000))
def test_what_is_written_is_read_again(steps: list[int], rate: int) -> None:
    samples = np.array(steps) / 32768
    again = parse_wav(wav_bytes(samples, rate))
    assert again.rate == rate and np.array_equal(again.samples, samples)
    assert again.seconds == len(steps) / rate


@given(STEPS)
def test_the_bytes_are_those_of_the_format(steps: list[int]) -> None:
    content = wav_bytes(np.array(steps) / 32768, 44_100)
    assert content == riff(fmt(rate=44_100), pcm(*steps))
    assert np.array_equal(parse_wav(content).samples * 32768, steps)


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_files_of_the_standard_library_are_read_and_mixed(tmp_path: Path, channels: int) -> None:
    steps = np.random.default_rng(0).integers(-32768, 32768, size=(100, channels))
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(22_050)
        file.writeframes(steps.astype("<i2").tobytes())
    sound = read_wav(path)
    assert sound.rate == 22_050
    np.testing.assert_allclose(sound.samples, steps.mean(axis=1) / 32768, atol=1e-15)


def test_the_standard_library_reads_what_is_written(tmp_path: Path) -> None:
    write_wav(tmp_path / "sound.wav", [0.0, 0.5, -0.5], 8_000)
    with wave.open(str(tmp_path / "sound.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8_000)
        assert file.readframes(9) == struct.pack("<3h", 0, 16384, -16384)


def test_too_loud_is_clipped_not_wrapped() -> None:
    assert parse_wav(wav_bytes([2.0, -2.0], 8_000)).samples.tolist() == [32767 / 32768, -1.0]


def test_other_chunks_are_passed_over() -> None:
    content = riff((b"LIST", b"odd"), fmt(), (b"fact", b"1234"), pcm(16384), (b"id3 ", b"x"))
    assert parse_wav(content).samples.tolist() == [0.5]


def test_the_extensible_header_of_pcm_is_read() -> None:
    tag, body = fmt(tag=0xFFFE, channels=2)
    subformat = struct.pack("<HHIH", 22, 16, 3, 1) + b"\0" * 14
    assert parse_wav(riff((tag, body + subformat), pcm(16384, 0))).samples.tolist() == [0.25]


WHOLE = riff(fmt(), pcm(1, 2, 3, 4))
REFUSED = {
    "0 bytes": b"",
    "is not a WAV: it begins with b'ID3": b"ID3" + bytes(100),
    "is not a WAV: it begins with b'RIFX": b"RIFX" + WHOLE[4:],
    "is not a WAV: it begins with b'hello'": b"hello",
    "ends before its format": WHOLE[:12],
    "ends within its format": WHOLE[:30],
    "ends before its samples": WHOLE[:36],
    "8 bytes of samples announced, 5 there": WHOLE[:-3],
    "5 bytes of samples end within a sample": riff(fmt(), (b"data", b"12345")),
    "6 bytes of samples end within a sample": riff(fmt(channels=2), pcm(1, 2, 3)),
    "0 samples": riff(fmt(), pcm()),
    "holds 24-bit samples": riff(fmt(bits=24), (b"data", bytes(6))),
    "holds 8-bit samples": riff(fmt(bits=8), (b"data", bytes(6))),
    "holds 32-bit samples": riff(fmt(bits=32), (b"data", bytes(8))),
    "holds floating-point samples": riff(fmt(tag=3, bits=32), (b"data", bytes(8))),
    "holds mu-law samples": riff(fmt(tag=7, bits=8), (b"data", bytes(8))),
    "holds format 0x1234 samples": riff(fmt(tag=0x1234), pcm(1)),
    "0 channels": riff(fmt(channels=0), pcm(1, 2)),
    "rate is 0 Hz": riff(fmt(rate=0), pcm(1, 2)),
    "rate is 2000000000 Hz": riff((b"fmt ", struct.pack("<HHIIHH", 1, 1, 2 * 10**9, 0, 2, 16)),
                                  pcm(1)),
    "samples before their format": riff(pcm(1), fmt()),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(REFUSED[what])
    with pytest.raises(InputError) as caught:
        read_wav(path)
    assert what in caught.value.what and str(path) in caught.value.what
    assert caught.value.next and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(InputError):
        parse_wav(WHOLE[:length])


@given(st.binary(max_size=60), st.integers(0, 60))
def test_damage_never_ends_in_anything_but_a_sound_or_a_clear_refusal(
    damage: bytes, at: int
) -> None:
    content = WHOLE[:at] + damage + WHOLE[at + len(damage) :]
    try:
        assert np.abs(parse_wav(content).samples).max() <= 1
    except InputError as error:
        assert error.next


def test_missing_files_and_directories_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.wav", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_wav(path)
    with pytest.raises(FailedError, match="cannot write"):
        write_wav(tmp_path / "no" / "sound.wav", [0.0], 8_000)


@pytest.mark.parametrize("samples", [[], [[0.0, 0.0]], [0.0, float("nan")], [float("inf")]])
def test_samples_that_are_no_sound_are_not_written(samples: list[float]) -> None:
    with pytest.raises(InputError):
        wav_bytes(samples, 8_000)


@pytest.mark.parametrize("rate", [0, -1, True, 0.5])
def test_a_rate_that_is_none_is_refused(rate: int) -> None:
    with pytest.raises(InputError, match="Hz"):
        wav_bytes([0.0], rate)


@pytest.mark.parametrize("size", [0x7FFFF000, 0xFFFFFFFF, 0])
def test_a_stream_whose_writer_did_not_know_its_length_is_read_to_its_end(size: int) -> None:
    whole = wav_bytes(np.array([0.25, -0.5, 0.125]), 16_000)
    at = whole.index(b"data") + 4
    streamed = whole[:at] + size.to_bytes(4, "little") + whole[at + 4 :]
    assert np.array_equal(parse_wav(streamed).samples, parse_wav(whole).samples)
