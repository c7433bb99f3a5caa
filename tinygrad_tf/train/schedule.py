"""The learning rate over time."""

import math

SCHEDULES = ("cosine", "noam")


def scheduled_rate(
    schedule: str, step: int, steps: int, peak: float, low: float, warmup: int
) -> float:
    """The rate of `learning_rate` ("cosine"), or that of `noam_rate` with the same peak ("noam").

    Noam's falls as 1/√step from the end of the warm-up on, whatever the number of steps, and
    knows no `low`.
    """
    if schedule == "cosine":
        return learning_rate(step, steps, peak, low, warmup)
    warmup = max(1, warmup)
    return noam_rate(step, 1, warmup, peak * math.sqrt(warmup))


def learning_rate(step: int, steps: int, peak: float, low: float, warmup: int) -> float:
    """The rate of step `step` of `steps`, counted from 0: linear warm-up, then half a cosine.

    The warm-up takes at most a tenth of all steps, and never starts from 0; the cosine ends at
    `low` with the last step. Any numbers of steps, also 0 and 1, have an answer.
    """
    warmup = min(warmup, steps // 10)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    done = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    return low + (peak - low) * 0.5 * (1.0 + math.cos(math.pi * done))


def noam_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """The rate of step `step`, counted from 0: linear warm-up, then as 1/√step.

    factor · d_model^-0.5 · min(n^-0.5, n · warmup^-1.5) with n = step + 1 (Vaswani et al. 2017,
    eq. 3); the peak, at n = warmup, is factor / √(d_model · warmup).
    """
    n, warmup = step + 1, max(1, warmup)
    return factor / math.sqrt(d_model) * min(1.0 / math.sqrt(n), n / math.sqrt(warmup**3))
