"""The command group `tt`: commands are named here and imported only when they are run."""

import difflib
import importlib
import platform
from pathlib import Path

import click

SECTIONS = {
    "Learn": {
        "grad": "Show an expression as a graph, every gradient checked",
        "coreference": 'What "it" is: attention that was learned, and designed',
        "corpus": "Print the built-in corpus, whose true entropy is known",
        "compare-markov": "See why attention: Markov chains, n-grams, skips and a GPT compared",
    },
    "Train": {
        "train-gpt": "Train a GPT on your text, or on the built-in corpus",
        "train-translate": "Train an encoder-decoder to translate",
        "train-classifier": "Train an encoder to label texts, or to rate them",
        "train-fill": "Train an encoder to fill in hidden words",
        "train-speech": "Train an encoder-decoder to write down what is said",
        "train-instructions": "Train a GPT to follow instructions, and combine them",
        "tune-prompt": "Learn a prompt of vectors for a frozen GPT",
        "bpe-train": "Learn a tokenizer from your text, and watch the merges",
    },
    "Use": {
        "generate": "Let a trained model write text",
        "translate": "Translate, and see which words it looks at",
        "classify": "Label texts, with probabilities",
        "fill": "Fill in the hidden words of a text",
        "transcribe": "Write down what is said in WAVs",
        "say": "Say something with the built-in voice, as a WAV",
        "ask": "Have an instruction carried out",
        "bpe-encode": "Text to token ids, through pipes",
        "bpe-decode": "Token ids to the very bytes they came from",
        "bpe-convert": "Take a tokenizer to another format, or bring one from it",
        "completion": "Print the completion script for your shell",
    },
    "Inspect": {
        "gradcheck": "Prove every gradient of the engine, or check one of yours",
        "inspect": "Show what a run holds: settings, parameters, losses",
        "bpe-view": "Show a text in the colours of its tokens",
        "bpe-stats": "Compare tokenizers on a text",
    },
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command name, in the order of the help."""
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
        """Find the command, or say which one may have been meant."""
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
        """Write the commands, then the options: most come for the commands."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their sections, one line each, in one column."""
        width = max(len(name) for name in self.list_commands(ctx))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


def _print_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Print the versions that a report of a fault needs, without importing NumPy."""
    if not asked or ctx.resilient_parsing:
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
    epilog='Begin with "tt train-gpt"; "tt COMMAND --help" tells more about each.',
)
@click.option("--debug", is_flag=True, help="Show the traceback of a fault.")
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
