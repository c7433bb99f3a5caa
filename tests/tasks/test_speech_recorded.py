"""Speech of another voice: WAVs that espeak-ng makes, at a rate of its own, with their texts."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tinygrad_tf.audio import all_commands
from tinygrad_tf.tasks.speech import SpeechTask
from tinygrad_tf.train.events import ReportEvent
from tinygrad_tf.train.run import Run


@pytest.fixture(scope="module")
def espeak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """800 commands by the voices of espeak-ng, as WAVs at 22,050 Hz with their texts."""
    program = shutil.which("espeak-ng")
    if program is None:
        pytest.skip("espeak-ng is not installed")
    folder = tmp_path_factory.mktemp("espeak") / "commands"
    folder.mkdir()
    draw = random.Random(0)
    commands = all_commands()
    variants = [f"m{i}" for i in range(1, 8)] + [f"f{i}" for i in range(1, 5)]
    for index in range(800):
        text, wav = draw.choice(commands), folder / f"{index:03}.wav"
        voice = f"{draw.choice(('en-us', 'en-gb'))}+{draw.choice(variants)}"
        speed, pitch = str(draw.randint(140, 200)), str(draw.randint(30, 70))
        how = ["-v", voice, "-s", speed, "-p", pitch, "-w", str(wav)]
        subprocess.run([program, *how, text], check=True, timeout=60)
        wav.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_recordings_of_another_voice_are_learned_from(espeak: Path, tmp_path: Path) -> None:
    run = Run.create(SpeechTask.create(espeak, threads=2, steps=500), tmp_path / "run")
    (figures,) = (event.figures for event in run.run() if isinstance(event, ReportEvent))
    assert figures["examples"] == 80 and figures["examples_new"] >= 40
    assert figures["exact_match"] >= 0.9
