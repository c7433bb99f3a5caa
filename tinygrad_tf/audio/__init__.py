"""Sound: WAV files, MFCCs, and a small voice that speaks commands; NumPy alone."""

from tinygrad_tf.audio.cepstrum import (
    MFCCSettings,
    dct_matrix,
    delta,
    hz_to_mel,
    mel_filterbank,
    mel_power,
    mel_to_hz,
    mfcc,
    power_to_db,
)
from tinygrad_tf.audio.commands import (
    SpokenCommand,
    all_commands,
    split_commands,
    spoken_commands,
)
from tinygrad_tf.audio.features import SpeechFeatures, normalize, speech_vectors, stack_frames
from tinygrad_tf.audio.phonemes import WORDS
from tinygrad_tf.audio.resampling import RATE, resample
from tinygrad_tf.audio.voice import Speaker, draw_speaker, speak
from tinygrad_tf.audio.wav import Wave, parse_wav, read_wav, wav_bytes, write_wav

__all__ = [
    "RATE",
    "WORDS",
    "MFCCSettings",
    "Speaker",
    "SpeechFeatures",
    "SpokenCommand",
    "Wave",
    "all_commands",
    "dct_matrix",
    "delta",
    "draw_speaker",
    "hz_to_mel",
    "mel_filterbank",
    "mel_power",
    "mel_to_hz",
    "mfcc",
    "normalize",
    "parse_wav",
    "power_to_db",
    "read_wav",
    "resample",
    "speak",
    "speech_vectors",
    "split_commands",
    "spoken_commands",
    "stack_frames",
    "wav_bytes",
    "write_wav",
]
