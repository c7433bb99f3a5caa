"""Every option of `tt train-gpt`; those that the library knows bear the names of its fields."""

from pathlib import Path

import click

from cli.options import (
    FRACTION,
    NATURAL,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    Duration,
    Number,
    RunPath,
    option,
)
from tinygrad_tf.models.config import CHOICES
from tinygrad_tf.models.presets import PRESETS
from tinygrad_tf.train.schedule import SCHEDULES

DATA, MODEL, OPTIMISATION, OUTPUT, ADVANCED = "Data", "Model", "Optimisation", "Output", "Advanced"

# fmt: off
TRAIN_OPTIONS: list[click.Parameter] = [
    click.Argument(["texts"], metavar="[TEXT]...", nargs=-1, type=click.Path(path_type=Path)),

    option("--lines/--no-lines", group=DATA, default=None, help="Each line is one document."),
    option("--tokenizer", group=DATA, metavar="char|byte|bpe|FILE",
           help="What a token is; FILE from tt bpe-train or elsewhere.  [default: char]"),
    option("--vocab-size", group=DATA, type=POSITIVE_INT,
           help="Tokens that bpe learns from the text.  [default: 512]"),
    option("--val-fraction", group=DATA, type=Number(min=0, max=1, min_open=True, max_open=True),
           help="Share of the text, at its end, to validate on.  [default: 0.1]"),
    option("--keep-newlines", group=DATA, is_flag=True, help="Leave CRLF and CR as they are."),

    option("--preset", group=MODEL, type=click.Choice(list(PRESETS)),
           help="Sizes and settings to start from."),
    option("--init-from", group=MODEL, type=RunPath(), metavar="DIR",
           help="A run, or a Hugging Face GPT-2, to train further."),
    option("--n-layer", group=MODEL, type=POSITIVE_INT, help="Number of blocks."),
    option("--n-head", group=MODEL, type=POSITIVE_INT, help="Attention heads in a block."),
    option("--n-embd", group=MODEL, type=POSITIVE_INT,
           help="Width; a multiple of the number of heads."),
    option("--d-ff", group=MODEL, type=POSITIVE_INT,
           help="Width inside the feed-forward.  [default: 4 x n-embd]"),
    option("--block-size", group=MODEL, type=POSITIVE_INT, help="Context length in tokens."),
    option("--dropout", group=MODEL, type=FRACTION, help="Share of activations dropped."),

    option("--steps", group=OPTIMISATION, type=POSITIVE_INT, help="Number of optimizer steps."),
    option("--time-limit", group=OPTIMISATION, type=Duration(),
           help="Stop in order after this time: 90, 90s, 2m, 1h."),
    option("--batch-size", group=OPTIMISATION, type=POSITIVE_INT, help="Sequences in a batch."),
    option("--lr", "learning_rate", group=OPTIMISATION, type=POSITIVE, help="Peak learning rate."),
    option("--min-lr", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Learning rate at the end of the cosine."),
    option("--warmup", group=OPTIMISATION, type=NATURAL, help="Steps of linear warm-up."),
    option("--schedule", group=OPTIMISATION, type=click.Choice(SCHEDULES),
           help="How the learning rate falls after it.  [default: cosine]"),
    option("--weight-decay", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Decoupled decay of the matrices."),
    option("--grad-clip", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Largest norm of the gradient; 0 clips nothing."),
    option("--grad-accum", group=OPTIMISATION, type=POSITIVE_INT, help="Batches summed in a step."),
    option("--early-stop", group=OPTIMISATION, type=POSITIVE_INT, metavar="N",
           help="Stop after N evaluations without a better validation loss."),

    option("--out", group=OUTPUT, type=click.Path(path_type=Path), metavar="RUN",
           help="Directory of the run.  [default: runs/NAME]"),
    option("--resume", group=OUTPUT, type=RunPath(), metavar="RUN",
           help="Go on with a run; it knows its text and settings."),
    option("--checkpoint-every", group=OUTPUT, type=POSITIVE_INT, metavar="STEPS",
           help="Steps between checkpoints."),
    option("--eval-every", group=OUTPUT, type=POSITIVE_INT, metavar="STEPS",
           help="Steps between evaluations."),
    option("--dry-run", group=OUTPUT, is_flag=True,
           help="Show the plan and its cost; train nothing."),
    option("--force", group=OUTPUT, is_flag=True,
           help="Overwrite an existing run; go beyond the free memory."),
    option("--json", group=OUTPUT, is_flag=True, help="Events as JSON Lines on stdout."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the result."),

    option("--seed", group=ADVANCED, type=NATURAL, help="Seed of all random draws."),
    option("--threads", group=ADVANCED, type=POSITIVE_INT,
           help="Threads that share a batch; their number decides the last bits of the sums.  "
                "[default: one per core]"),
    option("--activation", group=ADVANCED, type=click.Choice(CHOICES["activation"]),
           help="Nonlinearity of the feed-forward layers."),
    option("--norm", group=ADVANCED, type=click.Choice(CHOICES["norm"]),
           help="LayerNorm before or after each sublayer."),
    option("--positions", group=ADVANCED, type=click.Choice(CHOICES["positions"]),
           help="How positions are told."),
    option("--bias/--no-bias", group=ADVANCED, default=None,
           help="Biases in linear and norm layers."),
    option("--qkv-bias/--no-qkv-bias", group=ADVANCED, default=None,
           help="Biases of queries, keys and values.  [default: as --bias]"),
    option("--head-bias/--no-head-bias", group=ADVANCED, default=None,
           help="A bias in the output layer."),
    option("--tie/--no-tie", "tie_weights", group=ADVANCED, default=None,
           help="One matrix for the embedding and the output."),
    option("--init-std", group=ADVANCED, type=POSITIVE,
           help="Standard deviation of the weights at the start."),
    option("--hidden-std", group=ADVANCED, type=POSITIVE,
           help="The same, for the matrices inside the blocks."),
    option("--layer-norm-eps", group=ADVANCED, type=POSITIVE,
           help="What the norms add to the variance."),
    option("--beta1", group=ADVANCED, type=FRACTION, help="AdamW: decay of the first moment."),
    option("--beta2", group=ADVANCED, type=FRACTION, help="AdamW: decay of the second moment."),
]
# fmt: on
