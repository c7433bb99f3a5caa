"""Write the old runs beside this file: one small run of each kind, and what its commands print.

    python tests/old_runs/make_old_runs.py path/to/tt

The zip files and expected.json were made with version 0.1.0 at schema version 1, and a later
version must still open them (`tests/test_old_runs.py`). Make them again, with the `tt` of that
version, only when a new kind of run is added. Every run is trained in one temporary directory, on
small texts or built-in examples. A zip holds the files that
count: further names of the same bytes are left out, since opening a run makes them again.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = Path("/tmp/old_runs")  # a run stores the path of its text
STEPS = "--steps 10 --eval-every 5 --checkpoint-every 10 --warmup 2 --threads 1 --seed 0 --quiet"
PAIR = "--d-model 8 --n-heads 2 --n-encoder-layers 1 --n-decoder-layers 1 --d-ff 8 --batch-size 4"
ENCODER = "--d-model 8 --n-heads 2 --n-layers 1 --d-ff 8 --batch-size 4"
GPT = "--n-layer 1 --n-head 2 --n-embd 8 --batch-size 4"

# kind: (train, the commands that use the run, resume); {run} is the directory of the run.
RUNS: dict[str, tuple[str, list[str], str]] = {
    "gpt": (
        f"train-gpt text.txt {GPT} --block-size 16 {STEPS}",
        ["generate {run} --prompt the -n 20 -t 0 --json", "inspect {run} --json"],
        "train-gpt",
    ),
    "bpe": (
        f"train-gpt lines.txt --lines --tokenizer bpe --vocab-size 270 {GPT} {STEPS}",
        ["generate {run} --prompt the -n 20 -t 0 --json", "inspect {run} --json"],
        "train-gpt",
    ),
    "translate": (
        f"train-translate pairs.tsv {PAIR} {STEPS}",
        ["translate {run} the|red|dog --json", "inspect {run} --json"],
        "train-translate",
    ),
    "classifier": (
        f"train-classifier labels.tsv {ENCODER} {STEPS}",
        ["classify {run} the|red|dog|sees --json", "inspect {run} --json"],
        "train-classifier",
    ),
    "regression": (
        f"train-classifier numbers.tsv --regression {ENCODER} {STEPS}",
        ["classify {run} the|red|dog|sees --json", "inspect {run} --json"],
        "train-classifier",
    ),
    "fill": (
        f"train-fill lines.txt {ENCODER} {STEPS}",
        ["fill {run} the|_|dog --json", "inspect {run} --json"],
        "train-fill",
    ),
    "speech": (
        f"train-speech --utterances 12 --speakers 4 {PAIR} {STEPS}",
        ["transcribe {run} said.wav --json", "inspect {run} --json"],
        "train-speech",
    ),
    "instructions": (
        f"train-instructions {GPT} {STEPS}",
        ["ask {run} reverse:|tone --json", "inspect {run} --json"],
        "train-instructions",
    ),
}
SOFT_PROMPT = (
    "tune-prompt runs/bpe lines.txt --length 2 --steps 4 --eval-every 2 --batch-size 4 --threads 1"
    " --out runs/bpe/soft.prompt.safetensors --quiet"
)
PROMPTED = (
    "generate {run} --soft-prompt {run}/soft.prompt.safetensors --prompt the -n 20 -t 0 --json"
)
SAID = "say find|my|files --seed 3 --out said.wav --quiet"

# Fields that depend on the time or the machine, and the configuration, which the run itself holds.
VOLATILE = {"elapsed", "tokens_per_second", "seconds", "path", "run", "seed", "config"}


def words(command: str, run: str = "") -> list[str]:
    """Split a command; `|` stands for a space inside an argument."""
    return [word.format(run=run).replace("|", " ") for word in command.split()]


def stable(value: Any) -> Any:
    """Leave out of parsed JSON what depends on the time, the machine or the place."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    return [stable(item) for item in value] if isinstance(value, list) else value


def parse(text: str) -> list[Any]:
    """Parse JSON Lines; of the events of a training only evaluations and the end are kept."""
    objects = [json.loads(line) for line in text.splitlines()]
    return [stable(x) for x in objects if x.get("event", "eval") in ("eval", "done")]


def write_texts(folder: Path) -> None:
    """Write the small texts that the runs learn from."""
    nouns = {"cat": "gato", "dog": "perro", "bird": "canario"}
    colours = {"red": "rojo", "old": "viejo", "big": "grande"}
    pairs = [
        (f"the {c} {n} sees the {m}", f"el {nouns[n]} {colours[c]} ve el {nouns[m]}")
        for c in colours
        for n in nouns
        for m in nouns
    ]
    contents = {
        "pairs.tsv": [f"{source}\t{target}" for source, target in pairs],
        "lines.txt": [source for source, _ in pairs],
        "text.txt": [source for source, _ in pairs],
        "labels.tsv": [f"{source.split()[1]}\t{source}" for source, _ in pairs],
        "numbers.tsv": [f"{len(source) / 10}\t{source}" for source, _ in pairs],
    }
    for name, lines in contents.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def pack(run: Path) -> None:
    """Write a run's zip, without the further names of a checkpoint's files and without dates."""
    with zipfile.ZipFile(HERE / f"{run.name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(run.rglob("*")):
            name = path.relative_to(run).as_posix()
            twice = name.startswith(("best/", ".", "model.", "optimizer."))
            if path.is_file() and not twice and name != "trainer_state.json":
                archive.writestr(
                    zipfile.ZipInfo(name), path.read_bytes(), compress_type=zipfile.ZIP_DEFLATED
                )


def main() -> None:
    """Train every run, use it, pack it, resume it; write expected.json."""
    tt = str(Path(sys.argv[1]).absolute())
    expected: dict[str, dict[str, Any]] = {}
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    write_texts(FOLDER)

    def call(arguments: list[str]) -> list[Any]:
        done = subprocess.run(
            [tt, *arguments], cwd=FOLDER, check=True, stdout=subprocess.PIPE, text=True
        )
        return parse(done.stdout) if "--json" in arguments else []

    call(words(SAID))
    for kind, (train, uses, resume) in RUNS.items():
        run = f"runs/{kind}"
        call([*words(train), "--out", run])
        if kind == "bpe":
            call(words(SOFT_PROMPT))
            uses = [*uses, PROMPTED]
        commands = [words(use, run) for use in uses]
        outputs = [{"command": c, "output": call(c)} for c in commands]
        pack(FOLDER / run)
        again = [resume, "--resume", run, "--steps", "20", "--json"]
        expected[kind] = {"use": outputs, "resume": {"command": again, "output": call(again)}}
    shutil.copy(FOLDER / "said.wav", HERE)
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
