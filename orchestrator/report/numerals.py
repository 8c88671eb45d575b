"""Numbers as a paper prints them."""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Final

from orchestrator.statistics.summary import Interval, Summary

MAX_DECIMALS: Final = 12
LARGE: Final = 1e12
SMALL: Final = 1e-4
MINUS: Final = "\N{MINUS SIGN}"


def decimals(summaries: Iterable[Summary]) -> int:
    """How many digits after the point a column of means has: two significant ones of the median standard deviation.

    Below 0, digits before the point are rounded, but the smallest mean keeps three. Where nothing varies: none for
    whole numbers, else four significant ones of the largest mean.
    """
    summaries = [summary for summary in summaries if math.isfinite(summary.mean)]
    stds = [summary.std for summary in summaries if summary.std > 0 and math.isfinite(summary.std)]
    sizes = [abs(summary.mean) for summary in summaries if summary.mean]
    if stds:
        middle = statistics.median(stds)
        digits = 1 - _exponent(middle if math.isfinite(middle) else statistics.median_low(stds))
        most_rounded = min(0, 2 - _exponent(min(sizes, default=1.0)))
        return min(max(digits, most_rounded), MAX_DECIMALS)
    if not sizes or all(summary.mean.is_integer() for summary in summaries):
        return 0
    return max(0, min(3 - _exponent(max(sizes)), MAX_DECIMALS))


def with_interval(value: float, interval: Interval) -> Summary:
    """A value whose digits, by `decimals`, are those that its 95 % interval supports."""
    return Summary(value, (interval.high - interval.low) / 4, 2)


def fixed(value: float | None, num_decimals: int) -> str:
    """A number with thousands parted by commas and a true minus; nothing for None and NaN.

    What is huge, or so small that its column's digits show nothing of it, has three digits and an exponent.
    """
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= LARGE:
        return f"{value:.2e}".replace("-", MINUS)
    rounded = round(value, num_decimals) if num_decimals < 0 else value
    text = f"{rounded:,.{max(0, num_decimals)}f}"
    is_zero = not text.strip("-0.,")
    if is_zero and abs(value) < SMALL and value:
        return f"{value:.2e}".replace("-", MINUS)
    return text.lstrip("-") if is_zero else text.replace("-", MINUS)


def signed(value: float, num_decimals: int) -> str:
    """A number as `fixed` prints it, with a plus where it is above 0."""
    text = fixed(value, num_decimals)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def estimate(summary: Summary | None, num_decimals: int) -> str:
    """`mean ± standard deviation`, or the one value there is."""
    if summary is None:
        return ""
    mean = fixed(summary.mean, num_decimals)
    return mean if math.isnan(summary.std) else f"{mean} ± {fixed(summary.std, num_decimals)}"


def between(interval: Interval, num_decimals: int) -> str:
    """`low to high`; nothing where there is no interval."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return ""
    return f"{fixed(interval.low, num_decimals)} to {fixed(interval.high, num_decimals)}"


def probability(share: float) -> str:
    """Two digits after the point; what is not quite 0 or 1 is not printed so.

    More where two would bring it to the other side of .05 or .95, which decide its mark.
    """
    if 0 < share < 0.005:
        return "<0.01"
    if 0.995 <= share < 1:
        return ">0.99"
    return fixed(share, _digits(share, 2, lambda value: (value > 0.05, value >= 0.95)))


def p_value(p: float) -> str:
    """Three digits after the point; more where three would bring it to the other side of .05."""
    return "<0.001" if p < 0.001 else fixed(p, _digits(p, 3, lambda value: value <= 0.05))


def _digits(value: float, least: int, side: Callable[[float], object]) -> int:
    """How many digits after the point leave a value on its side."""
    return next((n for n in range(least, least + 9) if side(round(value, n)) == side(value)), least)


def written_decimals(value: float) -> int:
    """How many digits after the point the shortest text of a number has."""
    return len(f"{value:.12f}".rstrip("0").partition(".")[2])


def _exponent(value: float) -> int:
    return math.floor(math.log10(value))
