"""`tt tune-prompt`: learn a soft prompt for a GPT whose weights stay as they are."""

from pathlib import Path
from typing import Any

import click

from cli.console import answer, say
from cli.options import (
    NATURAL,
    POSITIVE,
    POSITIVE_INT,
    Duration,
    GroupedCommand,
    Number,
    RunPath,
    option,
)
from cli.task_lines import percent
from cli.training import INTERRUPTED, follow, quoted, refuse_json_and_quiet
from tinygrad_tf.train.config import DEFAULT_SEED

DATA, OPTIMISATION, OUTPUT = "Data", "Optimisation", "Output"

EXAMPLES = (
    "tt tune-prompt runs/stories                     on one author's letters, built in",
    "tt tune-prompt runs/stories my.txt --length 16  on lines of your own",
    "tt generate runs/stories --soft-prompt runs/stories-letters.prompt.safetensors",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1, type=click.Path(path_type=Path)),
    option("--length", group=OPTIMISATION, type=POSITIVE_INT, metavar="P", default=8,
           show_default=True, help="Vectors of the prompt, each as wide as the model."),
    option("--steps", group=OPTIMISATION, type=POSITIVE_INT, default=400, show_default=True,
           help="Number of optimizer steps."),
    option("--time-limit", group=OPTIMISATION, type=Duration(),
           help="Stop in order after this time: 90, 90s, 2m, 1h."),
    option("--batch-size", group=OPTIMISATION, type=POSITIVE_INT, default=16, show_default=True,
           help="Sequences in a batch."),
    option("--lr", "learning_rate", group=OPTIMISATION, type=POSITIVE, default=0.1,
           show_default=True, help="Peak learning rate."),
    option("--seed", group=OPTIMISATION, type=NATURAL, default=DEFAULT_SEED, show_default=True,
           help="Seed of all random draws."),
    option("--threads", group=OPTIMISATION, type=POSITIVE_INT,
           help="Threads that share a batch.  [default: one per core]"),
    option("--val-fraction", group=DATA, default=0.2, show_default=True,
           type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the text to hold out."),
    option("--weights", group=DATA, type=click.Choice(["best", "last"]), default="best",
           show_default=True, help="The best checkpoint of RUN by validation, or the last."),
    option("--out", group=OUTPUT, type=click.Path(path_type=Path), metavar="FILE",
           help="File of the prompt.  [default: RUN-NAME.prompt.safetensors]"),
    option("--eval-every", group=OUTPUT, type=POSITIVE_INT, metavar="STEPS", default=50,
           show_default=True, help="Steps between evaluations."),
    option("--dry-run", group=OUTPUT, is_flag=True, help="Show the plan; tune nothing."),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite the file."),
    option("--json", group=OUTPUT, is_flag=True, help="Events as JSON Lines on stdout."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the result."),
]
# fmt: on


@click.command("tune-prompt", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, dry_run: bool, json: bool, quiet: bool, **options: Any) -> None:
    """Learn P vectors that, read before every text, make the frozen GPT of RUN write like TEXT.

    Without TEXT, like the letters of one author of the built-in corpus. The weights of RUN are
    compared before and after, bit for bit. The prompt is one small file, and the weights that it
    was learned for are the only ones that accept it.
    """
    refuse_json_and_quiet(ctx, json=json, quiet=quiet)
    from tinygrad_tf.tasks.prompt_tuning import PromptTuning, PromptTuningOptions

    tuning = PromptTuning(PromptTuningOptions(**options))
    events = follow(tuning, json=json, quiet=quiet, dry_run=dry_run)
    if events is None:
        return
    tuned = events["prompt-tuned"]
    if not json:
        for line in report_lines(tuned):
            answer(line)
    if tuned["reason"] == "interrupted":
        say(f"interrupted at step {tuned['steps']:,}; the best prompt so far is in {tuned['out']}")
        raise click.exceptions.Exit(INTERRUPTED)
    if not json and not quiet:
        run, out = (quoted(Path(path)) for path in (options["run"], tuned["out"]))
        say(f"next: tt generate {run} --soft-prompt {out}")


def report_lines(tuned: dict[str, Any]) -> list[str]:
    """Held-out losses without and with the prompt, and what was learned and what was not."""
    floor = tuned["bits_floor"]
    return [
        f"without the prompt\t{tuned['loss_before']:.4f} nats per token"
        f"\t{tuned['bits_before']:.4f} bits per character",
        f"with the prompt\t{tuned['loss_after']:.4f} nats per token"
        f"\t{tuned['bits_after']:.4f} bits per character",
        *([] if floor is None else [f"floor\t\t{floor:.4f} bits per character"]),
        f"lower by\t{percent(tuned['reduction'])}",
        f"learned\t{tuned['prompt_params']:,} numbers",
        f"frozen\t{tuned['frozen_params']:,} numbers, unchanged: sha256 {tuned['frozen_sha256']}",
    ]
