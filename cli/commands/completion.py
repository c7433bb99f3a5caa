"""`tt completion`: print the script with which a shell completes `tt`."""

import click
from click.shell_completion import get_completion_class

from cli.options import GroupedCommand

EXAMPLES = (
    'eval "$(tt completion bash)"                in ~/.bashrc',
    'eval "$(tt completion zsh)"                 in ~/.zshrc',
    "tt completion fish > ~/.config/fish/completions/tt.fish",
)


@click.command("completion", cls=GroupedCommand, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL: commands, options, presets and runs."""
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click has no completion for {shell}", ctx)
    click.echo(completion(ctx.find_root().command, {}, "tt", "_TT_COMPLETE").source())
