"""Mean and standard deviation over seeds; confidence intervals of means, of differences, of what seeds are left out.

Common to all intervals: none for fewer than two values (in a group), and the value itself where nothing varies; numbers
that differ by rounding only (1e-12 of the largest) do not vary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import scale, student
from orchestrator.statistics.student import is_constant


class Interval(NamedTuple):
    """The bounds of a confidence interval; both NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean; none for fewer than two values, the mean itself where all are equal."""
    return of_estimates(student.of_mean(np.asarray(values, np.float64)), level)


def of_estimates(estimate: student.Estimates, level: float) -> Interval:
    """The interval of a single estimate."""
    low, high = student.bounds(estimate, level)
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values.

    The standard deviation is NaN for n = 1, 0 where the values differ by rounding only, and infinite where it is
    larger than the largest number, 1.8e308.
    """

    mean: float
    std: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    if len(values) == 0:
        raise ValueError("`values` must hold at least one number, but got none.")
    return summaries(np.asarray(values, np.float64)[None])[0]


def summaries(rows: NDArray[np.float64]) -> list[Summary]:
    """The summary of each row of `rows` (k, n), of at least one value each."""
    n, spreads = rows.shape[1], np.full(len(rows), math.nan)
    if n > 1:
        powers = scale.exponents(scale.largest(rows))
        found = scale.times(scale.divided(rows, powers).std(axis=1, ddof=1), powers)
        spreads = np.where(is_constant(rows), 0.0, found)
    return [Summary(exact_mean(row), std, n) for row, std in zip(rows.tolist(), spreads.tolist(), strict=True)]


def exact_mean(values: Sequence[float]) -> float:
    """The mean of at least one value, rounded once, so that the order of seeds does not decide between equal means."""
    if not all(map(math.isfinite, values)):
        return sum(values) / len(values)
    power = math.frexp(max(map(abs, values)))[1]
    return math.ldexp(math.fsum(math.ldexp(value, -power) for value in values) / len(values), power)
