"""Speech to text: what is heard, what is held out, faults by name, and figures of whole runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.audio import (
    RATE,
    SpeechFeatures,
    Wave,
    all_commands,
    draw_speaker,
    read_wav,
    speak,
    speech_vectors,
    spoken_commands,
    write_wav,
)
from tinygrad_tf.errors import InputError
from tinygrad_tf.tasks.recordings import deal, find_recordings, spoken_form
from tinygrad_tf.tasks.speech import SpeechTask
from tinygrad_tf.tasks.speech_features import Utterance, extract_features, pack, unpack
from tinygrad_tf.tasks.transcriber import Transcriber
from tinygrad_tf.train.events import ReportEvent
from tinygrad_tf.train.run import Run

SENTENCES = ("find my files", "find my photos", "open my files", "open my photos")
TINY_MODEL = {"d_model": 16, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}


def say(text: str, seed: int = 0) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    return speak(text, draw_speaker(generator), generator)


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Twelve WAVs with their texts."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for index in range(12):
        text = SENTENCES[index % len(SENTENCES)]
        write_wav(folder / f"{index:02}.wav", say(text, index), RATE)
        (folder / f"{index:02}.txt").write_text(text + "\n", encoding="utf-8")
    return folder


TINY: dict[str, Any] = {
    **TINY_MODEL,
    "steps": 12,
    "eval_every": 6,
    "checkpoint_every": 4,
    "warmup": 2,
    "threads": 2,
    "batch_size": 4,
}


def figures_of(run: Run) -> dict[str, Any]:
    (report,) = [event for event in run.run() if isinstance(event, ReportEvent)]
    return report.figures


# What is heard


def test_what_is_said_has_neither_case_nor_marks() -> None:
    assert spoken_form("Show me, please: MY files!\n") == "show me please my files"
    assert spoken_form("Émile's re-read 3.5 letters") == "émile 's re-read 3.5 letters"
    assert spoken_form("?! ...") == ""


def test_hearing_is_the_vectors_of_the_sound_in_half_precision() -> None:
    sound = say("find my files")
    heard = extract_features(Wave(sound, RATE), "x", SpeechFeatures(), 512)
    exact = speech_vectors(sound, RATE)
    assert heard.dtype == np.float16 and heard.shape == exact.shape
    assert np.abs(heard - exact).max() <= 2**-11 * np.abs(exact).max()


@pytest.mark.parametrize(
    "samples, fault",
    [
        (np.zeros(16_000), "x.wav is silent"),
        (np.full(16_000, 0.25), "x.wav is silent"),
        (np.random.default_rng(0).uniform(-1, 1, 16_000) * 3e-5, "x.wav is silent"),
        (np.sin(np.arange(400)), "x.wav: a sound of 0.025 s is too short; record at least 0.08 s"),
        (np.sin(np.arange(16_000 * 4)), "x.wav lasts 4.0 s, and the most is 3.2 s"),
    ],
)
def test_what_is_no_speech_is_refused_by_name(samples: np.ndarray[Any, Any], fault: str) -> None:
    with pytest.raises(InputError) as raised:
        extract_features(Wave(samples, RATE), "x.wav", SpeechFeatures(), 80)
    assert fault in str(raised.value)


@given(
    st.lists(st.tuples(st.text(), st.text(), st.integers(1, 4)), min_size=1, max_size=5),
    st.integers(1, 3),
)
def test_utterances_come_back_from_their_files(
    some: list[tuple[str, str, int]], width: int
) -> None:
    random = np.random.default_rng(0)
    given = [
        Utterance(name, text, random.normal(size=(length, width)).astype(np.float16))
        for name, text, length in some
    ]
    back = unpack(*pack(given))
    assert [(u.name, u.text) for u in back] == [(u.name, u.text) for u in given]
    assert all(np.array_equal(a.vectors, b.vectors) for a, b in zip(back, given, strict=True))


# What is held out


@given(
    st.lists(st.sampled_from(all_commands()), min_size=40, max_size=80, unique=True),
    st.floats(0.05, 0.5),
    st.integers(0, 2**32),
)
def test_a_part_is_held_out_and_each_of_its_words_is_trained_on(
    texts: list[str], share: float, seed: int
) -> None:
    held = deal(texts, share, seed)
    assert held == deal(texts, share, seed)
    assert 1 <= len(held) <= round(share * len(texts))
    kept = {text for index, text in enumerate(texts) if index not in held}
    known = {word for text in kept for word in text.split()}
    assert {word for index in held for word in texts[index].split()} <= known


def test_whole_sentences_are_held_out_before_single_recordings() -> None:
    texts = [text for text in SENTENCES for _ in range(10)]
    kept = [{t for i, t in enumerate(texts) if i not in deal(texts, s, 0)} for s in (0.25, 0.05)]
    assert len(kept[0]) == 3  # ten of forty: one sentence
    assert len(kept[1]) == 4  # two of forty: too few for one
    assert len(deal(texts, 0.25, 0)) == 10 and len(deal(texts, 0.05, 0)) == 2


def test_nothing_can_be_held_out_of_one_sentence_nor_of_unrelated_ones() -> None:
    with pytest.raises(InputError, match="all 3 recordings say 'find my files'"):
        deal(["find my files"] * 3, 0.1, 0)
    with pytest.raises(InputError, match="none of 2 recordings can be held out"):
        deal(["find files", "open letters"], 0.5, 0)


# What is found on the disk


def test_pairs_and_an_index_are_the_same_recordings(recordings: Path) -> None:
    pairs = find_recordings(recordings)
    assert [one.text for one in pairs] == [SENTENCES[i % 4] for i in range(12)]
    lines = [f"{one.wav.name}\t{one.text.title()}!\n" for one in pairs]
    (recordings / "index.tsv").write_text("".join(lines), encoding="utf-8")
    assert find_recordings(recordings) == find_recordings(recordings / "index.tsv") == pairs


def test_texts_may_have_a_mark_and_foreign_line_ends(recordings: Path) -> None:
    (recordings / "00.txt").write_bytes(b"\xef\xbb\xbfFind my\r\nfiles.\r\n")
    assert find_recordings(recordings)[0].text == "find my files"


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def with_content(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "harm, fault",
    [
        (without("03.txt"), "12 WAVs and 11 texts: 03.wav has no 03.txt beside it"),
        (without("03.wav"), "11 WAVs and 12 texts: 03.txt has no 03.wav beside it"),
        (with_content("03.txt", b"  \n"), "03.txt: there is not a single word"),
        (with_content("03.txt", b"\xff"), "03.txt"),
        (with_content("a.tsv", b"03.wav\n"), "a.tsv, line 1: 1 column instead of 2"),
        (with_content("a.tsv", b"99.wav\tfind\n"), "99.wav is no file"),
        (with_content("03.wav", b"RIFF"), "03.wav is not a WAV"),
        (with_content("03.wav", b""), "03.wav is empty"),
        (emptied, "holds no WAVs"),
    ],
)
def test_a_fault_is_told_with_the_file(
    recordings: Path, harm: Callable[[Path], None], fault: str
) -> None:
    harm(recordings)
    with pytest.raises(InputError) as raised:
        SpeechTask.create(recordings, **TINY)
    assert fault in str(raised.value) and "\n" not in str(raised.value)


def test_two_indices_and_no_directory_are_refused(recordings: Path) -> None:
    for name in ("a.tsv", "b.tsv"):
        (recordings / name).write_text("00.wav\tfind\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"has 2 indices: a\.tsv, b\.tsv; name one: .*a\.tsv"):
        find_recordings(recordings)
    with pytest.raises(InputError, match="nowhere does not exist"):
        find_recordings(recordings / "nowhere")


def test_a_transcript_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    for name, text in (("a", "find " * 101), ("b", "find"), ("c", "find")):
        write_wav(folder / f"{name}.wav", say("find"), RATE)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.wav says 101 words.*`max_length` is 100"):
        SpeechTask.create(folder, **TINY | {"max_length": 100})


# Whole runs


def test_a_resumed_run_needs_no_recordings_and_is_the_same_bit_for_bit(
    recordings: Path, tmp_path: Path, outcome: Callable[[Path], tuple[Any, ...]]
) -> None:
    at_once, resumed = tmp_path / "at_once", tmp_path / "resumed"
    whole = figures_of(Run.create(SpeechTask.create(recordings, **TINY), at_once))
    run = Run.create(SpeechTask.create(recordings, **TINY), resumed)
    for event in run.run():
        if event.as_json()["event"] == "step" and event.as_json()["step"] == 5:
            run.stop()
    shutil.rmtree(recordings)
    again = figures_of(Run.resume(SpeechTask, resumed))
    assert outcome(at_once) == outcome(resumed)
    assert whole == again


def test_a_plan_tells_how_much_there_is(recordings: Path) -> None:
    plan = SpeechTask.create(recordings, **TINY, val_fraction=0.25).plan("run")
    assert (plan.facts["examples_train"], plan.facts["examples_val"]) == (9, 3)
    assert plan.notes[0].endswith("3 different sentences; 3 of 3 held out say others")
    assert plan.facts["targets_train"] == 9 * 4  # three words and END
    json.dumps(plan.as_json())


def test_the_voice_that_is_held_out_says_other_commands() -> None:
    task = SpeechTask.create(utterances=40, speakers=4, **TINY)
    assert (len(task.train), len(task.held_out)) == (40, 4)
    assert not {u.text for u in task.train} & {u.text for u in task.held_out}
    assert len({u.name for u in task.train}) <= 4


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The run that `tt train-speech` makes, and its figures."""
    run = tmp_path_factory.mktemp("speech") / "run"
    return run, figures_of(Run.create(SpeechTask.create(threads=2), run))


@pytest.mark.slow
def test_new_commands_by_new_speakers_are_written_down(
    trained: tuple[Path, dict[str, Any]],
) -> None:
    _, figures = trained
    assert figures["examples"] == figures["examples_new"] == 500
    assert figures["exact_match"] >= 0.95
    assert figures["word_error_rate"] <= 0.02


@pytest.mark.slow
def test_any_rate_and_loudness_is_heard_alike(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    transcriber = Transcriber.load(trained[0])
    sound = say("find my files", 3)
    heard = [
        transcriber.extract_features(Wave(sound, RATE)),
        transcriber.extract_features(Wave(0.2 * sound, RATE)),
    ]
    # The same pieces of time at three times the rate, as a WAV that is read back.
    times = np.arange(3 * len(sound)) / 3
    write_wav(tmp_path / "x.wav", np.interp(times, np.arange(len(sound)), sound), 3 * RATE)
    heard.append(transcriber.extract_features(read_wav(tmp_path / "x.wav")))
    assert [one.text for one in transcriber.transcribe(heard)] == ["find my files"] * 3


@pytest.mark.slow
def test_a_beam_never_scores_below_greedy_and_other_sounds_change_nothing(
    trained: tuple[Path, dict[str, Any]],
) -> None:
    transcriber = Transcriber.load(trained[0])
    sounds = [
        transcriber.extract_features(Wave(say(text, seed), RATE))
        for seed, text in enumerate(("stop the engine", "show me all my photos now", "find it"))
    ]
    together = transcriber.transcribe(sounds)
    alone = [transcriber.transcribe([sound])[0] for sound in sounds]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text and one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
    for some, one in zip(transcriber.beam(sounds, beam=4, n_best=3), together, strict=True):
        assert some[0].score >= one.score - 1e-6
        assert [h.score for h in some] == sorted((h.score for h in some), reverse=True)


@pytest.mark.slow
def test_words_listen_to_the_sound_in_their_order(
    trained: tuple[Path, dict[str, Any]],
) -> None:
    transcriber, orders = Transcriber.load(trained[0]), []
    for command in spoken_commands(20, held_out=True):
        wave = Wave(command.samples, RATE)
        heard = transcriber.extract_features(wave)
        (transcript,) = transcriber.transcribe([heard])
        look = transcriber.listening(wave, transcript)
        assert look.words == (*transcript.text.split(), "END")
        assert look.weights.shape == (len(look.words), len(heard))
        assert look.loudness.shape == (len(look.hertz), len(heard)) and look.loudness.max() == 0
        assert np.allclose(look.weights.sum(axis=1), 1, atol=1e-5)
        centres = look.weights[:-1] @ np.arange(len(heard))
        orders.append(np.corrcoef(centres, np.arange(len(centres)))[0, 1])
    assert np.mean(orders) > 0.85
