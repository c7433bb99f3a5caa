"""Lines about a training on examples: its plan and the figures at its end."""

from collections.abc import Mapping
from typing import Any

from cli.format import count, counted


def task_plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Describe the plan of a training on examples, one line a fact."""
    steps, epochs = plan["config"]["steps"], f"{plan['epochs']:.3g}"
    references = {name: x for name, x in plan["references"].items() if x is not None}
    lines = [
        f"model: {counted(plan['params'], 'parameter')}",
        f"examples: {count(plan['examples_train'])} to train on "
        f"({counted(plan['targets_train'], 'target')}), {count(plan['examples_val'])} held out; "
        f"{counted(steps, 'step')} {'is' if steps == 1 else 'are'} {epochs} "
        f"epoch{'s' * (epochs != '1')}",
    ]
    if references:
        listed = ", ".join(f"{name} {value:.3f}" for name, value in references.items())
        lines.append(f"to compare with, in {plan['unit']}: {listed}")
    return [*lines, *(f"note: {note}" for note in plan["notes"]), f"run: {plan['run']}"]


def percent(share: float) -> str:
    """Format a share as per cent: 98.7 %."""
    return f"{100 * share:.1f} %"
