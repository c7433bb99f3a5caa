"""Messages of the library name fields; a command shows the options that set them."""

import json
from pathlib import Path

import click
import pytest

from cli.group import tt
from cli.option_names import in_options


def context(name: str) -> click.Context:
    command = tt.get_command(click.Context(tt), name)
    assert command is not None
    return click.Context(command)


@pytest.mark.parametrize(
    ("command", "message", "shown"),
    [
        ("train-gpt", "use `block_size=64`", "use --block-size 64"),
        ("train-gpt", "`learning_rate` is -1", "--lr is -1"),
        ("train-gpt", "choose another `out`, or `force=True`", "choose another --out, or --force"),
        ("train-gpt", "leave out `lines`", "leave out --lines"),
        ("train-gpt", "or `resume='runs/my book'`", "or --resume 'runs/my book'"),
        ("train-gpt", "(`dropout=0.2`)", "(--dropout 0.2)"),
        ("train-gpt", "`no_such_field` is 3", "no_such_field is 3"),
        ("train-gpt", "a run of the task translate", "a run of tt train-translate"),
        ("train-gpt", "no file `a`b`", "no file `a`b`"),
        ("generate", "`block_size=64`", "block_size=64"),
        ("train-gpt", "leave out `texts`", "leave out TEXT"),
        ("train-translate", "leave out `pairs`", "leave out PAIRS"),
    ],
)
def test_a_field_is_shown_as_the_option_of_the_command(command, message, shown):
    assert in_options(message, context(command)) == shown


def test_without_a_command_only_the_backticks_go():
    assert in_options("use `block_size=64`") == "use block_size=64"


def test_every_trained_setting_has_an_option():
    for field in ("steps", "batch_size", "block_size", "n_embd", "val_fraction", "out", "seed"):
        assert in_options(f"`{field}`", context("train-gpt")) == "--" + field.replace("_", "-")


def test_the_notes_of_a_plan_name_options_for_people_and_programs(tt):
    arguments = ("train-instructions", "--dry-run")
    shown, record = tt(*arguments), tt(*arguments, "--json")
    (note,) = json.loads(record.out)["notes"]
    assert "--init-from starts from a run that was made with --unnamed" in note and "`" not in note
    assert f"note: {note}" in shown.out.splitlines()


def test_a_real_command_names_its_options(tt, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "short.txt"
    text.write_text("a few letters", encoding="utf-8")
    refused = tt("train-gpt", str(text))
    assert refused.code == 2 and "`" not in refused.err
