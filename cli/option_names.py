"""The library names settings by field (`block_size`); messages name them by option (--block-size).

A message of the library writes a field in backticks: `block_size`, `block_size=64`, `force=True`,
`lines=False`. `in_options` is the only place that turns these into what the running command takes.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

import click

from cli.group import SECTIONS

# A field, or a field and its value. A quote or letter beside a backtick means text of the user.
_FIELD = re.compile(r"""(?<![^\s(])`([a-z]\w*)(?:=([^`]+))?`(?![\w'"`])""")
_TASK = re.compile(r"\bthe task (\w+)")

# Fields that another command takes, and remedies that a command carries out.
OF_OTHER_COMMANDS = {"pattern": "bpe-convert", "soft_prompt": "generate"}
REMEDIES = {"train a byte-level tokenizer": "bpe-train"}


def in_options(message: str, ctx: click.Context | None = None) -> str:
    """Return the message with fields named as options of a command, by default the running one.

    A field that the command does not take is shown without its backticks.
    """
    ctx = ctx or click.get_current_context(silent=True)
    parameters = {p.name: p for p in ctx.command.params} if ctx else {}

    def option(match: re.Match[str]) -> str:
        name, value = match[1], _unquoted(match[2])
        if name in parameters:
            return _setting(parameters[name], value)
        if name in OF_OTHER_COMMANDS:
            words = [f"tt {OF_OTHER_COMMANDS[name]} --{name.replace('_', '-')}", value]
            return " ".join(filter(None, words))
        return match[0].strip("`")

    def command(match: re.Match[str]) -> str:
        name = f"train-{match[1]}"
        return f"tt {name}" if name in SECTIONS["Train"] else match[0]

    message = _TASK.sub(command, _FIELD.sub(option, message))
    for remedy, name in REMEDIES.items():
        message = message.replace(remedy, f"{remedy} (tt {name})")
    return message


def event_in_options(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training event whose notes and warnings name options."""
    named = dict(event)
    if "notes" in event:
        named["notes"] = [in_options(note) for note in event["notes"]]
    if "message" in event:
        named["message"] = in_options(event["message"])
    return named


def label(parameter: click.Parameter) -> str:
    """Return the name of a parameter as it is typed: `--block-size`, or `TEXT` for an argument."""
    if isinstance(parameter, click.Argument):
        word = re.fullmatch(r"\[?(\w+)\]?(?:\.\.\.)?", parameter.metavar or "")
        return word[1] if word else (parameter.name or "").upper()
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])


def _setting(parameter: click.Parameter, value: str | None) -> str:
    """Return a parameter with its value, as they are typed."""
    name = label(parameter)
    if value is None:
        return name
    if isinstance(parameter, click.Argument):
        return shlex.quote(value)
    if getattr(parameter, "is_flag", False):
        negative = next(iter(parameter.secondary_opts), f"no {name}")
        return name if value == "True" else negative
    return f"{name} {shlex.quote(value)}"


def _unquoted(value: str | None) -> str | None:
    """Return the value of a Python keyword without the quotes of a string."""
    return value and value.strip("\"'")
