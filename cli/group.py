"""The command group `tt`: commands are named here and imported only when they are run."""

import difflib
import importlib
import platform
from pathlib import Path

import click

SECTIONS = {
    "Learn": {
        "grad": "Show an expression as a graph with checked gradients",
        "coreference": 'See what "it" refers to: learned and designed attention',
        "corpus": "Print the built-in corpus, whose true entropy is known",
        "compare-markov": "Compare Markov chains, n-grams, skips and a GPT: why attention",
    },
    "Train": {
        "train-gpt": "Train a GPT on your text, or on the built-in corpus",
        "train-translate": "Train an encoder-decoder to translate",
        "train-classifier": "Train an encoder to label texts, or to rate them",
        "train-fill": "Train an encoder to fill in hidden words",
        "train-speech": "Train an encoder-decoder to transcribe speech",
        "train-instructions": "Train a GPT to follow instructions and to combine them",
        "tune-prompt": "Train a soft prompt (vectors) for a frozen GPT",
        "bpe-train": "Train a tokenizer on your text, and watch the merges",
    },
    "Use": {
        "generate": "Generate text with a trained model",
        "translate": "Translate sentences, and see the attention",
        "classify": "Label texts, with probabilities",
        "fill": "Fill in the hidden words of a text",
        "transcribe": "Transcribe WAV files",
        "say": "Synthesise speech with the built-in voice, as a WAV",
        "ask": "Give a trained model an instruction",
        "bpe-encode": "Encode text as token ids",
        "bpe-decode": "Decode token ids to the original bytes",
        "bpe-convert": "Convert a tokenizer between formats",
        "completion": "Print the completion script for your shell",
    },
    "Inspect": {
        "gradcheck": "Check every gradient of the engine, or of your function",
        "inspect": "Show the settings, parameters and losses of a run",
        "bpe-view": "Show a text in the colours of its tokens",
        "bpe-stats": "Compare tokenizers on a text",
    },
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every command name, in the order of the help."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command; it holds the command as `command`."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or raise UsageError with the nearest names."""
        name, names = args[0], self.list_commands(ctx)
        if name in names or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(name, names)
        if Path(name).is_file():
            near = [f"tt train-gpt {name}"]
        fault = click.UsageError(f"no such command: {name}", ctx)
        fault.possibilities = near  # type: ignore[attr-defined]
        raise fault

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their sections, one line each, in one column."""
        width = max(len(name) for name in self.list_commands(ctx))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the versions of tt, Python and NumPy, without importing NumPy."""
    if not wanted or ctx.resilient_parsing:
        return
    from importlib import metadata

    from tinygrad_tf import __version__

    numpy = metadata.version("numpy")
    click.echo(f"tt {__version__} (Python {platform.python_version()}, NumPy {numpy})")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Begin with "tt train-gpt"; "tt COMMAND --help" describes each command.',
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@click.pass_context
def tt(ctx: click.Context, debug: bool) -> None:
    """Train transformers from nothing, and see how they work."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
