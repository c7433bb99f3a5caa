"""Options that every training on examples shares; their names are the library's."""

from collections.abc import Iterable
from pathlib import Path

import click

from cli.options import (
    FRACTION,
    NATURAL,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    Duration,
    RunPath,
    option,
)
from tinygrad_tf.models.config import CHOICES
from tinygrad_tf.train.schedule import SCHEDULES

DATA, MODEL, OPTIMISATION, OUTPUT = "Data", "Model", "Optimisation", "Output"

# fmt: off
_MODEL_OPTIONS: dict[str, click.Parameter] = {parameter.name or "": parameter for parameter in (
    option("--d-model", group=MODEL, type=POSITIVE_INT, help="Width; shared by the heads."),
    option("--n-heads", group=MODEL, type=POSITIVE_INT, help="Attention heads in a layer."),
    option("--n-layers", group=MODEL, type=POSITIVE_INT, help="Layers of the encoder."),
    option("--n-encoder-layers", group=MODEL, type=POSITIVE_INT, help="Layers of the encoder."),
    option("--n-decoder-layers", group=MODEL, type=POSITIVE_INT, help="Layers of the decoder."),
    option("--d-ff", group=MODEL, type=POSITIVE_INT,
           help="Width inside the feed-forward.  [default: 4 x d-model]"),
    option("--max-length", group=MODEL, type=POSITIVE_INT, help="Most tokens in a sequence."),
    option("--dropout", group=MODEL, type=FRACTION, help="Share of activations dropped."),
    option("--norm", group=MODEL, type=click.Choice(CHOICES["norm"]),
           help="LayerNorm before or after each part."),
    option("--activation", group=MODEL, type=click.Choice(CHOICES["activation"]),
           help="Nonlinearity of the feed-forward."),
    option("--positions", group=MODEL, type=click.Choice(CHOICES["positions"]),
           help="How positions are told."),
    option("--pooling", group=MODEL, type=click.Choice(CHOICES["pooling"]),
           help="One vector of many: their mean, or that of a CLS token."),
    option("--label-smoothing", group=MODEL, type=FRACTION,
           help="Probability spread over all tokens in training."),
)}

_TRAINING_OPTIONS: list[click.Parameter] = [
    option("--steps", group=OPTIMISATION, type=POSITIVE_INT, help="Number of optimizer steps."),
    option("--time-limit", group=OPTIMISATION, type=Duration(),
           help="Stop in order after this time: 90, 90s, 2m, 1h."),
    option("--batch-size", group=OPTIMISATION, type=POSITIVE_INT, help="Examples in a batch."),
    option("--schedule", group=OPTIMISATION, type=click.Choice(SCHEDULES),
           help="How the learning rate falls after the warm-up."),
    option("--lr", "learning_rate", group=OPTIMISATION, type=POSITIVE, help="Peak learning rate."),
    option("--min-lr", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Learning rate at the end of the cosine."),
    option("--warmup", group=OPTIMISATION, type=NATURAL, help="Steps of linear warm-up."),
    option("--weight-decay", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Decoupled decay of the matrices."),
    option("--grad-clip", group=OPTIMISATION, type=NON_NEGATIVE,
           help="Largest norm of the gradient; 0 clips nothing."),
    option("--early-stop", group=OPTIMISATION, type=POSITIVE_INT, metavar="N",
           help="Stop after N evaluations without a better validation loss."),
    option("--seed", group=OPTIMISATION, type=NATURAL, help="Seed of all random draws."),
    option("--threads", group=OPTIMISATION, type=POSITIVE_INT,
           help="Threads that share a batch; their number decides the last bits of the sums.  "
                "[default: one per core]"),

    option("--out", group=OUTPUT, type=click.Path(path_type=Path), metavar="RUN",
           help="Directory of the run.  [default: runs/NAME]"),
    option("--resume", group=OUTPUT, type=RunPath(), metavar="RUN",
           help="Go on with a run; it knows its examples and settings."),
    option("--checkpoint-every", group=OUTPUT, type=POSITIVE_INT, metavar="STEPS",
           help="Steps between checkpoints."),
    option("--eval-every", group=OUTPUT, type=POSITIVE_INT, metavar="STEPS",
           help="Steps between evaluations."),
    option("--dry-run", group=OUTPUT, is_flag=True, help="Show the plan; train nothing."),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite an existing run."),
    option("--json", group=OUTPUT, is_flag=True, help="Events as JSON Lines on stdout."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the result."),
]
# fmt: on

MODEL_NAMES = tuple(_MODEL_OPTIONS)
TRAINING_NAMES = (
    "steps",
    "time_limit",
    "schedule",
    "learning_rate",
    "min_lr",
    "warmup",
    "weight_decay",
    "grad_clip",
    "early_stop",
    "checkpoint_every",
    "eval_every",
)


def task_options(model: Iterable[str]) -> list[click.Parameter]:
    """These options of the model, and all of training."""
    return [_MODEL_OPTIONS[name] for name in model] + _TRAINING_OPTIONS
