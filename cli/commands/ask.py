"""`tt ask`: give an instruction to a model that was trained on instructions."""

from pathlib import Path

import click

from cli.console import print_json, say, write_text
from cli.options import NATURAL, GroupedCommand, Integer, RunPath, option
from cli.sentences import WEIGHTS, sentences_of

TOGETHER = 64

EXAMPLES = (
    'tt ask runs/instructions "reverse: tone"',
    'tt ask runs/instructions "reverse then upper: tone" --working',
    "tt ask runs/instructions < questions.txt",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["run"], type=RunPath()),
    click.Argument(["questions"], metavar="[QUESTION]...", nargs=-1),
    option("--shots", type=Integer(min=0, max=8), default=0, show_default=True, metavar="N",
           help="Answered examples of its kind before the question."),
    option("--working", is_flag=True, help="Print every line that the model writes."),
    WEIGHTS,
    option("--seed", type=NATURAL, default=0, show_default=True, help="Seed of the examples."),
    option("--json", is_flag=True, help="One object a question."),
    option("--quiet", "-q", is_flag=True, help="Only the answers."),
]
# fmt: on


@click.command("ask", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
def command(
    run: Path,
    questions: tuple[str, ...],
    shots: int,
    working: bool,
    weights: str,
    seed: int,
    json: bool,
    quiet: bool,
) -> None:
    """Answer each QUESTION, such as "reverse: tone"; without any, each line of stdin.

    If the answer is wrong, stderr gets the right one, and a note whether the model was trained on
    such a question.
    """
    from tinygrad_tf.tasks.instruction_model import InstructionModel

    asker = InstructionModel.load(run, weights)
    for some in sentences_of(questions, TOGETHER):
        for question in some:
            reply = asker.ask(question, shots, seed)
            if json:
                result = {
                    "answer": reply.answer,
                    "right": reply.is_right,
                    "wanted": reply.right[-1],
                }
                more = {"working": reply.working, "trained_on": reply.trained_on}
                print_json({"question": reply.question, **result, **more})
                continue
            lines = reply.working if working else (reply.answer,)
            write_text("".join(f"{line}\n" for line in lines))
            if not reply.is_right and not quiet:
                trained = "was" if reply.trained_on else "was not"
                say(f"wrong: {reply.right[-1]} is right (this {trained} trained on)")
