"""Format numbers, times and sizes for people."""

import math


def count(number: float) -> str:
    """Format a whole number with thousands separators: 804,096."""
    return f"{number:,.0f}"


def counted(number: float, noun: str) -> str:
    """Format a number of things: 1 step, 2 steps."""
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def short(number: float) -> str:
    """Format a number in three digits and a prefix: 12.3 k, 7.94 T."""
    if not math.isfinite(number) or abs(number) < 1000:
        return f"{number:.3g}"
    power = min(6, int(math.log10(abs(number) * 1.0005) // 3))
    number /= 1000**power
    digits = f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{digits} {'kMGTPE'[power - 1]}"


def clock(seconds: float) -> str:
    """Format seconds as 0:07, 12:30 or 1:02:03."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def loss(nats: float | None) -> str:
    """Format a loss with three decimals; `-` while there is none."""
    return "-" if nats is None or math.isinf(nats) else f"{nats:.3f}"
